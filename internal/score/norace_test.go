//go:build !race

package score

import (
	"bytes"
	"context"
	"fmt"
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
