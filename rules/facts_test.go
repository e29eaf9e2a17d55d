package rules

import (
	"fmt"
	"math"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// uploadsOf feeds batches whose upload figures are what f says.
func uploadsOf(n int, f func(i int) float64) *uploads {
	p := &uploads{}
	b := &event.Batch{}
	b.Reset()
	o := b.AddOperator()
	for i := range n {
		o.Values[event.NumRowsUpdated] = 10
		o.Values[event.RocksDBBytesCopied], o.Values[event.RocksDBZipFileBytesUncompressed] = f(i), 0
		p.push(b)
	}
	return p
}

func TestChangelogIsInferredFromUploadsThatStandStill(t *testing.T) {
	for name, tc := range map[string]struct {
		n    int
		f    func(i int) float64
		want float64
	}{
		"each batch uploads something else":      {40, func(i int) float64 { return float64(1000 + 7*i) }, 0},
		"one upload in ten batches":              {40, func(i int) float64 { return float64(1000 + i/10) }, 1},
		"nothing was uploaded yet":               {40, func(int) float64 { return 0 }, 1},
		"a repeat now and then proves nothing":   {64, func(i int) float64 { return float64(1000 + i - i%16/15) }, 0},
		"too few batches for a word":             {19, func(i int) float64 { return float64(i) }, math.NaN()},
		"figures that are absent are no batches": {40, func(int) float64 { return math.NaN() }, math.NaN()},
	} {
		if got := uploadsOf(tc.n, tc.f).changelog(); got != tc.want && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestFactsTakeWhatTheEnvelopeSays(t *testing.T) {
	f := unknownFacts
	f.tell(&event.Envelope{
		App: event.App{SparkVersion: "4.1.4"},
		Conf: map[string]string{
			stateStoreConf + changelogConf: "true", stateStoreConf + "rocksdb.maxMemoryUsageMB": "500",
			stateStoreConf + "maintenanceInterval": "60s", stateStoreConf + "minDeltasForSnapshot": "ten",
		},
		Executors: &event.Executors{Count: 4, Cores: 16, MemoryBytes: event.Absent, OverheadBytes: 1 << 30, Losses: 0, GCTimeMs: event.Absent},
	})
	got := map[Fact]float64{}
	for i, x := range f {
		if !math.IsNaN(x) {
			got[Fact(i)] = x
		}
	}
	want := map[Fact]float64{
		FactEnveloped: 1, FactChangelog: 1, FactMemoryCap: 500 << 20, FactMaintenanceMs: 60_000, FactSpark: 401,
		FactExecutors: 4, FactCores: 16, FactExecutorOverhead: 1 << 30, FactExecutorLosses: 0,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestTimesAreReadAsSparkWritesThem(t *testing.T) {
	for text, want := range map[string]float64{"60s": 60_000, "1min": 60_000, "250": 250, "2h": 7_200_000, "5 minutes": 300_000, "soon": math.NaN(), "": math.NaN()} {
		f := unknownFacts
		f.milliseconds(FactMaintenanceMs, text)
		if got := f[FactMaintenanceMs]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestOverridesAreFactsOfTheQuery(t *testing.T) {
	p, err := Load(Source{Name: "r.yaml", Data: []byte(`signals: {late: {of: query, value: freshness_objective_ms, unit: count}}
groups: [{name: g, rules: [{alert: A, signal: late, rising: {}}]}]`)})
	if err != nil {
		t.Fatal(err)
	}
	asked := event.QueryRef{}
	s := newStream(New(p, Options{Override: func(q event.QueryRef) Override {
		asked = q
		return Override{FreshnessMs: 90_000, Critical: true}
	}}))
	s.play(figures{rows: 1})
	q := s.e.queries[event.QueryID(s.id)]
	if asked.Name != s.name || q.facts[FactFreshnessMs] != 90_000 || q.facts[FactCritical] != 1 || !math.IsNaN(q.facts[FactDiskLimit]) {
		t.Errorf("asked for %v, got %v", asked, q.facts)
	}
}
