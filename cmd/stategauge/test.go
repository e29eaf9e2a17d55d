package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
)

// testRulesCommand runs tests of rules that stand in YAML files.
type testRulesCommand struct {
	*kingpin.CmdClause
	files, rules []string
}

func newTestRules(root *kingpin.Application) command {
	test := root.Command("test", "Run tests that stand in files.")
	c := &testRulesCommand{CmdClause: test.Command("rules", "Test rules: what is played, and which alerts must fire.")}
	c.Arg("file", "Test file.").Required().StringsVar(&c.files)
	c.Flag("rules", "Rule file for tests that name none; repeatable. Without one, the built-in rules are used.").StringsVar(&c.rules)
	return c
}

func (c *testRulesCommand) name() string { return c.FullCommand() }

func (c *testRulesCommand) run(s streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bad := false
	for _, file := range c.files {
		ok, err := c.file(ctx, s, file)
		if err != nil {
			fmt.Fprintln(s.err, err)
		}
		bad = bad || err != nil || !ok
	}
	if bad {
		return errSilent
	}
	return nil
}

// file runs the tests of one file and reports whether all passed.
func (c *testRulesCommand) file(ctx context.Context, s streams, file string) (ok bool, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	results, err := replay.RunCases(ctx, file, data, replay.CaseOptions{Rules: app.LoadRules, RuleFiles: c.rules, Scenario: findScenario})
	failed := 0
	for _, r := range results {
		if len(r.Failures) == 0 {
			continue
		}
		failed++
		fmt.Fprintf(s.out, "%s:%d: FAIL: %s\n", file, r.Line, r.Name)
		for _, f := range r.Failures {
			fmt.Fprintf(s.out, "  %s\n", f)
		}
	}
	if failed > 0 {
		fmt.Fprintf(s.out, "%s: %d of %d tests failed\n", file, failed, len(results))
	} else if err == nil {
		fmt.Fprintf(s.out, "%s: ok, %d tests\n", file, len(results))
	}
	return failed == 0, err
}
