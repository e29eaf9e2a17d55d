package app

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/stategauge/stategauge/event"
)

// progressText is one progress as Spark wrote it, taken apart without our decoder.
type progressText struct {
	ID         string            `json:"id"`
	RunID      string            `json:"runId"`
	BatchID    int64             `json:"batchId"`
	Timestamp  string            `json:"timestamp"`
	DurationMs map[string]int64  `json:"durationMs"`
	EventTime  map[string]string `json:"eventTime"`
	Operators  []map[string]any  `json:"stateOperators"`
	Sources    []struct {
		Rows int64 `json:"numInputRows"`
	} `json:"sources"`
	Rows *int64 `json:"numInputRows"`
	Sink struct {
		Rows *int64 `json:"numOutputRows"`
	} `json:"sink"`
	top map[string]json.RawMessage
}

func (p *progressText) UnmarshalJSON(b []byte) error {
	type plain progressText
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return err
	}
	return json.Unmarshal(b, &p.top)
}

// executed reports whether the progress is of a batch that ran.
func (p *progressText) executed() bool { _, ok := p.DurationMs["addBatch"]; return ok }

// number is a figure of an operator, of its custom metrics too; NaN where absent.
func (p *progressText) number(operator int, key string) float64 {
	o := p.Operators[operator]
	v, ok := o[key].(float64)
	if custom, is := o["customMetrics"].(map[string]any); is && !ok {
		v, ok = custom[key].(float64)
	}
	if !ok {
		return math.NaN()
	}
	return v
}

// keys lists an operator's figures.
func (p *progressText) keys(operator int) (out []string) {
	for k, v := range p.Operators[operator] {
		if _, ok := v.(float64); ok {
			out = append(out, k)
		}
	}
	custom, _ := p.Operators[operator]["customMetrics"].(map[string]any)
	return append(out, sortedKeys(custom)...)
}

// baseUnits is what a raw figure is multiplied by, from its name alone: Spark
// writes latencies in milliseconds, whether they end in Ms or not, and one of them
// in nanoseconds in spite of its end.
func baseUnits(key string) float64 {
	switch {
	case key == "rocksdbWriterStallLatencyMs":
		return 1e-9
	case strings.HasSuffix(key, "Ms"), strings.HasSuffix(key, "Latency"):
		return 1e-3
	}
	return 1
}

// swappedName is the name that a column family count of Spark 4.0 and 4.1 should have.
func swappedName(key string, p *progressText) string {
	if !math.IsNaN(p.number(0, "rocksdbNumLoadedFromDfs")) {
		return key
	}
	switch key {
	case "rocksdbNumExternalColumnFamilies":
		return "rocksdbNumInternalColumnFamilies"
	case "rocksdbNumInternalColumnFamilies":
		return "rocksdbNumExternalColumnFamilies"
	}
	return key
}

// pages are the exporter's pages around one batch.
type pages struct {
	before, after map[string]*dto.MetricFamily
}

// around plays a run and keeps the pages before and after the batch that is wanted.
func around(t *testing.T, f *fixture, run string, batch int64) (out pages) {
	t.Helper()
	p := newRerun(t)
	wanted := func(b *event.Batch) bool { return string(b.Run) == run && b.ID == batch }
	p.before = func(b *event.Batch) {
		if wanted(b) {
			out.before = p.page(t)
		}
	}
	p.after = func(b *event.Batch) {
		if wanted(b) {
			out.after = p.page(t)
		}
	}
	p.read(t, f.path(formBare))
	if out.after == nil {
		t.Fatalf("batch %d of run %s never came", batch, run)
	}
	return out
}

// find returns the value of a series, NaN where there is none.
func find(families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	for _, m := range families[name].GetMetric() {
		if !hasLabels(m, labels) {
			continue
		}
		if m.Counter != nil {
			return m.Counter.GetValue()
		}
		return m.GetGauge().GetValue()
	}
	return math.NaN()
}

// grew returns by how much a counter grew with the batch; one that is new began at 0.
func (p *pages) grew(name string, labels ...string) float64 {
	was := find(p.before, name, labels...)
	if math.IsNaN(was) {
		was = 0
	}
	return find(p.after, name, labels...) - was
}

// TestSeriesAreWhatSparkItselfSaysOfItsLastBatch takes the progress that the query
// object held at the end of each process, which no listener brought, and compares
// every figure in it with the page.
func TestSeriesAreWhatSparkItselfSaysOfItsLastBatch(t *testing.T) {
	eachRun(t, func(t *testing.T, f *fixture) {
		var last progressText
		for _, l := range f.Legs {
			// One that took over a query in use may have died before its first batch.
			if text := l.Query.LastProgress; len(text) > 0 && string(text) != "null" {
				last = progressText{}
				if err := json.Unmarshal(text, &last); err != nil {
					t.Fatal(err)
				}
			}
		}
		if !last.executed() {
			// A copy made while idle, under the number that comes next: what it says of
			// the state is that of the batch before.
			page := around(t, f, last.RunID, last.BatchID-1)
			for i := range last.Operators {
				compareOperator(t, &page, &last, i, event.KindLevel)
			}
			return
		}
		page := around(t, f, last.RunID, last.BatchID)
		compareQuery(t, &page, &last)
		for i := range last.Operators {
			compareOperator(t, &page, &last, i, event.KindLevel, event.KindWork)
		}
	})
}

func compareQuery(t *testing.T, page *pages, last *progressText) {
	t.Helper()
	same(t, "last_batch_id", find(page.after, "spark_streaming_last_batch_id"), float64(last.BatchID))
	same(t, "trigger", page.grew("spark_streaming_trigger_execution_seconds_total"), float64(last.DurationMs["triggerExecution"])/1e3)
	for phase, ms := range last.DurationMs {
		if phase == "triggerExecution" {
			continue
		}
		same(t, phase, find(page.after, "spark_streaming_last_batch_phase_seconds", "phase", phase), float64(ms)/1e3)
		if ms > 0 {
			same(t, phase, page.grew("spark_streaming_phase_seconds_total", "phase", phase), float64(ms)/1e3)
		}
	}
	for key, text := range last.EventTime {
		at, err := time.Parse(sparkTime, text)
		if err != nil {
			t.Fatal(err)
		}
		name := map[string]string{"watermark": "watermark", "max": "event_time_max", "min": "event_time_min", "avg": "event_time_avg"}[key]
		same(t, key, find(page.after, "spark_streaming_"+name+"_timestamp_seconds"), float64(at.UnixMilli())/1e3)
	}
	for i, s := range last.Sources {
		same(t, "input rows", page.grew("spark_streaming_input_rows_total", "source_index", string(rune('0'+i))), float64(s.Rows))
	}
	if n := *last.Sink.Rows; n > 0 {
		same(t, "output rows", page.grew("spark_streaming_sink_output_rows_total"), float64(n))
	}
}

// compareOperator compares the figures of some kinds of one operator.
func compareOperator(t *testing.T, page *pages, last *progressText, i int, kinds ...event.MetricKind) {
	t.Helper()
	compared := 0
	for _, key := range last.keys(i) {
		id, ok := event.ByKey(event.ScopeOperator, []byte(swappedName(key, last)))
		if !ok {
			if !strings.HasPrefix(key, "SnapshotLastUploaded.") {
				t.Errorf("%s is not in the catalog", key)
			}
			continue
		}
		m, raw := event.Lookup(id), last.number(i, key)
		for _, k := range kinds {
			if m.Kind == k {
				compareFigure(t, page, last, i, m, raw*baseUnits(key))
				compared++
			}
		}
	}
	if compared < 10 {
		t.Errorf("operator %d: only %d figures could be compared", i, compared)
	}
}

func compareFigure(t *testing.T, page *pages, last *progressText, i int, m *event.Metric, want float64) {
	t.Helper()
	labels := []string{"operator_index", string(rune('0' + i))}
	if m.LabelName != "" {
		labels = append(labels, m.LabelName, m.LabelValue)
	}
	if m.Quirks&event.QuirkPerTask != 0 {
		want /= last.number(i, "numShufflePartitions")
	}
	if m.Kind == event.KindLevel {
		got := find(page.after, m.Series, labels...)
		if want == 0 && math.IsNaN(got) {
			return // hidden by bounded memory: the series is absent on purpose
		}
		same(t, m.JSON, got, want)
		return
	}
	got := page.grew(m.Series, labels...)
	if repeats := event.QuirkStickyUpload | event.QuirkSticky40; m.Quirks&repeats != 0 && got == 0 {
		return // a repeat of an older figure adds nothing
	}
	if want == 0 && math.IsNaN(got) {
		return
	}
	same(t, m.JSON, got, want)
}

// same compares two values up to what adding up floating point numbers costs.
func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
		t.Errorf("%s: the page says %v, Spark %v", what, got, want)
	}
}
