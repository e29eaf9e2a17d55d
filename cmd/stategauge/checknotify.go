package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
)

// checkNotifyCommand tests the delivery of alerts.
type checkNotifyCommand struct {
	*kingpin.CmdClause
	check app.NotifyCheck
}

func newCheckNotify(check *kingpin.CmdClause) command {
	c := &checkNotifyCommand{CmdClause: check.Command("notify", "Send a test alert, and its end, through every Alertmanager of a configuration.")}
	c.Arg("file", "Configuration file.").Required().StringVar(&c.check.ConfigFile)
	c.Flag("severity", "Severity of the test alert, which Alertmanagers route by.").Default("info").StringVar(&c.check.Severity)
	c.Flag("hold", "How long the alert fires; longer than group_wait, and receivers are told.").Default("0s").DurationVar(&c.check.Hold)
	return c
}

func (c *checkNotifyCommand) name() string { return c.FullCommand() }

func (c *checkNotifyCommand) run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return app.CheckNotify(ctx, c.check, s.out)
}
