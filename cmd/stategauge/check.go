package main

import (
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
)

// checkCommand reads files and reports every fault in them.
type checkCommand struct {
	*kingpin.CmdClause
	files []string
	check func(file string) (said string, err error)
}

func newChecks(root *kingpin.Application) []command {
	check := root.Command("check", "Check files and report every fault in them.")
	config := &checkCommand{CmdClause: check.Command("config", "Check a configuration file."), check: checkConfig}
	config.Arg("file", "Configuration file.").Required().StringsVar(&config.files)
	rules := &checkCommand{CmdClause: check.Command("rules", "Check rule files."), check: checkRules}
	rules.Arg("file", "Rule file.").Required().StringsVar(&rules.files)
	return []command{config, rules, newCheckNotify(check)}
}

func (c *checkCommand) name() string { return c.FullCommand() }

func (c *checkCommand) run(s streams) error {
	bad := false
	for _, f := range c.files {
		said, err := c.check(f)
		if err != nil {
			fmt.Fprintln(s.err, err)
			bad = true
			continue
		}
		fmt.Fprintf(s.out, "%s: %s\n", f, said)
	}
	if bad {
		return errSilent
	}
	return nil
}

func checkConfig(file string) (string, error) {
	if _, err := app.LoadConfig(file); err != nil {
		return "", err
	}
	return "ok", nil
}

func checkRules(file string) (string, error) {
	n, err := app.CheckRules(file)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("ok, %d rules", n), nil
}
