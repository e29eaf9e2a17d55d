// Command stategauge collects the events of Spark Structured Streaming queries,
// exports them as Prometheus series, judges their trends and pages.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

// streams are the process's own, replaced in tests.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// command is one sub-command: it adds itself to the application and is run when
// the command line names it.
type command interface {
	name() string
	run(s streams) error
}

// errSilent ends the process with status 1 without a further word: the command
// has said what is wrong.
var errSilent = errors.New("")

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run parses the command line and runs the sub-command it names. It returns the
// exit status: 0 for success, 1 for a failure, 2 for a wrong command line.
func run(args []string, s streams) int {
	app := kingpin.New("stategauge", "Metrics, trends and alerts for Spark Structured Streaming queries and their state stores.")
	app.UsageWriter(s.out).ErrorWriter(s.err)
	app.HelpFlag.Short('h')
	exit := -1
	app.Terminate(func(status int) {
		if exit < 0 {
			exit = status
		}
	})
	app.Version(version.Print("stategauge"))
	commands := []command{
		newServe(app), newDemo(app), newSimulate(app), newDiagnose(app), newBacktest(app), newTestRules(app), newScore(app), newVersion(app),
	}
	commands = append(commands, newChecks(app)...)
	commands = append(commands, newHistory(app)...)
	chosen, err := app.Parse(args)
	if exit >= 0 {
		return exit
	}
	if err != nil {
		fmt.Fprintf(s.err, "stategauge: %v, try --help\n", err)
		return 2
	}
	return dispatch(commands, chosen, s)
}

func dispatch(commands []command, chosen string, s streams) int {
	for _, c := range commands {
		if c.name() != chosen {
			continue
		}
		err := c.run(s)
		if err == nil {
			return 0
		}
		if !errors.Is(err, errSilent) {
			fmt.Fprintf(s.err, "stategauge: %v\n", err)
		}
		return 1
	}
	return 2
}
