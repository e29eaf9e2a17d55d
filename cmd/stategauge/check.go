package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
)

// checkCommand reads files and reports every fault in them.
type checkCommand struct {
	*kingpin.CmdClause
	files []string
	// check says one line per file, or what is wrong with any of them.
	check func(files []string) (said []string, err error)
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
	said, err := c.check(c.files)
	for i := range said {
		if said[i] != "" {
			fmt.Fprintf(s.out, "%s: %s\n", c.files[i], said[i])
		}
	}
	if err != nil {
		fmt.Fprintln(s.err, err)
		return errSilent
	}
	return nil
}

// checkConfig looks at each file by itself.
func checkConfig(files []string) (said []string, err error) {
	for _, f := range files {
		_, e := app.LoadConfig(f)
		said = append(said, "ok")
		if e != nil {
			said[len(said)-1] = ""
			err = errors.Join(err, e)
		}
	}
	return said, err
}

// checkRules looks at all files together: they share signals and symptoms.
func checkRules(files []string) (said []string, err error) {
	counts, err := app.CheckRules(files)
	for _, n := range counts {
		said = append(said, fmt.Sprintf("ok, %d rules", n))
	}
	return said, err
}
