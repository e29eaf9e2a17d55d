package fidelity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// progress is a report with one operator; more is put into its customMetrics.
func progress(id, rows int, more string) string {
	return fmt.Sprintf(`{"id":"q","runId":"r","timestamp":"2026-05-04T10:00:00.250Z","batchId":%d,"batchDuration":101,"numInputRows":%d,`+
		`"durationMs":{"addBatch":60,"walCommit":10,"triggerExecution":100},"eventTime":{"watermark":"1970-01-01T00:00:00.000Z"},`+
		`"stateOperators":[{"operatorName":"dedupe","numRowsTotal":%d,"numRowsUpdated":%d,"numRowsRemoved":0,"commitTimeMs":50,"numStateStoreInstances":4,"customMetrics":{%s}}],`+
		`"sources":[{"description":"x","startOffset":{"logOffset":3},"endOffset":{"logOffset":4},"numInputRows":%d}]}`, id, rows, (id+1)*rows, rows, more, rows)
}

// stretch makes batches, all with the same rows.
func stretch(t *testing.T, more ...string) (out []Batch) {
	t.Helper()
	for i, m := range more {
		b, ok, err := parseBatch([]byte(progress(i, 100, m)))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		out = append(out, b)
	}
	return out
}

func repeat(n int, more string) []string { return slices.Repeat([]string{more}, n) }

func run(batches []Batch) *Run {
	return &Run{Name: "made-up", Version: "4.3.0", Job: "dedupe", Batches: batches, Played: len(batches)}
}

func TestOffsetsAreNotTakenApart(t *testing.T) {
	b := stretch(t, "")[0]
	if !b.has("sources.0.endOffset") || slices.ContainsFunc(b.Keys, func(k string) bool { return strings.Contains(k, "logOffset") }) {
		t.Errorf("keys %v", b.Keys)
	}
	if b.ID != 0 || b.DurationMs != 101 || b.StartMs%1000 != 250 || b.Operators() != 1 {
		t.Errorf("got %+v", b)
	}
}

func TestSnapshotKeysCountAsOneAndTheLowestStands(t *testing.T) {
	b := stretch(t, `"SnapshotLastUploaded.partition_2_default":41,"SnapshotLastUploaded.partition_0_default":31`)[0]
	path := operatorPath(0) + "customMetrics." + uploaded
	if b.Values[path] != 31 || !b.has(path) {
		t.Errorf("%s is %v", path, b.Values[path])
	}
}

func TestEventsThatAreNoProgressAreNoBatches(t *testing.T) {
	if _, ok, err := parseBatch([]byte(`{"id":"q","runId":"r","name":null}`)); ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	for _, text := range []string{`{`, `{"batchId":1,"timestamp":"yesterday"}`} {
		if _, _, err := parseBatch([]byte(text)); err == nil {
			t.Errorf("%s is taken for an event", text)
		}
	}
}

func TestRowsOfALostTaskAreReadFromTheOffsets(t *testing.T) {
	b := Batch{Values: map[string]float64{"sources.0.numInputRows": 1500, "sources.0.startOffset": 98, "sources.0.endOffset": 100}}
	if got := b.sourceRows(500); !slices.Equal(got, []int64{1000}) {
		t.Errorf("by offsets %v, want 1000", got)
	}
	if got := b.sourceRows(0); !slices.Equal(got, []int64{1500}) {
		t.Errorf("by rows %v, want 1500", got)
	}
}

// TestDifferencesAreFound plays no twin: each case is a twin that is wrong in one
// way.
func TestDifferencesAreFound(t *testing.T) {
	spark := repeat(60, `"rocksdbPutCount":200,"rocksdbSstFileSize":5000,"rocksdbCommitFileSyncLatencyMs":40`)
	with := func(change func(i int) string) []string {
		out := slices.Clone(spark)
		for i := range out {
			if s := change(i); s != "" {
				out[i] = s
			}
		}
		return out
	}
	for _, c := range []struct {
		name string
		twin []string
		want string // in the only fault; "": none
	}{
		{"the same", spark, ""},
		{"a key less", with(func(i int) string {
			if i == 30 {
				return `"rocksdbPutCount":200,"rocksdbSstFileSize":5000`
			}
			return ""
		}), "the twin lacks stateOperators.0.customMetrics.rocksdbCommitFileSyncLatencyMs"},
		{"a key more", with(func(i int) string { return spark[i] + `,"rocksdbZipFileBytesUncompressed":0` }), "Spark has no stateOperators.0.customMetrics.rocksdbZip"},
		{"0 in three batches", with(func(i int) string {
			if i < 3 {
				return strings.Replace(spark[i], "5000", "0", 1)
			}
			return ""
		}), ""},
		{"0 in four batches", with(func(i int) string {
			if i < 4 {
				return strings.Replace(spark[i], "5000", "0", 1)
			}
			return ""
		}), "0 for one only in 4"},
		{"calls are half as many again", with(func(i int) string { return strings.Replace(spark[i], "200", "300", 1) }), "rocksdbPutCount"},
		{"files are four times as large", with(func(i int) string { return strings.Replace(spark[i], "5000", "19999", 1) }), ""},
		{"files are larger than that", with(func(i int) string { return strings.Replace(spark[i], "5000", "20001", 1) }), "rocksdbSstFileSize"},
		{"a part is longer than the whole", with(func(i int) string { return strings.Replace(spark[i], "40", "51", 1) }), "the parts of the commit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Compare(run(stretch(t, spark...)), stretch(t, c.twin...)).Faults()
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("found %q", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("found %q, want one fault with %q", got, c.want)
			}
		})
	}
}

func TestTimersOfAFewMillisecondsMayComeAndGo(t *testing.T) {
	odd := func(ms int) int {
		batches := repeat(20, fmt.Sprintf(`"rocksdbGetLatency":%d`, ms))
		f := figure(operatorPath(0)+"customMetrics.rocksdbGetLatency", KindTime, stretch(t, batches...), stretch(t, repeat(20, `"rocksdbGetLatency":0`)...))
		return f.Odd
	}
	if few, many := odd(4*floored), odd(4*floored+1); few != 0 || many != 20 {
		t.Errorf("%d batches differ at the limit and %d above it, want 0 and 20", few, many)
	}
}

func TestAHandfulOfLateRowsIsChance(t *testing.T) {
	path := operatorPath(0) + "numRowsDroppedByWatermark"
	odd := func(rows float64) int {
		a, b := stretch(t, repeat(20, "")...), stretch(t, repeat(20, "")...)
		for i := range a {
			a[i].Values[path] = rows
		}
		f := figure(path, KindRows, a, b)
		return f.Odd
	}
	if odd(few) != 0 || odd(few+1) != 20 {
		t.Errorf("%d and %d batches differ, want 0 and 20", odd(few), odd(few+1))
	}
}

func TestExceptionsAreNarrow(t *testing.T) {
	for i := range Exceptions {
		e := &Exceptions[i]
		if len(e.Runs) == 0 || len(e.Figures) == 0 || len(e.Why) < 40 || e.Odd == 0 && e.Factor == 0 {
			t.Errorf("exception %d says too little: %+v", i, e)
		}
		if slices.Contains(e.Runs, "* ") || slices.Contains(e.Figures, "*") {
			t.Errorf("exception %d is for everything", i)
		}
	}
	if got := exceptionsFor("4.3.0 agg-changelog", "rocksdbFilesReused"); len(got) > 0 {
		t.Errorf("exceptions %v for a run that none names", got)
	}
}

func TestExceptionExcusesOnlyUpToItsLimits(t *testing.T) {
	c := &Comparison{Run: &Run{Version: "4.3.0", Name: "dedupe-restart"}, Batches: 90}
	limit := 0
	for _, i := range exceptionsFor(c.Run.Title(), "rocksdbFilesReused") {
		limit = Exceptions[i].Odd
	}
	f := Figure{Path: operatorPath(0) + "customMetrics.rocksdbFilesReused", Kind: KindTree, Odd: limit}
	if wrong, by := c.verdict(&f); wrong != "" || by < 0 {
		t.Errorf("at the limit of %d: %q, excused by %d", limit, wrong, by)
	}
	f.Odd++
	if wrong, _ := c.verdict(&f); wrong == "" {
		t.Error("one batch more is excused too")
	}
	f.Odd, f.Ratio = 0, 5
	if wrong, _ := c.verdict(&f); wrong == "" {
		t.Error("an exception for the batches excuses the size too")
	}
}

func TestScenariosOfAllRunsAreComplete(t *testing.T) {
	for _, r := range runs(t) {
		sc, err := r.Scenario()
		if err != nil {
			t.Error(err)
			continue
		}
		if sc.SparkVersion != r.Version || len(sc.Query.Operators) != 1 {
			t.Errorf("%s: version %s, %d operators", r.Title(), sc.SparkVersion, len(sc.Query.Operators))
		}
		if _, more := r.pace(int64(r.Played)); more {
			t.Errorf("%s goes on behind its end", r.Title())
		}
	}
}

func TestRestartInsideABatchIsPlayedAsOne(t *testing.T) {
	for _, r := range runs(t) {
		restarts := 0
		for i := range r.Played {
			if p, _ := r.pace(int64(i)); p.NewRun {
				restarts++
			}
		}
		want := 0
		if strings.HasSuffix(r.Name, "-restart") {
			want = 1
		}
		if restarts != want {
			t.Errorf("%s: %d restarts, want %d", r.Title(), restarts, want)
		}
	}
}
