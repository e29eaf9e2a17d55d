package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
)

type versionCommand struct{ *kingpin.CmdClause }

func newVersion(app *kingpin.Application) command {
	return versionCommand{app.Command("version", "Print the version.")}
}

func (c versionCommand) name() string { return c.FullCommand() }

func (c versionCommand) run(s streams) error {
	_, err := fmt.Fprintln(s.out, version.Print("stategauge"))
	return err
}
