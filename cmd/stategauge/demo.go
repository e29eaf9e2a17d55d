package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"

	"github.com/stategauge/stategauge/internal/app/demo"
)

// demoCommand shows daemon, simulator and status page in one process.
type demoCommand struct {
	*kingpin.CmdClause
	opts demo.Options
}

func newDemo(root *kingpin.Application) command {
	c := &demoCommand{CmdClause: root.Command("demo", "Watch simulated queries get into trouble and the daemon find out; needs nothing else.")}
	c.Flag("web.listen-address", "Where the status page is; "+demo.DefaultAddress+", or a free port where that is taken.").StringVar(&c.opts.Address)
	c.Flag("speed", "How many times faster than real time it goes.").Default("150").Float64Var(&c.opts.Speed)
	c.Flag("seed", "What chance draws from.").Default("1").Uint64Var(&c.opts.Seed)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.opts.RuleFiles)
	c.Flag("exit", "End when everything has been played instead of keeping the page up.").BoolVar(&c.opts.Exit)
	return c
}

func (c *demoCommand) name() string { return c.FullCommand() }

func (c *demoCommand) run(s streams) error {
	level := promslog.NewLevel()
	if err := level.Set("error"); err != nil {
		return err
	}
	c.opts.Log = promslog.New(&promslog.Config{Writer: s.err, Level: level})
	c.opts.Out, c.opts.Wall = s.out, time.Now
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := demo.Run(ctx, c.opts)
	if errors.Is(err, syscall.EPIPE) {
		return nil // the reader has seen enough
	}
	return err
}
