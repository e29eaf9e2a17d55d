package rules

import (
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// watched plays values of one column, a batch a minute, and returns the ring.
func watched(over Extent, value func(i int64) float64, n int64) (*evidenceRing, []evidenceColumn) {
	at := 0.0
	columns := []evidenceColumn{{name: "x", unit: "count", expr: &expression{
		eval: func(*event.Vector, *event.Batch, *event.Operator, *Facts) float64 { return at },
	}}}
	r := newEvidenceRing(1, over)
	var m memo
	m.forget(0, nil)
	b := &event.Batch{}
	b.Reset()
	for i := range n {
		at = value(i)
		r.push(columns, i, i*minuteMs, b, nil, &unknownFacts, &m)
	}
	return r, columns
}

func TestEvidenceSplitsAtTheBatchWhereItBegan(t *testing.T) {
	step := func(i int64) float64 {
		if i < 200 {
			return 1
		}
		return 3
	}
	r, columns := watched(Extent{Batches: 120}, step, 300)
	got := changes(columns, r.before(200, nil), r.after(nil))[0]
	if got.Before != 1 || got.After != 3 || got.Rise() != 2 || got.Relative() != 2 || got.Name != "x" {
		t.Errorf("got %+v", got)
	}
}

func TestASpikeDoesNotMakeEvidence(t *testing.T) {
	spiky := func(i int64) float64 {
		if i%60 == 0 {
			return 1000
		}
		return 1
	}
	r, columns := watched(Extent{Batches: 120}, spiky, 300)
	got := changes(columns, r.before(150, nil), r.after(nil))[0]
	if got.Before != 1 || got.After != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestEvidenceOutOfReachFallsBackToTheOldestBlocks(t *testing.T) {
	r, columns := watched(Extent{Batches: 120}, func(i int64) float64 { return float64(i) }, 1000)
	got := changes(columns, r.before(10, nil), r.after(nil))[0]
	if !(got.Before > 600 && got.Before < got.After) {
		t.Errorf("got %+v", got)
	}
}

func TestEvidenceWithoutBatchesIsUnknown(t *testing.T) {
	r := newEvidenceRing(2, Extent{Batches: 120})
	columns := []evidenceColumn{{name: "a"}, {name: "b", phase: true}}
	for _, got := range changes(columns, r.before(5, nil), r.after(nil)) {
		if !math.IsNaN(got.Before) || !math.IsNaN(got.After) || got.Relative() != 0 || got.Share != 0 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestAbsentFiguresAreLeftOutOfTheirBlock(t *testing.T) {
	gappy := func(i int64) float64 {
		if i%2 == 0 {
			return math.NaN()
		}
		return 5
	}
	r, columns := watched(Extent{Batches: 120}, gappy, 300)
	if got := changes(columns, r.before(150, nil), r.after(nil))[0]; got.Before != 5 || got.After != 5 {
		t.Errorf("got %+v", got)
	}
}

func TestBlocksLastAsLongAsTheWindowAsks(t *testing.T) {
	r, _ := watched(Extent{Batches: 12, Ms: 24 * hourMs}, func(int64) float64 { return 1 }, 245)
	if r.n != 2 {
		t.Errorf("four hours of minutes make %d blocks of two hours, want 2", r.n)
	}
	r.reset()
	if r.n != 0 || r.open.Batches != 0 || r.counts[0] != 0 {
		t.Errorf("a reset left %+v", r.open)
	}
}

func TestPhasesShareTheRise(t *testing.T) {
	columns := []evidenceColumn{{name: "addBatch", phase: true}, {name: "walCommit", phase: true}, {name: "getBatch", phase: true}, {name: "sst"}}
	got := changes(columns, []float64{1, 1, 2, 10}, []float64{4, 2, 1, 99})
	for i, want := range []float64{0.75, 0.25, 0, 0} {
		if got[i].Share != want {
			t.Errorf("%s: share %v, want %v", got[i].Name, got[i].Share, want)
		}
	}
}

func TestTheTriggersPhasesComeWithItsDuration(t *testing.T) {
	p := defaultPack(t)
	names := map[string]bool{}
	for _, r := range p.rules {
		for _, e := range r.evidence {
			names[r.alert+"/"+e.name] = e.phase
		}
	}
	for name, phase := range map[string]bool{
		"BatchDurationRising/addBatch": true, "BatchDurationRising/latestOffset": true, "BatchDurationRising/unaccounted": true,
		"BatchDurationRising/state_commit": false, "CommitSyncLatencyRising/copied_bytes": false,
	} {
		if got, ok := names[name]; !ok || got != phase {
			t.Errorf("%s: watched %v, phase %v", name, ok, got)
		}
	}
	if _, ok := names["BatchDurationRising/triggerExecution"]; ok {
		t.Error("the whole trigger is taken for a phase of itself")
	}
}
