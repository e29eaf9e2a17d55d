package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"github.com/stategauge/stategauge/internal/app"
)

type serveCommand struct {
	*kingpin.CmdClause
	opts app.Options
	log  *promslog.Config
}

func newServe(root *kingpin.Application) command {
	c := &serveCommand{CmdClause: root.Command("serve", "Take events, export series, judge trends and page."), opts: app.DefaultOptions(), log: &promslog.Config{}}
	c.Flag("config.file", "Configuration file. Without one, events come in by HTTP and nothing is paged.").StringVar(&c.opts.ConfigFile)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.opts.RuleFiles)
	c.Flag("storage.path", "Directory of the history: recent batches, hourly figures, and what a restart goes on from. Without one nothing is kept on disk.").StringVar(&c.opts.StoragePath)
	c.opts.Web = kingpinflag.AddFlags(c.CmdClause, ":9980")
	c.log.Level, c.log.Format = promslog.NewLevel(), promslog.NewFormat()
	c.Flag(promslogflag.LevelFlagName, promslogflag.LevelFlagHelp).Default("info").HintOptions(promslog.LevelFlagOptions...).SetValue(c.log.Level)
	c.Flag(promslogflag.FormatFlagName, promslogflag.FormatFlagHelp).Default("logfmt").HintOptions(promslog.FormatFlagOptions...).SetValue(c.log.Format)
	return c
}

func (c *serveCommand) name() string { return c.FullCommand() }

func (c *serveCommand) run(s streams) error {
	c.log.Writer = s.err
	c.opts.Logger = promslog.New(c.log)
	a, err := app.New(c.opts)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return a.Run(ctx, reloads(ctx))
}

// reloads turns SIGHUP into reload requests; requests that come while one waits
// are one request.
func reloads(ctx context.Context) <-chan struct{} {
	signals, out := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		defer signal.Stop(signals)
		for {
			select {
			case <-signals:
				select {
				case out <- struct{}{}:
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}
