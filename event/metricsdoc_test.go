package event

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	metricsDoc = "../docs/metrics.md"
	docBegin   = "<!-- made from the catalog by `make generate`: begin -->\n"
	docEnd     = "<!-- made from the catalog by `make generate`: end -->\n"
)

func TestMetricsDocIsCurrent(t *testing.T) {
	before, rest, ok := strings.Cut(readFile(t, metricsDoc), docBegin)
	_, after, ok2 := strings.Cut(rest, docEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its generated part", metricsDoc)
	}
	want := before + docBegin + catalogMarkdown() + docEnd + after
	if *update {
		writeFile(t, metricsDoc, want)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(readFile(t, metricsDoc), "\n")); diff != "" {
		t.Errorf("%s is not what the catalog says; run `make generate` (-catalog +file)\n%s", metricsDoc, diff)
	}
}

func TestMetricsDocNamesEveryKeyAndSeries(t *testing.T) {
	doc := catalogMarkdown()
	for _, m := range Catalog() {
		if !strings.Contains(doc, "`"+m.JSON+"`") || !strings.Contains(doc, "`"+seriesText(m)+"`") {
			t.Errorf("metric %d (%s, %s) is not in the text", m.ID, m.JSON, m.Series)
		}
	}
}

// catalogMarkdown renders the catalog, one table for each object of a progress.
func catalogMarkdown() string {
	titles := []string{"Query and sink", "Stateful operators", "Sources"}
	var b strings.Builder
	for scope, title := range titles {
		fmt.Fprintf(&b, "\n### %s\n\n", title)
		b.WriteString("| Spark's key | series | unit | kind | since | provider | what it is |\n")
		b.WriteString("|---|---|---|---|---|---|---|\n")
		for _, m := range Catalog() {
			if m.Scope == Scope(scope) {
				b.WriteString(catalogLine(m))
			}
		}
	}
	b.WriteString("\n")
	return b.String()
}

func catalogLine(m Metric) string {
	what := m.Help
	if m.Quirks != 0 {
		what += " *" + m.Quirks.String() + "*"
	}
	since := m.Since.String()
	if m.Since.IsZero() {
		since = "Databricks"
	}
	return fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s | %s |\n", m.JSON, seriesText(m), m.Unit, m.Kind, since, m.Provider, what)
}
