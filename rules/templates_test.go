package rules

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTemplates runs testdata: a template in, its text over one finding out.
func TestTemplates(t *testing.T) {
	d := &Data{
		Alert: "CommitSyncLatencyRising", Operator: "dedupe", OperatorIndex: 1, Signal: "commit_sync", Unit: "seconds", Trigger: "interval",
		Query:  QueryData{ID: "q-1", Name: "orders", Application: "shop", Cluster: "east"},
		Labels: map[string]string{"severity": "ticket", "spark_cluster": ""},
		Value:  0.64, Start: 0.31, End: 0.62, Rise: 0.31, Relative: 1, SlopePerBatch: 0.0026, How: "trend", Points: 120, SpanSeconds: 7380,
		FirstBatch: 4711, FiringBatch: 4760, LastBatch: 4765,
		Evidence: map[string]Change{
			"copied": {Name: "copied", Unit: "count", Before: 1 << 20, After: 3 << 20},
			"flat":   {Name: "flat", Unit: "count", Before: 5, After: 5},
		},
		Phases: []Change{
			{Name: "addBatch", Unit: "seconds", Before: 1, After: 2.7, Phase: true, Share: 0.85},
			{Name: "walCommit", Unit: "seconds", Before: 0.1, After: 0.4, Phase: true, Share: 0.15},
		},
		Cause: "commit",
	}
	datadriven.RunTest(t, "testdata/templates", func(t *testing.T, td *datadriven.TestData) string {
		var b strings.Builder
		for _, text := range strings.Split(td.Input, "\n") {
			tmpl, err := parseTemplate(text)
			if err != nil {
				b.WriteString("load: " + err.Error() + "\n")
				continue
			}
			got, err := execute(tmpl, d)
			if err != nil {
				got = "run: " + explain(err, d)
			}
			b.WriteString(got + "\n")
		}
		return b.String()
	})
}
