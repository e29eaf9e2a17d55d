package replay

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules"
)

func caseOptions() CaseOptions {
	return CaseOptions{
		Rules: func(files []string) (*rules.Pack, error) {
			in := []rules.Source{}
			for _, f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					return nil, err
				}
				in = append(in, rules.Source{Name: f, Data: data})
			}
			return rules.Load(in...)
		},
		RuleFiles: []string{filepath.Join("testdata", "cases", "uploads.rules.yaml")},
		Scenario: func(name string) (string, []byte, error) {
			for _, s := range []string{"steady", "commit-sync-rising"} {
				if s == name {
					data, err := configs.Scenarios().Open(name + ".yml")
					if err != nil {
						return "", nil, err
					}
					defer data.Close()
					text := make([]byte, 1<<20)
					n, err := data.Read(text)
					return name, text[:n], err
				}
			}
			return "", nil, errors.New("unknown scenario")
		},
	}
}

func runFile(t *testing.T, name string) ([]CaseResult, error) {
	t.Helper()
	file := filepath.Join("testdata", "cases", name)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return RunCases(t.Context(), file, data, caseOptions())
}

func runText(t *testing.T, text string) ([]CaseResult, error) {
	t.Helper()
	return RunCases(t.Context(), "tests.yaml", []byte(text), caseOptions())
}

func TestRulesThatDoAsExpectedPass(t *testing.T) {
	results, err := runFile(t, "passing.yaml")
	if err != nil || len(results) != 2 {
		t.Fatalf("%d results, error %v", len(results), err)
	}
	for _, r := range results {
		if len(r.Failures) > 0 {
			t.Errorf("%s: %s", r.Name, strings.Join(r.Failures, "\n"))
		}
	}
}

func TestAFailureSaysExactlyWhatDiffers(t *testing.T) {
	results, err := runFile(t, "failing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, r := range results {
		fmt.Fprintf(&out, "line %d: %s\n", r.Line, r.Name)
		for _, f := range r.Failures {
			fmt.Fprintln(&out, f)
		}
	}
	golden(t, "failing.golden", out.String())
}

func TestEveryFaultOfATestFileIsNamedWithItsLine(t *testing.T) {
	_, err := runFile(t, "bad.yaml")
	var faults strictyaml.Faults
	if !errors.As(err, &faults) {
		t.Fatalf("error %v", err)
	}
	golden(t, "bad.golden", faults.Error()+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "cases", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

func TestEventsAndScenariosCanBePlayed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, []byte(uploadsSlowedDown("shop", 300, 150, 300).text()), 0o600); err != nil {
		t.Fatal(err)
	}
	results, err := runText(t, fmt.Sprintf(`
tests:
  - name: a file
    events: %q
    expect: [{alert: UploadSlower, query: shop, operator: dedupe, from: 1h, by: 90m}]
  - name: a scenario
    scenario: steady
    batches: 30
    seed: 7
    size: 1.5
    spark_version: 4.1
    never: [others]
`, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if len(r.Failures) > 0 {
			t.Errorf("%s: %s", r.Name, strings.Join(r.Failures, "\n"))
		}
	}
	if _, err := runText(t, "tests: [{events: [/nowhere/at/all], never: [others]}]"); err == nil || !strings.Contains(err.Error(), `test "test 1"`) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestTheShortNotationIsReadAsWritten(t *testing.T) {
	none := math.NaN()
	for _, c := range []struct {
		text     string
		want     []float64
		constant bool
	}{
		{"7", []float64{7}, true},
		{"7x3", []float64{7, 7, 7}, false},
		{"1 2", []float64{1, 2}, false},
		{"7+2x3 _x2", []float64{7, 9, 11, none, none}, false},
		{"7-0.5x2", []float64{7, 6.5}, false},
		{"-7-1x2", []float64{-7, -8}, false},
		{"1e3x2", []float64{1000, 1000}, false},
		{"1e-3x1", []float64{0.001}, false},
		{"_", []float64{none}, true},
	} {
		got, constant, err := parseNotation(c.text)
		if err != nil || constant != c.constant || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%q: %v, constant %t, error %v", c.text, got, constant, err)
		}
	}
	for text, want := range map[string]string{
		"": "needs a value", "x5": "is no number", "5x0": `"0" is no number of batches`, "5x2x2": "number of batches",
		"5~3x2": "is no share", "5~-1%x2": "is no number", "NaN": "is no number", "5+x2": "is no number", "1x2000000": "more than 1000000 batches",
	} {
		if _, _, err := parseNotation(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestAWobbleStaysWithinItsShareAndIsAlwaysTheSame(t *testing.T) {
	a, _, err := parseNotation("100~5%x5000")
	if err != nil {
		t.Fatal(err)
	}
	b, _, _ := parseNotation("100~5%x5000")
	sum := 0.0
	for i := range a {
		if a[i] != b[i] || a[i] < 95 || a[i] > 105 {
			t.Fatalf("batch %d: %v and %v", i, a[i], b[i])
		}
		sum += a[i]
	}
	if mean := sum / 5000; mean < 99.8 || mean > 100.2 {
		t.Errorf("mean %v", mean)
	}
}

func FuzzNotation(f *testing.F) {
	for _, s := range []string{"7", "7x60", "7+2x60 5~3%x4 _", "-1e-3-2x5", "5~", "+x", "_x9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, _, err := parseNotation(text)
		if err == nil && (len(values) == 0 || len(values) > maxNoted) {
			t.Errorf("%d values", len(values))
		}
	})
}
