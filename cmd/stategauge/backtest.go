package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
)

// backtestCommand judges recorded events as the daemon would have.
type backtestCommand struct {
	*kingpin.CmdClause
	paths, rules []string
	all          bool
	output       string
}

func newBacktest(root *kingpin.Application) command {
	c := &backtestCommand{CmdClause: root.Command("backtest", "Judge recorded events by the rules and say what would have fired.")}
	c.Arg("input", "Files and folders with events, as for diagnose; '-' or none for standard input.").StringsVar(&c.paths)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.rules)
	c.Flag("all", "Show alerts too that the alert of their cause spoke for.").BoolVar(&c.all)
	c.Flag("output", "A timeline, or one JSON object per alert.").Default(replay.FormatText).EnumVar(&c.output, replay.FormatText, replay.FormatJSON)
	return c
}

func (c *backtestCommand) name() string { return c.FullCommand() }

// run succeeds if anything was read, whether or not anything fired.
func (c *backtestCommand) run(s streams) error {
	pack, err := app.LoadRules(c.rules)
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := replay.Backtest(ctx, replay.BacktestOptions{
		Inputs: replay.Inputs{Paths: inputPaths(c.paths), Stdin: s.in}, Rules: pack, All: c.all,
	})
	switch {
	case ctx.Err() != nil:
		return err
	case found.Events == 0 && err == nil:
		return errors.New("no event was found")
	case found.Events == 0:
		return err
	case err != nil:
		fmt.Fprintf(s.err, "stategauge: %v\n", err)
	}
	return found.Write(s.out, c.output)
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
