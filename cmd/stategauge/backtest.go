package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
)

// backtestCommand judges recorded events as the daemon would have.
type backtestCommand struct {
	*kingpin.CmdClause
	paths, rules []string
	from, to     string
	all          bool
	output       string
}

func newBacktest(root *kingpin.Application) command {
	c := &backtestCommand{CmdClause: root.Command("backtest", "Judge recorded events by the rules and say what would have fired.")}
	c.Arg("input", "Files and folders with events, as for diagnose; history:DIR for what a daemon keeps under --storage.path=DIR, running or not; '-' or none for standard input.").StringsVar(&c.paths)
	c.Flag("from", "Judge what happened from this time on: 2026-01-31T18:00:00Z, or Unix seconds.").StringVar(&c.from)
	c.Flag("to", "Judge what happened before this time.").StringVar(&c.to)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.rules)
	c.Flag("all", "Show alerts too that the alert of their cause spoke for.").BoolVar(&c.all)
	c.Flag("output", "A timeline, or one JSON object per alert.").Default(replay.FormatText).EnumVar(&c.output, replay.FormatText, replay.FormatJSON)
	return c
}

func (c *backtestCommand) name() string { return c.FullCommand() }

// run succeeds if anything was read, whether or not anything fired.
func (c *backtestCommand) run(s streams) error {
	in := replay.Inputs{Paths: inputPaths(c.paths), Stdin: s.in}
	if err := c.bound(&in); err != nil {
		return err
	}
	pack, err := app.LoadRules(c.rules)
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := replay.Backtest(ctx, replay.BacktestOptions{Inputs: in, Rules: pack, All: c.all})
	switch {
	case ctx.Err() != nil:
		return err
	case found.Events == 0 && err == nil && in.FromMs+in.ToMs != 0:
		return errors.New("no event was found between --from and --to")
	case found.Events == 0 && err == nil:
		return errors.New("no event was found")
	case found.Events == 0:
		return err
	case err != nil:
		fmt.Fprintf(s.err, "stategauge: %v\n", err)
	}
	return found.Write(s.out, c.output)
}

// bound takes --from and --to over.
func (c *backtestCommand) bound(in *replay.Inputs) error {
	var faults [3]error
	in.FromMs, faults[0] = timeFlag("from", c.from)
	in.ToMs, faults[1] = timeFlag("to", c.to)
	if in.FromMs != 0 && in.ToMs != 0 && in.FromMs >= in.ToMs {
		faults[2] = fmt.Errorf("--from (%s) must be before --to (%s)", c.from, c.to)
	}
	return errors.Join(faults[:]...)
}

// timeFlag reads a time as the HTTP API does, in Unix milliseconds; 0 where none is
// given.
func timeFlag(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e11 {
		return int64(seconds * 1000), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.UnixMilli() <= 0 {
		return 0, fmt.Errorf("--%s (%q) must be a time as 2026-01-31T18:00:00Z, or Unix seconds", name, text)
	}
	return at.UnixMilli(), nil
}

// inputPaths gives standard input its name back: the command line's parser makes
// an empty argument of a lone dash.
func inputPaths(args []string) []string {
	out := slices.Clone(args)
	for i := range out {
		if out[i] == "" {
			out[i] = replay.Stdin
		}
	}
	return out
}
