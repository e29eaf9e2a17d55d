package score

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

func donorForTest(t testing.TB) *donor {
	t.Helper()
	list := donorsOf("made", streamOf(always, always).lines)
	if len(list) == 0 {
		t.Fatal("no donor")
	}
	return list[0]
}

func TestDonorsAreSteadyRunsWithoutTheirWarmUp(t *testing.T) {
	d := donorForTest(t)
	if len(d.batches) != 280 || d.batches[0].ID != 1020 || d.slowMs < 2000 || d.slowMs > 2200 {
		t.Errorf("%d batches from %d, %v ms", len(d.batches), d.batches[0].ID, d.slowMs)
	}
	if !d.fits(10_000) || d.fits(4000) {
		t.Error("batches of two seconds fit into ten and not into four")
	}
	short := &stream{}
	for n := range donorWarmUp + donorLeast - 1 {
		short.lines = append(short.lines, line("q", n, 60e9, 50, 2000)...)
	}
	if got := donorsOf("short", short.lines); len(got) != 0 {
		t.Error("a short run became a donor")
	}
}

func TestHealthyBatchesAreInOrderAndEndInTime(t *testing.T) {
	const every = 60_000
	d := donorForTest(t)
	q := newHealthyQuery(d, every, 0, 7)
	last, runs := int64(-1), 0
	for n := range int64(20_000) {
		list := q.next()
		for _, u := range list[:len(list)-1] {
			if u.Outcome == event.OutcomeStarted {
				runs++
			}
		}
		u := list[len(list)-1]
		b := u.Event.Batch
		if b.ID != last+1 || b.Run != u.Event.Run || u.Outcome != event.OutcomeExecuted {
			t.Fatalf("batch %d after %d", b.ID, last)
		}
		last = b.ID
		if took := b.EndMs() - b.StartMs; took <= 0 || took > every*9/10+longestPauseMs {
			t.Fatalf("batch %d takes %d ms", n, took)
		}
		if add, whole := b.Values[event.DurationAddBatch], b.Values[event.DurationTriggerExecution]; math.Abs(add-whole) > 1e-6 {
			t.Fatalf("phases of batch %d do not add up any more: %v of %v", n, add, whole)
		}
	}
	if want := 20_000.0 * every / dayMs / restartDays; float64(runs) < want/4 || float64(runs) > 4*want+2 {
		t.Errorf("%d runs, want about %v", runs, want)
	}
	if d.batches[0].ID != 1020 || d.batches[0].Values[event.DurationAddBatch] > 2200 {
		t.Error("the donor was changed")
	}
}

func TestTriggersThatAreDueInAPauseDoNotHappenAndTheNextReadsForThem(t *testing.T) {
	for _, every := range []int64{10_000, 60_000, 900_000} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			q := newHealthyQuery(slowDonor(t, 2000)[0], every, 0, 7)
			q.noise.pauses = 40
			const batches = 20_000
			dueMs, behind, skipped := healthyStartMs+q.offset, int64(0), int64(0)
			for id := range int64(batches) {
				list := q.next()
				b := list[len(list)-1].Event.Batch
				took := b.EndMs() - b.StartMs
				if b.ID != id || b.StartMs != dueMs {
					t.Fatalf("batch %d starts at %d, want batch %d at %d", b.ID, b.StartMs, id, dueMs)
				}
				if rows := b.Values[event.NumInputRows]; behind > 0 && rows < 1000*float64(behind)/2 {
					t.Fatalf("batch %d reads %v rows, %d triggers did not happen", id, rows, behind)
				}
				behind = 0
				for dueMs += every; dueMs < b.EndMs(); dueMs += every {
					behind++
				}
				skipped += behind
				if q.behind != behind {
					t.Fatalf("%d triggers are due while batch %d takes %d ms, want %d", q.behind, id, took, behind)
				}
			}
			if short := every < longestPauseMs; short != (skipped > 0) {
				t.Errorf("%d triggers did not happen", skipped)
			}
		})
	}
}

func TestPausesAreAsLongAndAsRareAsTheyAreMeantToBe(t *testing.T) {
	for seed := range uint64(20) {
		n := newNoise(rand.New(rand.NewPCG(seed, 1)))
		if n.pauses < 0 || n.pauses > mostPauses {
			t.Fatalf("%v pauses a day", n.pauses)
		}
		n.pauses = 1
		count, short := 0, 0
		const days = 3000
		for range int64(days * dayMs / 60_000) {
			if ms := n.pause(60_000); ms > 0 {
				count++
				short += one(ms < 24_500) // the middle of 5 and 120 seconds, as times go
				if ms < shortestPauseMs || ms > longestPauseMs {
					t.Fatalf("a pause of %v ms", ms)
				}
			}
		}
		if count < days*9/10 || count > days*11/10 || short < count*4/10 || short > count*6/10 {
			t.Errorf("%d pauses in %d days, %d of them short", count, days, short)
		}
	}
}

func TestNoiseStaysRoundItsLevelAndIsNeverTheSameTwice(t *testing.T) {
	for seed := range uint64(20) {
		n := newNoise(rand.New(rand.NewPCG(seed, 1)))
		m := newNoise(rand.New(rand.NewPCG(seed+100, 1)))
		var times, loads []float64
		same := 0
		for i := range int64(1440) {
			a, load := n.next(i * 60_000)
			b, _ := m.next(i * 60_000)
			times, loads = append(times, a), append(loads, load)
			if a == b {
				same++
			}
		}
		slices.Sort(times)
		slices.Sort(loads)
		if mid := times[720]; mid < 0.6 || mid > 1.7 {
			t.Errorf("seed %d: median factor %v", seed, mid)
		}
		if loads[0] < 0.3 || loads[1439] > 2 || same > 0 {
			t.Errorf("seed %d: load from %v to %v, %d the same", seed, loads[0], loads[1439], same)
		}
	}
}

const trigger1 = `
signals: {d: {of: query, value: duration_ms / 1000, unit: seconds}}
groups:
  - name: g
    rules:
      - {alert: Always, signal: d, above: {limit: 1ms}, labels: {severity: page, symptom: duration-rising}}
`

func runnerForTest(t testing.TB, o Options, pack *rules.Pack) *runner {
	t.Helper()
	x, err := o.runner(pack, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestWhatFiresOnHealthyQueriesIsCounted(t *testing.T) {
	o := Options{FirstSeed: 5}.withDefaults()
	pack := packOf(t, trigger1)
	e, err := runnerForTest(t, o, pack).healthy(t.Context(), HealthyRun{60e9, 1200}, []*donor{donorForTest(t)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if e.By["page"] < worldQueries || e.Rules["Always"] != e.By["page"] || e.Batches != 1200 {
		t.Errorf("%+v", e)
	}
	if len(e.Peers) != len(peerNames) || e.PeerDays <= 0 {
		t.Errorf("peers %v over %v days", e.Peers, e.PeerDays)
	}
}

func TestTimePassesInTheDaemonsTicksAndInFourToABatchAtLongIntervals(t *testing.T) {
	for every, want := range map[int64][]int64{
		10_000:  {6_250, 21_250},
		60_000:  {37_500, 52_500, 67_500, 82_500},
		900_000: {562_500, 787_500, 1_012_500, 1_237_500},
	} {
		w := newWorld(packOf(t, trigger1), []*donor{donorForTest(t)}, every, 1, 1, false)
		for _, ms := range want {
			if w.tickMs != healthyStartMs+ms {
				t.Errorf("batches each %d ms: a tick after %d ms, want %d", every, w.tickMs-healthyStartMs, ms)
			}
			w.tick()
		}
	}
}

func TestWhatThereIsNoTimeForIsLeftOut(t *testing.T) {
	o := Options{FirstSeed: 5}.withDefaults()
	pack, donors := packOf(t, trigger1), []*donor{donorForTest(t)}
	e, err := runnerForTest(t, o, pack).healthy(t.Context(), HealthyRun{60e9, 1e12}, donors, 20*time.Millisecond)
	if err != nil || e.Batches >= 1e12 || e.Asked != 1e12 {
		t.Errorf("%d of %d batches, error %v", e.Batches, e.Asked, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := runnerForTest(t, o, pack).healthy(ctx, HealthyRun{60e9, 1200}, donors, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestTheTimeIsSharedByTheRunsThatAreLeft(t *testing.T) {
	o := Options{Within: time.Hour}
	for _, c := range []struct {
		left  int
		spent time.Duration
		want  time.Duration
	}{{3, 0, 20 * time.Minute}, {2, 10 * time.Minute, 25 * time.Minute}, {1, 40 * time.Minute, 20 * time.Minute}, {1, 2 * time.Hour, time.Millisecond}} {
		if got := o.share(c.left, c.spent); got != c.want {
			t.Errorf("%d left after %v: %v, want %v", c.left, c.spent, got, c.want)
		}
	}
	if (&Options{}).share(3, time.Hour) != 0 {
		t.Error("a limit where none was set")
	}
}

func TestWorldsAreMadeBySeedAlone(t *testing.T) {
	count := func(family uint64) float64 {
		w := newWorld(packOf(t, trigger1), []*donor{donorForTest(t)}, 60_000, family, 3, false)
		sum := 0.0
		for range int64(200) {
			for _, q := range w.queries {
				list := q.next()
				ms, _ := list[len(list)-1].Event.Batch.DurationMs()
				sum += ms
			}
		}
		return sum
	}
	if a, b, c := count(1), count(1), count(2); a != b || a == c {
		t.Errorf("%v, again %v, another family %v", a, b, c)
	}
}

// BenchmarkHealthyBatch is what one healthy batch costs, made and judged.
func BenchmarkHealthyBatch(b *testing.B) {
	quick, whole := packOf(b, quickRules), wholePack(b)
	for _, c := range []struct {
		name     string
		pack     *rules.Pack
		every    int64
		listened bool
	}{
		{"made only", packOf(b, "groups: []"), 60_000, false},
		{"and judged by three rules", quick, 60_000, false},
		{"by all rules, 10s", whole, 10_000, false},
		{"by all rules, 10s, heartbeats", whole, 10_000, true},
		{"by all rules, 1m", whole, 60_000, false},
		{"by all rules, 1m, heartbeats", whole, 60_000, true},
		{"by all rules, 15m", whole, 900_000, false},
		{"by all rules, 15m, heartbeats", whole, 900_000, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(c.pack, []*donor{donorForTest(b)}, c.every, 1, 1, c.listened)
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := w.run(b.Context(), int64(b.N/worldQueries+1)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "batches/s")
		})
	}
}

// wholePack are the rules that come with stategauge.
func wholePack(t testing.TB) *rules.Pack {
	t.Helper()
	pack, err := rules.Load(wholeSources()...)
	if err != nil {
		t.Fatal(err)
	}
	return pack
}

func wholeSources() (out []rules.Source) {
	for _, f := range configs.Rules() {
		out = append(out, rules.Source{Name: f.Name, Data: f.Data})
	}
	return out
}

func TestRecordedEventsBecomeDonorsToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if err := os.WriteFile(file, streamOf(always, always).lines, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := donorsIn(t.Context(), []string{file})
	if err != nil || len(got) != 2 || got[0].name != "recorded" {
		t.Errorf("%d donors, error %v", len(got), err)
	}
	if _, err := donorsIn(t.Context(), []string{"/nowhere/at/all"}); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestAQueryThatFallsSilentIsFoundWhateverTheTrigger(t *testing.T) {
	pack := wholePack(t)
	for _, every := range []int64{10_000, 60_000, 900_000} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			w := newWorld(pack, slowDonor(t, 2000), every, 1, 2, false)
			w.begin()
			w.until(halfway(w, 300))
			w.turns[2].atMs = never
			w.until(halfway(w, 300+3*dayMs/24/every))
			if n := w.rules["QuerySilentForLong"]; n != 1 {
				t.Errorf("found %d times, want once: %v", n, w.rules)
			}
		})
	}
}
