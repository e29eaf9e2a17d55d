package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of Grafana's model that the tests look at.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Datasource             struct{ UID string }
		}
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ X, Y, W, H int }
	Datasource struct{ UID string }
	Targets    []struct {
		Expr     string
		Exemplar bool
	}
}

// dashboards loads every dashboard by file name.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "configs", "grafana", "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	out := map[string]dashboard{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(b, &d); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[filepath.Base(f)] = d
	}
	return out
}

var seriesName = regexp.MustCompile(`\b(?:spark_streaming|stategauge)_[a-z0-9_]+`)

// documentedSeries are the names in docs/metrics.md, whose larger part is made
// from the catalog.
func documentedSeries(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{"up": true}
	for line := range strings.Lines(readFile(t, "docs", "metrics.md")) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, name := range seriesName.FindAllString(line, -1) {
			out[name] = true
			if strings.Contains(line, "| histogram |") {
				out[name+"_bucket"], out[name+"_sum"], out[name+"_count"] = true, true, true
			}
		}
	}
	if len(out) < 80 {
		t.Fatalf("only %d series found in docs/metrics.md", len(out))
	}
	return out
}

func checkSeries(t *testing.T, where, expr string, known map[string]bool) {
	t.Helper()
	for _, name := range seriesName.FindAllString(expr, -1) {
		if !known[name] {
			t.Errorf("%s: nobody exports %s", where, name)
		}
	}
}

func TestDashboardsAskForSeriesThatExist(t *testing.T) {
	known := documentedSeries(t)
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				checkSeries(t, file+", "+p.Title, target.Expr, known)
			}
		}
		for _, v := range d.Templating.List {
			checkSeries(t, file+", variable "+v.Name, v.Definition, known)
		}
	}
}

func TestASeriesThatNobodyExportsIsNoticed(t *testing.T) {
	known := documentedSeries(t)
	for _, name := range []string{"spark_streaming_batch_duration_seconds_bucket", "spark_streaming_state_rows", "stategauge_alerts"} {
		if !known[name] {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"spark_streaming_batch_duration", "spark_streaming_state_rows_bucket", "stategauge_nothing"} {
		if known[name] {
			t.Errorf("%s is known", name)
		}
	}
}

func TestDashboardVariablesAreDefinedAndUsed(t *testing.T) {
	variable := regexp.MustCompile(`\$\{?([a-z_]+)`)
	for file, d := range dashboards(t) {
		used := map[string]bool{}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			text := p.Datasource.UID
			for _, target := range p.Targets {
				text += " " + target.Expr
			}
			for _, m := range variable.FindAllStringSubmatch(text, -1) {
				used[m[1]] = true
			}
		}
		delete(used, "__rate_interval")
		for _, v := range d.Templating.List {
			if !used[v.Name] {
				t.Errorf("%s: variable %s is not used", file, v.Name)
			}
			delete(used, v.Name)
		}
		for name := range used {
			t.Errorf("%s: variable %s is not defined", file, name)
		}
	}
}

func TestEveryPanelIsNarrowedToTheChosenQueries(t *testing.T) {
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if strings.Contains(target.Expr, "stategauge_alerts") {
					continue // counts alerts, whatever they are of
				}
				selectors := seriesName.FindAllString(target.Expr, -1)
				narrowed := strings.Count(target.Expr, `application=~"$application", query_name=~"$query_name"`)
				if len(selectors) != narrowed {
					t.Errorf("%s, %s: %d series, %d narrowed: %s", file, p.Title, len(selectors), narrowed, target.Expr)
				}
			}
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	for file, d := range dashboards(t) {
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have id %d", file, p.ID)
			}
			ids[p.ID] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other, ok := cells[[2]int{x, y}]; ok {
						t.Fatalf("%s: %q lies on %q", file, p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

func TestDurationPanelsShowExemplars(t *testing.T) {
	for file, d := range dashboards(t) {
		n := 0
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if target.Exemplar {
					n++
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no panel shows exemplars, so no batch id can be read off", file)
		}
	}
}

// promtool parses PromQL only inside rule files, so every expression becomes a
// recording rule.
func TestDashboardExpressionsAreValidPromQL(t *testing.T) {
	promtool := lookPath(t, "promtool")
	fill := strings.NewReplacer("$__rate_interval", "5m", "$window", "1h", "$application", ".*", "$query_name", ".*", "$operator", ".*")
	var b strings.Builder
	b.WriteString("groups:\n- name: expressions\n  rules:\n")
	n := 0
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				n++
				fmt.Fprintf(&b, "  - {record: 'e:%d', expr: %q}\n", n, fill.Replace(target.Expr))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "expressions.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "check", "rules", file)
}
