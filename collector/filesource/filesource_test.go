package filesource

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// progress is one compact progress of our own making.
func progress(batch int) string {
	return fmt.Sprintf(`{"id":"q-1","runId":"r-1","name":"orders","timestamp":"2031-02-03T04:%02d:00.000Z","batchId":%d,"numInputRows":5,`+
		`"durationMs":{"addBatch":40,"triggerExecution":52},"stateOperators":[],"sources":[{"description":"memory","numInputRows":5}],"sink":{"description":"s"}}`,
		batch%60, batch)
}

// logged is the same as a line of the event log.
func logged(batch int) string {
	return `{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":` + progress(batch) + `}`
}

const (
	logStart = `{"Event":"SparkListenerLogStart","Spark Version":"4.1.0"}`
	appStart = `{"Event":"SparkListenerApplicationStart","App Name":"ledger","App ID":"app-7","Timestamp":1,"User":"x"}`
	confs    = `{"Event":"SparkListenerEnvironmentUpdate","JVM Information":{},"Spark Properties":{"spark.secret.key":"hush",` +
		`"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled":"true"},"System Properties":{}}`
	jobStart = `{"Event":"SparkListenerJobStart","Job ID":3,"Properties":{"runId":"x","durationMs":"9"}}`
)

// seen is what a handler saw, as text.
type seen struct {
	events  []string
	rejects []string
	sum     Summary
	err     error
}

// run reads paths and notes everything.
func run(t *testing.T, cfg Config) seen {
	t.Helper()
	var s seen
	handle := func(_ context.Context, step *collector.Step) error {
		for _, it := range step.Items {
			s.events = append(s.events, describe(t, &it))
		}
		return nil
	}
	s.sum, s.err = New(cfg).Run(t.Context(), handle, func(r Rejected) {
		s.rejects = append(s.rejects, fmt.Sprintf("%s:%d %s: %v", filepath.Base(r.File), r.Index, r.Reason, r.Err))
	})
	return s
}

func describe(t *testing.T, it *collector.Item) string {
	t.Helper()
	if it.Origin.Source != SourceName || int64(it.Index) != it.Origin.Offset {
		t.Errorf("origin %+v of line %d", it.Origin, it.Index)
	}
	batch := int64(event.Absent)
	if it.Event.Batch != nil {
		batch = it.Event.Batch.ID
	}
	return fmt.Sprintf("%s:%d %s %d", filepath.Base(it.Origin.Topic), it.Origin.Offset, it.Event.Kind, batch)
}

func write(t *testing.T, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func lines(l ...string) []byte { return []byte(strings.Join(l, "\n") + "\n") }

func TestAnEventLogYieldsItsStreamingLines(t *testing.T) {
	path := write(t, t.TempDir(), "local-1", lines(logStart, appStart, confs, jobStart, logged(0), jobStart, logged(1)))
	got := run(t, Config{Paths: []string{path}})
	want := []string{"local-1:5 progress 0", "local-1:7 progress 1"}
	if diff := cmp.Diff(want, got.events); diff != "" || len(got.rejects) > 0 || got.err != nil {
		t.Errorf("%s\nrejects %v, error %v", diff, got.rejects, got.err)
	}
	if got.sum.Skipped != 5 || got.sum.Events != 2 || got.sum.Files != 1 {
		t.Errorf("summary %+v", got.sum)
	}
}

func TestAnEventLogNamesItsApplication(t *testing.T) {
	path := write(t, t.TempDir(), "log", lines(logStart, appStart, confs, logged(0)))
	read := false
	handle := func(_ context.Context, step *collector.Step) error {
		read = true
		ev := step.Items[0].Event
		env := ev.Envelope
		if env == nil || env.App != (event.App{ID: "app-7", Name: "ledger", SparkVersion: "4.1.0"}) {
			t.Fatalf("envelope %+v", env)
		}
		if ev.Query.Application != "ledger" || ev.Batch.Query.Application != "ledger" {
			t.Errorf("application %q and %q", ev.Query.Application, ev.Batch.Query.Application)
		}
		if len(env.Conf) != 1 || env.Conf["spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"] != "true" {
			t.Errorf("settings %v: only those that are needed may be kept", env.Conf)
		}
		if env.Seq != event.Absent || env.AtMs != event.Absent {
			t.Errorf("what the log does not say must be absent: %+v", env)
		}
		return nil
	}
	if _, err := New(Config{Paths: []string{path}}).Run(t.Context(), handle, func(Rejected) {}); err != nil || !read {
		t.Errorf("read %v, error %v", read, err)
	}
}

func TestOneApplicationSaysNothingAboutTheNextFile(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "a", lines(logStart, appStart, logged(0)))
	write(t, folder, "b", lines(progress(1)))
	n := 0
	handle := func(_ context.Context, step *collector.Step) error {
		for _, it := range step.Items {
			n++
			if want := filepath.Base(it.Origin.Topic) == "a"; (it.Event.Envelope != nil) != want {
				t.Errorf("%s: envelope %+v", it.Origin.Topic, it.Event.Envelope)
			}
		}
		return nil
	}
	if _, err := New(Config{Paths: []string{folder}}).Run(t.Context(), handle, func(Rejected) {}); err != nil || n != 2 {
		t.Errorf("%d events, error %v", n, err)
	}
}

func TestRollingLogsAreReadInOrderOfTheirNumbers(t *testing.T) {
	folder := t.TempDir()
	app := "eventlog_v2_app-7_1/"
	write(t, folder, app+"appstatus_app-7_1.inprogress", nil)
	write(t, folder, app+".events_1_app-7_1.crc", []byte(progress(99)))
	write(t, folder, app+"events_1_app-7_1.zstd", packers["zstd"](t, lines(logStart, appStart, logged(0))))
	write(t, folder, app+"events_2_app-7_1.zstd", packers["zstd"](t, lines(logged(1))))
	write(t, folder, app+"events_10_app-7_1", lines(logged(2)))
	write(t, folder, "zz", lines(progress(3)))
	got := run(t, Config{Paths: []string{folder}})
	want := []string{
		"events_1_app-7_1.zstd:3 progress 0", "events_2_app-7_1.zstd:1 progress 1",
		"events_10_app-7_1:1 progress 2", "zz:1 progress 3",
	}
	if diff := cmp.Diff(want, got.events); diff != "" || got.err != nil || len(got.rejects) > 0 {
		t.Errorf("%s\nerror %v, rejects %v", diff, got.err, got.rejects)
	}
	direct := run(t, Config{Paths: []string{filepath.Join(folder, app)}})
	if diff := cmp.Diff(want[:3], direct.events); diff != "" {
		t.Errorf("the folder itself: %s", diff)
	}
}

func TestLaterPartsOfARollingLogKnowTheApplication(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "eventlog_v2_a/events_1_a", lines(logStart, appStart))
	write(t, folder, "eventlog_v2_a/events_2_a", lines(logged(1)))
	handle := func(_ context.Context, step *collector.Step) error {
		if app := step.Items[0].Event.Query.Application; app != "ledger" {
			t.Errorf("application %q", app)
		}
		return nil
	}
	sum, err := New(Config{Paths: []string{folder}}).Run(t.Context(), handle, func(Rejected) {})
	if sum.Events != 1 || err != nil {
		t.Errorf("%+v, error %v", sum, err)
	}
}

func TestACompactedPartReplacesTheOlderOnes(t *testing.T) {
	folder := t.TempDir()
	for i := 1; i <= 4; i++ {
		write(t, folder, fmt.Sprintf("eventlog_v2_a/events_%d_a", i), lines(logged(i)))
	}
	write(t, folder, "eventlog_v2_a/events_3_a.compact", lines(logged(1), logged(2), logged(3)))
	got := run(t, Config{Paths: []string{folder}})
	want := []string{"events_3_a.compact:1 progress 1", "events_3_a.compact:2 progress 2", "events_3_a.compact:3 progress 3", "events_4_a:1 progress 4"}
	if diff := cmp.Diff(want, got.events); diff != "" {
		t.Error(diff)
	}
}

func TestLogsCanBeReadInOrderOfTheirTimes(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "a", lines(progress(9)))
	write(t, folder, "b", lines(jobStart, `{"id":"q-1","runId":"r-1","exception":null}`, progress(3)))
	write(t, folder, "eventlog_v2_c/events_1_c", lines(logStart))
	write(t, folder, "eventlog_v2_c/events_2_c", lines(logged(5)))
	write(t, folder, "eventlog_v2_c/events_3_c", lines(logged(6)))
	write(t, folder, "empty", nil)
	got := run(t, Config{Paths: []string{Stdin, folder}, Stdin: bytes.NewReader(lines(progress(1))), ByTime: true})
	want := []string{
		"b:2 terminated -9223372036854775808", "b:3 progress 3", "events_2_c:1 progress 5",
		"events_3_c:1 progress 6", "a:1 progress 9", "-:1 progress 1",
	}
	if diff := cmp.Diff(want, got.events); diff != "" || got.err != nil {
		t.Errorf("%s\nerror %v", diff, got.err)
	}
}

func TestTextLogsAndJSONMix(t *testing.T) {
	pretty := strings.NewReplacer(`,"`, ",\n  \"").Replace(progress(2))
	text := lines("31/02/03 04:05:06 INFO Main: hello {", "x", progress(1), "31/02/03 04:05:06 INFO M: Streaming query made progress: "+pretty, "bye", progress(3))
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text)})
	want := []string{"-:3 progress 1", "-:4 progress 2", fmt.Sprintf("-:%d progress 3", 6+strings.Count(pretty, "\n"))}
	if diff := cmp.Diff(want, got.events); diff != "" || len(got.rejects) > 0 || got.err != nil {
		t.Errorf("%s\nrejects %v, error %v", diff, got.rejects, got.err)
	}
	if got.sum.Skipped != 3 {
		t.Errorf("skipped %d, want 3", got.sum.Skipped)
	}
}

func TestRejectsNameTheirLineAndCostNothingElse(t *testing.T) {
	text := lines(progress(1),
		`{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgress","queryInfo":{"name":"x","id":0,"sourceStatuses":[]}}`,
		progress(2)[:120], `{"customMetrics":{"rocksdbGetCount":1}}`, `{"level":"info","msg":"nothing of ours"}`, progress(3))
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text)})
	if diff := cmp.Diff([]string{"-:1 progress 1", "-:6 progress 3"}, got.events); diff != "" {
		t.Error(diff)
	}
	if len(got.rejects) != 3 || got.sum.Rejected != 3 || got.sum.Skipped != 1 {
		t.Fatalf("rejects %q, %+v", got.rejects, got.sum)
	}
	for i, prefix := range []string{"-:2 legacy:", "-:3 truncated:", "-:4 shape: no event, but the custom metrics of one state operator"} {
		if !strings.HasPrefix(got.rejects[i], prefix) {
			t.Errorf("reject %q, want %q", got.rejects[i], prefix)
		}
	}
}

func TestJSONOfOtherProgramsIsNoEvent(t *testing.T) {
	text := lines(`{"id":"5","user":"x"}`, `{"id":"job","exception":"boom"}`, `{"id":5,"name":"x","timestamp":"2031-02-03T04:05:06Z"}`,
		`{"type":"click","event":"x","v":1}`, `{"progress":0.5,"id":"job"}`, `{}`, `[1]`, progress(1))
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text)})
	if diff := cmp.Diff([]string{"-:8 progress 1"}, got.events); diff != "" || len(got.rejects) > 0 || got.sum.Skipped != 7 {
		t.Errorf("%s\nrejects %v, %+v", diff, got.rejects, got.sum)
	}
}

func TestALongLineIsPassedOverInBoundedMemory(t *testing.T) {
	huge := `{"Event":"SparkListenerSQLExecutionStart","plan":"` + strings.Repeat("x", 1<<20) + `"}`
	event := `{"id":"q","runId":"r","name":"` + strings.Repeat("x", 1<<20) + `"}`
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(lines(huge, event, progress(1))), LineBytes: 256 << 10})
	if diff := cmp.Diff([]string{"-:3 progress 1"}, got.events); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"-:2 too_large: the line is longer than 262144 bytes"}, got.rejects); diff != "" || got.sum.Skipped != 1 {
		t.Errorf("%s, skipped %d", diff, got.sum.Skipped)
	}
}

func TestOtherEncodings(t *testing.T) {
	little, big := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	for _, c := range strings.ReplaceAll(progress(1), "orders", "ordérs") + "\r\n" {
		little = binary.LittleEndian.AppendUint16(little, uint16(c))
		big = binary.BigEndian.AppendUint16(big, uint16(c))
	}
	for name, b := range map[string][]byte{
		"utf-8 with mark": append([]byte("\xef\xbb\xbf"), lines(progress(1))...),
		"utf-16 little":   little, "utf-16 big": big, "without a last line feed": []byte(progress(1)),
		"carriage returns": []byte(progress(1) + "\r\n"),
	} {
		if got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(b)}); len(got.events) != 1 || got.err != nil {
			t.Errorf("%s: %v, rejects %v, error %v", name, got.events, got.rejects, got.err)
		}
	}
}

func TestStrictErrorsNameTheColumn(t *testing.T) {
	long := strings.Replace(progress(1), `"id":"q-1"`, `"id":"`+strings.Repeat("x", 5000)+`"`, 1)
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(lines(progress(0), long))})
	if len(got.rejects) != 1 || !strings.HasPrefix(got.rejects[0], "-:2 too_large: ") || strings.Contains(got.rejects[0], "line 1") {
		t.Errorf("rejects %v", got.rejects)
	}
}

func TestBinaryDataIsRefusedOnce(t *testing.T) {
	got := run(t, Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(append([]byte("PAR1\x00\x15\x04"), lines(progress(1))...))})
	if diff := cmp.Diff([]string{"-:0 encoding: binary data, no text"}, got.rejects); diff != "" || len(got.events) != 0 {
		t.Errorf("%s, events %v", diff, got.events)
	}
}

func TestAMissingFileDoesNotKeepTheOthersFromBeingRead(t *testing.T) {
	path := write(t, t.TempDir(), "b", lines(progress(1)))
	got := run(t, Config{Paths: []string{"no/such/file", path}})
	if len(got.events) != 1 || !errors.Is(got.err, os.ErrNotExist) {
		t.Errorf("events %v, error %v", got.events, got.err)
	}
}

type brokenDisk struct{ text io.Reader }

var errDisk = errors.New("disk on fire")

func (b brokenDisk) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err != nil {
		err = errDisk
	}
	return n, err
}

func TestAReadErrorKeepsWhatWasReadAndNamesTheLine(t *testing.T) {
	got := run(t, Config{Paths: []string{Stdin}, Stdin: brokenDisk{bytes.NewReader(lines(progress(1), progress(2)))}})
	if len(got.events) != 2 || !errors.Is(got.err, errDisk) || !strings.Contains(got.err.Error(), "after line 2") {
		t.Errorf("events %v, error %v", got.events, got.err)
	}
}

func TestAFullHandlerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, applied := 0, 0
		handle := func(_ context.Context, step *collector.Step) error {
			if calls++; calls < 4 {
				return fmt.Errorf("queue: %w", collector.ErrFull)
			}
			applied += len(step.Items)
			return nil
		}
		start := time.Now()
		sum, err := New(Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(lines(progress(1))), Retry: time.Second}).
			Run(t.Context(), handle, func(Rejected) {})
		if err != nil || applied != 1 || sum.Events != 1 || time.Since(start) != 3*time.Second {
			t.Errorf("applied %d after %v, %+v, error %v", applied, time.Since(start), sum, err)
		}
	})
}

func TestAHandlersErrorStopsTheReading(t *testing.T) {
	broken, calls := errors.New("store is gone"), 0
	handle := func(context.Context, *collector.Step) error { calls++; return broken }
	text := bytes.Repeat(lines(progress(1)), 1000)
	sum, err := New(Config{Paths: []string{Stdin, write(t, t.TempDir(), "next", text)}, Stdin: bytes.NewReader(text), StepEvents: 10}).
		Run(t.Context(), handle, func(Rejected) {})
	if !errors.Is(err, broken) || calls != 1 || sum.Events != 0 || sum.Files != 1 {
		t.Errorf("calls %d, %+v, error %v", calls, sum, err)
	}
}

func TestTheEndOfTheContextStopsTheReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handle := func(context.Context, *collector.Step) error { cancel(); return nil }
	text := bytes.Repeat(lines(progress(1)), 5000)
	sum, err := New(Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text), StepEvents: 10}).Run(ctx, handle, func(Rejected) {})
	if !errors.Is(err, context.Canceled) || sum.Events >= 5000 {
		t.Errorf("%+v, error %v", sum, err)
	}
}

func TestStepsAreBounded(t *testing.T) {
	largest := 0
	handle := func(_ context.Context, step *collector.Step) error {
		largest = max(largest, len(step.Items))
		if step.Reached != event.Absent {
			t.Errorf("a file has no offsets to commit, but the step reached %d", step.Reached)
		}
		return nil
	}
	text := bytes.Repeat(lines(progress(1)), 95)
	sum, err := New(Config{Paths: []string{Stdin}, Stdin: bytes.NewReader(text), StepEvents: 10}).Run(t.Context(), handle, func(Rejected) {})
	if largest != 10 || sum.Events != 95 || err != nil {
		t.Errorf("largest %d, %+v, error %v", largest, sum, err)
	}
}

func TestSplitGivesEachLogASourceOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	rolling := filepath.Join(dir, "eventlog_v2_app-1")
	if err := os.Mkdir(rolling, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "eventlog_v2_app-1/events_1_app-1", "eventlog_v2_app-1/events_2_app-1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no event\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs, err := New(Config{Paths: []string{dir, "/nowhere/at/all"}}).Split(t.Context())
	if err == nil || len(logs) != 3 {
		t.Fatalf("%d logs, error %v", len(logs), err)
	}
	var files []int
	for _, l := range logs {
		sum, err := l.WithStepEvents(4).Run(t.Context(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, sum.Files)
	}
	if !slices.Equal(files, []int{1, 1, 2}) {
		t.Errorf("files of each log: %v", files)
	}
}
