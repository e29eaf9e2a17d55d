package fidelity

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	update  = flag.Bool("update", false, "rewrite docs/fidelity.md and print it")
	figures = flag.String("figures", "", "print these figures, separated by commas, batch by batch")
)

const page = "../../docs/fidelity.md"

// runs loads all captured runs.
func runs(t *testing.T) []*Run {
	t.Helper()
	all, err := LoadAll(filepath.Join("..", "..", "testdata", "spark"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 23 {
		t.Fatalf("%d captured runs, want 23 at least", len(all))
	}
	return all
}

// twinOf plays a run once more.
func twinOf(t *testing.T, r *Run) *Comparison {
	t.Helper()
	twin, err := r.Play(1)
	if err != nil {
		t.Fatal(err)
	}
	if len(twin) != r.Played {
		t.Fatalf("the twin has %d batches, want %d", len(twin), r.Played)
	}
	show(t, r.Batches, twin)
	return Compare(r, twin)
}

func show(t *testing.T, spark, twin []Batch) {
	t.Helper()
	for name := range strings.SplitSeq(*figures, ",") {
		for i := range twin {
			for path := range spark[i].Values {
				if name != "" && strings.HasSuffix(path, name) {
					t.Logf("batch %d %s: %g, twin %g", i, path, spark[i].Values[path], twin[i].Values[path])
				}
			}
		}
	}
}

// TestSimulatorSaysWhatSparkSaid holds every captured run to its twin. Under the
// race detector, which makes it slow, short stretches must have the same keys and
// relations.
func TestSimulatorSaysWhatSparkSaid(t *testing.T) {
	if raceEnabled {
		t.Skip("see TestShortTwinsHaveSparksKeysAndRelations")
	}
	var all []*Comparison
	needed := map[int]bool{}
	for _, r := range runs(t) {
		t.Run(r.Title(), func(t *testing.T) {
			if testing.Short() && r.Played < len(r.Batches) {
				t.Skip("long")
			}
			c := twinOf(t, r)
			for _, fault := range c.Faults() {
				t.Error(fault)
			}
			for i := range c.Excused() {
				needed[i] = true
			}
			all = append(all, c)
		})
	}
	if *update {
		writePage(t, all)
	}
	if len(all) < len(runs(t)) {
		return
	}
	for i := range Exceptions {
		if !needed[i] {
			t.Errorf("no run needs the exception for %v of %v any more", Exceptions[i].Figures, Exceptions[i].Runs)
		}
	}
}

func writePage(t *testing.T, all []*Comparison) {
	t.Helper()
	text := Table(all)
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString(text)
}

func TestShortTwinsHaveSparksKeysAndRelations(t *testing.T) {
	if !raceEnabled {
		t.Skip("see TestSimulatorSaysWhatSparkSaid")
	}
	for _, r := range runs(t) {
		t.Run(r.Title(), func(t *testing.T) {
			if r.Job == "join" || r.Spec.Pad > 0 {
				t.Skip("thousands of reads a batch")
			}
			r.Played = min(8, r.Played)
			c := twinOf(t, r)
			if len(c.Missing)+len(c.Extra) > 0 {
				t.Errorf("the twin lacks %v, Spark has no %v", c.Missing, c.Extra)
			}
			for _, s := range c.Sums {
				if s.BrokenTwin > s.BrokenSpark {
					t.Errorf("%s: broken in %d batches", s.What, s.BrokenTwin)
				}
			}
		})
	}
}

func TestPageNamesEveryRunAndException(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, r := range runs(t) {
		if !strings.Contains(text, "| "+r.Title()+" |") {
			t.Errorf("%s lacks run %s: make fidelity", page, r.Title())
		}
	}
	for i := range Exceptions {
		var row strings.Builder
		Exceptions[i].row(&row)
		if !strings.Contains(text, row.String()) {
			t.Errorf("%s lacks the exception %s", page, row.String())
		}
	}
}

func TestTwinOfARunIsTheSameEachTime(t *testing.T) {
	for _, r := range runs(t) {
		if r.Title() != "4.3.0 agg-changelog" {
			continue
		}
		r.Played = 10
		a, err := r.Play(7)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Play(7)
		if err != nil {
			t.Fatal(err)
		}
		for i := range a {
			for path, x := range a[i].Values {
				if y := b[i].Values[path]; x != y {
					t.Fatalf("batch %d %s: %g and %g", i, path, x, y)
				}
			}
		}
	}
}
