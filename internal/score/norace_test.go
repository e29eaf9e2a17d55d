//go:build !race

package score

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whole scores on one goroutine, again and again: the race detector has nothing to see
// in them and makes minutes of them.

// keptRun scores and tells what was measured and what was there.
func keptRun(ctx context.Context, t *testing.T, o Options) (report string, measured, there int, err error) {
	t.Helper()
	var mu sync.Mutex
	o.Say = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(fmt.Sprintf(format, args...), "was there)") {
			there++
		} else {
			measured++
		}
	}
	r, err := Run(ctx, o)
	if err != nil {
		return "", measured, there, err
	}
	r.Seconds = 0
	for i := range r.Healthy {
		r.Healthy[i].Seconds = 0
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), measured, there, nil
}

func TestAScoreThatWasInterruptedGoesOnWhereItWas(t *testing.T) {
	o := keptOptions(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	o.Say = func(string, ...any) {
		if n++; n == 4 {
			stop()
		}
	}
	if _, err := Run(ctx, o); err == nil {
		t.Fatal("it was not interrupted")
	}
	got, measured, there, err := keptRun(t.Context(), t, o)
	if err != nil || there < 4 || measured == 0 {
		t.Errorf("%d parts were there, %d measured, error %v", there, measured, err)
	}
	whole := o
	whole.KeepDir = ""
	want, all, _, err := keptRun(t.Context(), t, whole)
	if err != nil || all != measured+there {
		t.Errorf("%d parts in one go, %d and %d in two, error %v", all, there, measured, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interrupted it says something else: %s", diff)
	}
	if again, measured, _, err := keptRun(t.Context(), t, o); err != nil || measured != 0 || again != want {
		t.Errorf("%d parts measured again, error %v, %s", measured, err, cmp.Diff(want, again))
	}
}

func TestPartsOfOtherRulesProgramsSeedsAndSizesAreNotMixedIn(t *testing.T) {
	o := keptOptions(t)
	o.TradeOff = 0
	if _, _, there, err := keptRun(t.Context(), t, o); err != nil || there != 0 {
		t.Fatalf("%d parts were there, error %v", there, err)
	}
	for _, c := range []struct {
		name   string
		change func(o *Options)
		there  int // the healthy play and the world depend on neither size nor, but for the seed, on faults
	}{
		{"nothing", func(*Options) {}, 3},
		{"the rules", func(o *Options) { o.Rules[0].Data = []byte(strings.Replace(quickRules, "for: 8", "for: 9", 1)) }, 0},
		{"the program", func(o *Options) { o.Program = "two" }, 0},
		{"the seed", func(o *Options) { o.FirstSeed = 2 }, 0},
		{"the size", func(o *Options) { o.Sizes = []float64{2} }, 2},
		{"the number of healthy batches", func(o *Options) { o.Healthy = []HealthyRun{{time.Minute, 300}} }, 2},
		{"the trigger", func(o *Options) { o.Healthy = []HealthyRun{{2 * time.Minute, 600}} }, 2},
		{"fresh", func(o *Options) { o.Fresh = true }, 0},
	} {
		changed := o
		changed.Rules = append(changed.Rules[:0:0], o.Rules...)
		c.change(&changed)
		if _, _, there, err := keptRun(t.Context(), t, changed); err != nil || there != c.there {
			t.Errorf("%s changed: %d parts were taken over, want %d, error %v", c.name, there, c.there, err)
		}
	}
}

// The cost of what is done must add up to what was expected, or the progress ends too early
// or never.
func TestALeastSilenceIsMeasuredAndKeptApartFromOthers(t *testing.T) {
	const plays = 2
	o := Options{
		Rules: wholeSources(), Delays: plays, FirstSeed: 1, CacheDir: t.TempDir(), KeepDir: filepath.Join(t.TempDir(), "parts"), Program: "one", Parallel: 1,
	}.withDefaults()
	measure := func() (rows []HungRow, done, want, fresh float64) {
		x, err := o.runner(wholePack(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		if rows, err = x.hungTradeOff(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := x.progress
		return rows, p.done, p.total - playCost*float64(plays*len(delayCases)), p.fresh
	}
	rows, done, want, _ := measure()
	if math.Abs(done-want) > 1e-9 || done == 0 {
		t.Errorf("cost %v, expected %v", done, want)
	}
	if len(rows) != len(hungLeast) {
		t.Fatalf("%+v", rows)
	}
	for i, least := range []float64{60, 120, 240} {
		r := &rows[i]
		// From when the batch was due: the silence begins up to an interval before, and is
		// looked at with each heartbeat and each tick.
		if r.Found != plays || r.Trigger != "10s" || r.AtLeast != hungLeast[i] || r.Seconds < least-10 || r.Seconds > least+15 || math.Abs(r.Seconds-10*r.Median) > 0.01 {
			t.Errorf("%+v", r)
		}
	}
	kept, err := filepath.Glob(filepath.Join(o.KeepDir, "delay-*.json"))
	if err != nil || len(kept) != plays*len(hungLeast) {
		t.Errorf("%d parts are kept, error %v", len(kept), err)
	}
	again, _, _, fresh := measure()
	if diff := cmp.Diff(rows, again); diff != "" || fresh != 0 {
		t.Errorf("measured again: cost %v, %s", fresh, diff)
	}
}
