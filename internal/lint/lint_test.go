package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fileChecks are the rules that need one file at a time.
var fileChecks = map[string]func(*File) []Fault{
	"imports follow the layers":        CheckImports,
	"pure packages stay pure":          CheckPure,
	"tests do not sleep":               CheckSleep,
	"metrics say whose they are":       CheckMetricNames,
	"files and functions are short":    CheckSize,
	"exported names are documented":    CheckExportedDocs,
	"package names say what is inside": CheckPackageName,
	"nothing is left open":             func(f *File) []Fault { return CheckLeftOpen(f.Path, f.Text) },
}

func TestTheTreeFollowsTheHouseRules(t *testing.T) {
	files, err := Load(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("only %d Go files found: is this the whole tree?", len(files))
	}
	for name, check := range fileChecks {
		t.Run(name, func(t *testing.T) {
			for _, f := range files {
				report(t, check(f))
			}
		})
	}
	t.Run("metrics are documented", func(t *testing.T) {
		doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			report(t, CheckMetricsDocumented(f, string(doc)))
		}
	})
	t.Run("packages are documented", func(t *testing.T) { report(t, CheckPackageDocs(files)) })
}

func report(t *testing.T, faults []Fault) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// breaches holds sources that break one rule each, and sources that look like it.
var breaches = map[string]struct {
	check func(*File) []Fault
	path  string
	text  string
	want  string // part of the one fault; empty for none
}{
	"a sibling": {
		CheckImports, "exporter/x.go", "package exporter\nimport _ \"" + module + "rules\"\n", "exporter/x.go:2: exporter must not import rules",
	},
	"an arrow the wrong way": {
		CheckImports, "rules/x.go", "package rules\nimport _ \"" + module + "rules/notify\"\n", "rules must not import rules/notify",
	},
	"an arrow the right way": {
		CheckImports, "rules/notify/x.go", "package notify\nimport _ \"" + module + "rules\"\n", "",
	},
	"a package of its own below": {
		CheckImports, "exporter/x.go", "package exporter\nimport _ \"" + module + "exporter/text\"\n", "",
	},
	"a source that looks at another": {
		CheckImports, "collector/httpsource/x.go", "package httpsource\nimport _ \"" + module + "collector/track\"\n", "must not import collector/track",
	},
	"a test that looks across": {
		CheckImports, "exporter/x_test.go", "package exporter\nimport _ \"" + module + "rules\"\n", "",
	},
	"a package outside the table": {
		CheckImports, "elsewhere/x.go", "package elsewhere\n", "has no place",
	},
	"a second YAML decoder": {
		CheckImports, "rules/x.go", "package rules\nimport _ \"gopkg.in/yaml.v3\"\n", "only internal/strictyaml",
	},
	"a goroutine in a pure package": {
		CheckPure, "rules/x.go", "package rules\nfunc f() { go f() }\n", "must not start goroutines",
	},
	"a clock in a pure package": {
		CheckPure, "collector/track/x.go", "package track\nimport \"time\"\nvar now = time.Now\n", "must not use time.Now",
	},
	"a duration in a pure package": {
		CheckPure, "collector/track/x.go", "package track\nimport \"time\"\nvar d = time.Second\n", "",
	},
	"files in a pure package": {
		CheckPure, "event/x.go", "package event\nimport _ \"os\"\n", "must not import os",
	},
	"a clock at the edge": {
		CheckPure, "internal/app/x.go", "package app\nimport \"time\"\nvar now = time.Now\n", "",
	},
	"a test that sleeps": {
		CheckSleep, "event/x_test.go", "package event\nimport \"time\"\nfunc f() { time.Sleep(1) }\n", "sleeps",
	},
	"a test that sleeps in a bubble": {
		CheckSleep, "event/x_test.go", "package event\nimport (\n\"time\"\n_ \"testing/synctest\"\n)\nfunc f() { time.Sleep(1) }\n", "",
	},
	"a metric without our name": {
		CheckMetricNames, "exporter/x.go", "package exporter\nvar o = prometheus.CounterOpts{Name: \"drops_total\"}\n", "must begin with stategauge_",
	},
	"a metric with our name": {
		CheckMetricNames, "exporter/x.go", "package exporter\nvar o = prometheus.CounterOpts{Name: \"stategauge_drops_total\"}\n", "",
	},
	"a long file": {
		CheckSize, "event/x.go", "package event\n" + strings.Repeat("\n", maxFileLines), "601 lines",
	},
	"a long function": {
		CheckSize, "event/x.go", "package event\nfunc f() {" + strings.Repeat("\n", maxFuncLines) + "}\n", "func f of 91 lines",
	},
	"a function of the greatest length": {
		CheckSize, "event/x.go", "package event\nfunc f() {" + strings.Repeat("\n", maxFuncLines-1) + "}\n", "",
	},
	"an exported function without a comment": {
		CheckExportedDocs, "event/x.go", "package event\nfunc F() {}\n", "exported func F",
	},
	"a method of a type nobody sees": {
		CheckExportedDocs, "event/x.go", "package event\nfunc (t *thing) F() {}\n", "",
	},
	"a method of a type that everybody sees": {
		CheckExportedDocs, "event/x.go", "package event\nfunc (t *Thing[T]) F() {}\n", "exported func F",
	},
	"an exported type without a comment": {
		CheckExportedDocs, "event/x.go", "package event\ntype T int\n", "exported T",
	},
	"constants under one comment": {
		CheckExportedDocs, "event/x.go", "package event\n// The values.\nconst (\nA = 1\nB = 2\n)\n", "",
	},
	"a constant with a comment behind it": {
		CheckExportedDocs, "event/x.go", "package event\nconst (\nA = 1 // one\n)\n", "",
	},
	"a vague name": {
		CheckPackageName, "internal/util/x.go", "package util\n", "says nothing",
	},
}

// Every rule must find a breach of it, or the test above proves nothing.
func TestEachRuleFindsItsBreach(t *testing.T) {
	for name, c := range breaches {
		t.Run(name, func(t *testing.T) {
			f, err := Parse(c.path, c.text)
			if err != nil {
				t.Fatal(err)
			}
			expectFault(t, c.check(f), c.want)
		})
	}
}

func expectFault(t *testing.T, got []Fault, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) != 0:
		t.Errorf("found %v, want nothing", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), want)):
		t.Errorf("found %v, want one fault with %q", got, want)
	}
}

func TestMarksOfUnfinishedWorkAreFound(t *testing.T) {
	for _, mark := range []string{"TO" + "DO", "FIX" + "ME", "X" + "XX", "not " + "implemented"} {
		expectFault(t, CheckLeftOpen("docs/x.md", "fine\nhere: "+mark+" later\n"), "docs/x.md:2: left open: "+mark)
	}
	expectFault(t, CheckLeftOpen("docs/x.md", "TODOS in Spanish, and a MAXXX\n"), "")
}

func TestPackageCommentIsLookedForInAllFiles(t *testing.T) {
	parse := func(name, text string) *File {
		f, err := Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	bare := parse("a/x.go", "package a\n")
	expectFault(t, CheckPackageDocs([]*File{bare}), "package a has no package comment")
	expectFault(t, CheckPackageDocs([]*File{bare, parse("a/doc.go", "// Package a is documented.\npackage a\n")}), "")
	expectFault(t, CheckPackageDocs([]*File{bare, parse("a/x_test.go", "// A test.\npackage a\n")}), "has no package comment")
}

func TestAMetricThatTheDocumentationForgotIsFound(t *testing.T) {
	f, err := Parse("exporter/x.go", "package exporter\nvar n = \"stategauge_drops_total\"\n")
	if err != nil {
		t.Fatal(err)
	}
	expectFault(t, CheckMetricsDocumented(f, "| `stategauge_drops` | `stategauge_drops_total_x` |"), "does not explain stategauge_drops_total")
	expectFault(t, CheckMetricsDocumented(f, "| `stategauge_drops_total` |"), "")
}

func TestTheTableOfLayersHasNoCycle(t *testing.T) {
	var visit func(dir string, path []string)
	visit = func(dir string, path []string) {
		if slices.Contains(path, dir) {
			t.Fatalf("cycle: %s", strings.Join(append(path, dir), " -> "))
		}
		for _, l := range layers {
			if l.dir == dir {
				for _, may := range l.may {
					if !strings.HasSuffix(may, "/...") {
						visit(may, append(path, dir))
					}
				}
			}
		}
	}
	for _, l := range layers {
		visit(l.dir, nil)
	}
}
