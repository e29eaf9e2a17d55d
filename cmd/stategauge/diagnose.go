package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
)

type diagnoseCommand struct {
	*kingpin.CmdClause
	paths, rules []string
	output       string
}

func newDiagnose(root *kingpin.Application) command {
	c := &diagnoseCommand{CmdClause: root.Command("diagnose", "Read recorded events and say what they show.")}
	c.Arg("file", "Files and folders with events: NDJSON, Spark event logs, text logs, whatever was pasted; '-' or none for standard input.").StringsVar(&c.paths)
	c.Flag("output", "Form of the report.").Default(replay.FormatText).EnumVar(&c.output, replay.FormatText, replay.FormatJSON)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.rules)
	return c
}

func (c *diagnoseCommand) name() string { return c.FullCommand() }

// run succeeds if anything was read, whatever else could not be.
func (c *diagnoseCommand) run(s streams) error {
	pack, err := app.LoadRules(c.rules)
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	read, err := replay.Diagnose(ctx, replay.Options{Paths: inputPaths(c.paths), Stdin: s.in, Rules: pack}, s.out, c.output)
	if read == 0 && err == nil {
		return errors.New("no event was found")
	}
	if read > 0 && err != nil {
		fmt.Fprintf(s.err, "stategauge: %v\n", err)
		return nil
	}
	return err
}
