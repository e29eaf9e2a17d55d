package spark

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

// object is a JSON object whose values are kept as they were written.
type object map[string]json.RawMessage

func parsed(t testing.TB, data []byte) object {
	t.Helper()
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return o
}

func (o object) text(t testing.TB, key string) string {
	t.Helper()
	var s *string
	if err := json.Unmarshal(o[key], &s); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	if s == nil {
		return ""
	}
	return *s
}

// whole returns a whole number, otherwise where it is absent.
func (o object) whole(t testing.TB, key string, otherwise int64) int64 {
	t.Helper()
	raw, ok := o[key]
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// number returns a number, NaN where it is absent.
func (o object) number(t testing.TB, key string) float64 {
	t.Helper()
	raw, ok := o[key]
	if !ok {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (o object) time(t testing.TB, key string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, o.text(t, key))
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func (o object) list(t testing.TB, key string) (out []object) {
	t.Helper()
	if err := json.Unmarshal(o[key], &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// fill makes a Progress of a captured one by its JSON alone.
func fill(t testing.TB, line []byte) *Progress {
	t.Helper()
	o := parsed(t, line)
	p := &Progress{
		ID: o.text(t, "id"), RunID: o.text(t, "runId"), Name: o.text(t, "name"),
		StartMs: o.time(t, "timestamp"), BatchID: o.whole(t, "batchId", 0), DurationMs: o.whole(t, "batchDuration", 0),
		InputRows: o.whole(t, "numInputRows", 0),
		InputRate: o.number(t, "inputRowsPerSecond"), ProcessRate: o.number(t, "processedRowsPerSecond"),
	}
	d := parsed(t, o["durationMs"])
	p.Phases = Phases{
		TriggerExecution: d.whole(t, "triggerExecution", -1), LatestOffset: d.whole(t, "latestOffset", -1),
		WalCommit: d.whole(t, "walCommit", -1), GetBatch: d.whole(t, "getBatch", -1),
		QueryPlanning: d.whole(t, "queryPlanning", -1), AddBatch: d.whole(t, "addBatch", -1),
		CommitOffsets: d.whole(t, "commitOffsets", -1),
	}
	p.EventTime = fillEventTime(t, o)
	for _, op := range o.list(t, "stateOperators") {
		p.Operators = append(p.Operators, fillOperator(t, op))
	}
	for _, s := range o.list(t, "sources") {
		p.Sources = append(p.Sources, fillSource(t, s))
	}
	sink := parsed(t, o["sink"])
	p.Sink = Sink{Description: sink.text(t, "description"), OutputRows: sink.whole(t, "numOutputRows", 0)}
	return p
}

func fillEventTime(t testing.TB, o object) (e EventTime) {
	t.Helper()
	if o["eventTime"] == nil {
		return e
	}
	at := parsed(t, o["eventTime"])
	e.HasWatermark = true
	e.WatermarkMs = at.time(t, "watermark")
	if at["max"] == nil {
		return e
	}
	e.HasRows = true
	e.MinMs, e.MaxMs, e.AvgMs = at.time(t, "min"), at.time(t, "max"), at.time(t, "avg")
	return e
}

func fillOperator(t testing.TB, o object) Operator {
	t.Helper()
	out := Operator{Name: o.text(t, "operatorName")}
	out.Values.Clear()
	for key := range o {
		if id, ok := event.ByKey(event.ScopeOperator, []byte(key)); ok {
			out.Values[id] = o.number(t, key)
		}
	}
	custom := parsed(t, o["customMetrics"])
	for key := range custom {
		if id, ok := event.ByKey(event.ScopeOperator, []byte(key)); ok {
			out.Values[id] = custom.number(t, key)
			continue
		}
		partition, name, ok := strings.Cut(strings.TrimPrefix(key, "SnapshotLastUploaded.partition_"), "_")
		n, err := strconv.Atoi(partition)
		if !ok || err != nil {
			t.Fatalf("unknown key %q", key)
		}
		out.Uploaded = append(out.Uploaded, SnapshotKey{Partition: n, Store: name, Version: custom.whole(t, key, 0)})
	}
	return out
}

func fillSource(t testing.TB, o object) Source {
	t.Helper()
	offset := func(key string) string {
		if s := string(o[key]); s != "null" {
			return s
		}
		return ""
	}
	s := Source{
		Description: o.text(t, "description"),
		StartOffset: offset("startOffset"), EndOffset: offset("endOffset"), LatestOffset: offset("latestOffset"),
		Rows: o.whole(t, "numInputRows", 0), InputRate: o.number(t, "inputRowsPerSecond"), ProcessRate: o.number(t, "processedRowsPerSecond"),
	}
	if o["metrics"] != nil {
		m := parsed(t, o["metrics"])
		for key := range m {
			s.Metrics = append(s.Metrics, KV{key, m.text(t, key)})
		}
		slices.SortFunc(s.Metrics, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	}
	return s
}

// squeeze takes the blanks out that Python puts after colons and commas.
func squeeze(t testing.TB, line []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, line); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// rewrite writes a captured bare event again.
func rewrite(t testing.TB, line []byte, v event.Version) string {
	t.Helper()
	o := parsed(t, line)
	id, run := o.text(t, "id"), o.text(t, "runId")
	switch {
	case o["batchId"] != nil:
		return string(AppendProgress(nil, fill(t, line), v))
	case o["exception"] != nil:
		return string(AppendTerminated(nil, &Terminated{id, run, o.text(t, "exception"), o.text(t, "errorClassOnException")}))
	case o["name"] != nil:
		s := Started{ID: id, RunID: run, Name: o.text(t, "name"), AtMs: o.time(t, "timestamp")}
		if o["jobTags"] == nil {
			v = V40 // a listener in Python does not say them
		} else if err := json.Unmarshal(o["jobTags"], &s.JobTags); err != nil {
			t.Fatal(err)
		}
		return string(AppendStarted(nil, &s, v))
	}
	return string(AppendIdle(nil, &Idle{id, run, o.time(t, "timestamp")}))
}

func TestEveryCapturedEventIsWrittenAgainToTheByte(t *testing.T) {
	for _, s := range capturedStreams(t, false) {
		t.Run(s.name, func(t *testing.T) {
			for _, line := range s.lines {
				want := string(line)
				if !bytes.Contains(line, []byte(`"batchId"`)) {
					want = squeeze(t, line)
				}
				if got := rewrite(t, line, s.version); got != want {
					t.Fatalf("wrote\n%s\ncaptured\n%s", got, want)
				}
			}
		})
	}
}

func TestTheWrapperIsOneLevelDeeper(t *testing.T) {
	p := &Progress{Phases: Phases{-1, -1, -1, -1, -1, -1, -1}, InputRate: math.NaN(), ProcessRate: math.Inf(1)}
	bare := string(AppendProgress(nil, p, supported[1]))
	want := `{"id":"","runId":"","name":null,"timestamp":"1970-01-01T00:00:00.000Z","batchId":0,"numInputRows":0,` +
		`"stateOperators":[],"sources":[],"sink":{"description":"","numOutputRows":0}}`
	if bare != want {
		t.Errorf("empty maps and rates that are none stay out:\n%s\nwant\n%s", bare, want)
	}
	if got := string(AppendProgressEvent(nil, p, supported[1])); got != `{"progress":`+bare+`}` {
		t.Errorf("got %s", got)
	}
}

func TestExamplesAreWrittenAgain(t *testing.T) {
	p := &Progress{
		ID: "1", RunID: "2", Name: "a \"b\"\t\x01é", BatchID: 3, InputRows: 4, InputRate: 12345678, ProcessRate: 0.00054,
		Phases:    Phases{TriggerExecution: 5, LatestOffset: 4, WalCommit: -1, GetBatch: -1, QueryPlanning: -1, AddBatch: -1, CommitOffsets: -1},
		EventTime: EventTime{HasWatermark: true},
		Operators: []Operator{{Name: "dedupe"}},
		Sources: []Source{{
			Description: "KafkaV2[Subscribe[orders]]", EndOffset: `{"orders":{"0":5}}`, InputRate: math.NaN(), ProcessRate: 0.25,
			Metrics: []KV{{"avgOffsetsBehindLatest", "1.5"}, {"maxOffsetsBehindLatest", "3"}},
		}},
		Sink: Sink{Description: "ForeachBatchSink", OutputRows: -1},
	}
	p.Operators[0].Values.Clear()
	p.Operators[0].Values[event.NumRowsTotal] = 7
	p.Operators[0].Uploaded = []SnapshotKey{{1, "default", 5}, {10, "default", 6}, {2, "right", 8}, {2, "left", 7}}
	want35 := `{"id":"1","runId":"2","name":"a \"b\"\t\u0001é","timestamp":"1970-01-01T00:00:00.000Z","batchId":3,"numInputRows":4,` +
		`"inputRowsPerSecond":1.2345678E7,"processedRowsPerSecond":5.4E-4,"durationMs":{"latestOffset":4,"triggerExecution":5},` +
		`"eventTime":{"watermark":"1970-01-01T00:00:00.000Z"},"stateOperators":[{"operatorName":"dedupe","numRowsTotal":7,` +
		`"customMetrics":{"SnapshotLastUploaded.partition_10_default":6,"SnapshotLastUploaded.partition_1_default":5,` +
		`"SnapshotLastUploaded.partition_2_left":7,"SnapshotLastUploaded.partition_2_right":8}}],` +
		`"sources":[{"description":"KafkaV2[Subscribe[orders]]","startOffset":null,"endOffset":{"orders":{"0":5}},"latestOffset":null,` +
		`"numInputRows":0,"processedRowsPerSecond":0.25,"metrics":{"avgOffsetsBehindLatest":"1.5","maxOffsetsBehindLatest":"3"}}],` +
		`"sink":{"description":"ForeachBatchSink","numOutputRows":-1}}`
	if got := string(AppendProgress(nil, p, supported[1])); got != want35 {
		t.Errorf("3.5:\n%s\nwant\n%s", got, want35)
	}
	want41 := strings.NewReplacer(`1.2345678E7`, `12345678.0`, `5.4E-4`, `0.0`, `0.25`, `0.3`, `"batchId":3`, `"batchId":3,"batchDuration":0`).Replace(want35)
	if got := string(AppendProgress(nil, p, supported[3])); got != want41 {
		t.Errorf("4.1:\n%s\nwant\n%s", got, want41)
	}
}

func newestProgress(s stream) (line []byte) {
	for _, l := range s.lines {
		if bytes.Contains(l, []byte(`"batchId"`)) {
			line = l
		}
	}
	return line
}

func TestWritingAllocatesNothing(t *testing.T) {
	for _, s := range capturedStreams(t, false) {
		p := fill(t, newestProgress(s))
		buf := make([]byte, 0, 16<<10)
		if n := testing.AllocsPerRun(20, func() { buf = AppendProgress(buf[:0], p, s.version) }); n != 0 {
			t.Errorf("%s: %v allocations", s.name, n)
		}
	}
}

func TestExamplesOfOthersAreWrittenAgain(t *testing.T) {
	shared := os.Getenv("STATEGAUGE_SHARED")
	if shared == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	for file, v := range map[string]event.Version{
		"a_spark35_progress_changelog_on.json": supported[1], "b_spark35_progress_first_batch_join_changelog_off.json": supported[1],
		"c_spark41_progress_tws_snapshot_batch.json": supported[3], "d_idle_35plus.json": supported[1], "d_started_35.json": supported[1],
		"d_started_41.json": supported[3], "d_terminated_failed.json": supported[1], "d_terminated_ok.json": supported[1],
	} {
		data, err := os.ReadFile(filepath.Join(shared, "spark", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		// What users observe themselves is not played.
		want := regexp.MustCompile(`,"observedMetrics":\{[^}]*\}\}`).ReplaceAllString(strings.TrimSpace(string(data)), "")
		if got := rewrite(t, []byte(want), v); got != want {
			t.Errorf("%s: wrote\n%s\nwant\n%s", file, got, want)
		}
	}
}
