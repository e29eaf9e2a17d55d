package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// asked is an answer of /api/v1/query_history.
type asked struct {
	Status string
	Error  string
	Data   historyJSON
}

func ask(t *testing.T, a *App, params ...string) (int, asked) {
	t.Helper()
	v := url.Values{}
	for i := 0; i < len(params); i += 2 {
		v.Set(params[i], params[i+1])
	}
	code, body := get(t, a, "/api/v1/query_history?"+v.Encode())
	var out asked
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("status %d, %s: %v", code, body, err)
	}
	return code, out
}

// remembering is a daemon that has heard three hours and a half of a query, a batch a
// minute of as many seconds as its number has ones.
func remembering(t *testing.T, disk vfs.FS) (*mortal, *stream, *atomic.Int64) {
	t.Helper()
	var now atomic.Int64
	s := newStream(1)
	s.operators, s.stepMs = 2, 60_000
	now.Store(s.start.UnixMilli())
	m := born(t, disk, &now, 2)
	for i := range 210 {
		s.addBatchMs = int64(i%60) * 1000
		m.hear(heard{s.at().UnixMilli(), s.next()})
	}
	return m, s, &now
}

func TestHistoryIsToldBatchByBatchInStepsAndByTheHour(t *testing.T) {
	m, s, now := remembering(t, vfs.NewCrashableMem())
	defer m.stop()
	from, to := s.start.Format(time.RFC3339), s.at().Format(time.RFC3339)
	code, got := ask(t, m.app, "query_id", s.id, "signal", "batch_duration", "from", from, "to", to)
	if code != http.StatusOK || got.Data.Source != "batches" || len(got.Data.Points) != 210 || got.Data.Unit != "seconds" {
		t.Fatalf("status %d: %s, %d points of %s %s", code, got.Error, len(got.Data.Points), got.Data.Source, got.Data.Unit)
	}
	if p := got.Data.Points[61]; p.Batch == nil || *p.Batch != 61 || p.Value == nil || *p.Value < 1.2 || *p.Value > 1.3 || p.Operator != nil {
		t.Errorf("batch 61: %+v", p)
	}
	if _, got = ask(t, m.app, "query_name", s.name, "signal", "commit_sync", "from", from, "to", to); len(got.Data.Points) != 420 || *got.Data.Points[1].Operator != 1 {
		t.Errorf("%d points of two operators", len(got.Data.Points))
	}
	_, got = ask(t, m.app, "query_id", s.id, "signal", "batch_duration", "from", from, "to", to, "step", "30m")
	if len(got.Data.Points) != 7 || got.Data.Points[0].Count != 30 || *got.Data.Points[1].Min < 30 || *got.Data.Points[1].Last < 59 {
		t.Errorf("half hours: %+v", got.Data.Points)
	}
	if _, got = ask(t, m.app, "query_id", s.id, "signal", "batch_duration", "from", from, "to", to, "step", "1h"); len(got.Data.Points) != 0 {
		t.Errorf("%d hours before any was summed up", len(got.Data.Points))
	}
	now.Add(hourRests.Milliseconds())
	m.app.journal.tidy(m.app.opts.Now())
	_, got = ask(t, m.app, "query_id", s.id, "signal", "batch_duration", "from", from, "to", to, "step", "1h")
	if len(got.Data.Points) != 4 || got.Data.Source != "hours" {
		t.Fatalf("%d hours from %s", len(got.Data.Points), got.Data.Source)
	}
	if h := got.Data.Points[0]; h.Count != 60 || *h.Min > 0.3 || *h.Max < 59 || *h.Median < 29 || *h.Median > 30.5 || *h.P95 < 56 {
		t.Errorf("the first hour: %+v", h)
	}
	if _, got = ask(t, m.app, "query_id", s.id, "signal", "commit_sync", "from", from, "to", to, "step", "2h"); len(got.Data.Points) != 4 {
		t.Errorf("%d steps of two hours for two operators", len(got.Data.Points))
	}
}

func TestAQuestionToHistoryThatCannotBeAnsweredSaysWhy(t *testing.T) {
	m, s, _ := remembering(t, vfs.NewCrashableMem())
	defer m.stop()
	for _, c := range []struct {
		params []string
		want   string
	}{
		{[]string{"signal", "batch_duration"}, "give query_id or query_name"},
		{[]string{"query_id", s.id, "query_name", s.name, "signal", "batch_duration"}, "give query_id or query_name"},
		{[]string{"query_id", s.id, "signal", "batch_duratoin"}, `signal "batch_duratoin" is not known, did you mean "batch_duration"?`},
		{[]string{"query_id", s.id, "signal", "batch_duration", "from", "yesterday"}, `from: "yesterday" is neither a time`},
		{[]string{"query_id", s.id, "signal", "batch_duration", "from", "200", "to", "100"}, "must be before to"},
		{[]string{"query_id", s.id, "signal", "batch_duration", "step", "-1h"}, "step: \"-1h\" is neither a duration"},
	} {
		code, got := ask(t, m.app, c.params...)
		if code != http.StatusBadRequest || got.Status != "error" || !strings.Contains(got.Error, c.want) {
			t.Errorf("%v: status %d, %q, want %q", c.params, code, got.Error, c.want)
		}
	}
	if code, got := ask(t, m.app, "query_id", "nobody", "signal", "batch_duration"); code != http.StatusOK || len(got.Data.Points) != 0 {
		t.Errorf("a query nobody knows: status %d, %d points", code, len(got.Data.Points))
	}
	forgetful := start(t, testOptions(t))
	if code, got := ask(t, forgetful, "query_id", s.id, "signal", "batch_duration"); code != http.StatusNotFound || !strings.Contains(got.Error, "--storage.path") {
		t.Errorf("without storage: status %d, %q", code, got.Error)
	}
}

func TestHoursThatACrashLeftAreSummedUpByTheNextProcess(t *testing.T) {
	disk := vfs.NewCrashableMem()
	m, s, now := remembering(t, disk)
	m.app.journal.save() // and the log before it goes
	next := m.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	m.stop()
	again := born(t, next, now, 2)
	defer again.stop()
	now.Add(hourRests.Milliseconds())
	again.app.journal.tidy(again.app.opts.Now())
	_, got := ask(t, again.app, "query_id", s.id, "signal", "batch_duration", "from", fmt.Sprint(s.start.Unix()), "to", fmt.Sprint(s.at().Unix()), "step", "1h")
	if len(got.Data.Points) != 4 {
		t.Errorf("%d hours, want all four", len(got.Data.Points))
	}
}

// fullDisk has no room left while it is full.
type fullDisk struct {
	vfs.FS
	full atomic.Bool
}

func (f *fullDisk) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if f.full.Load() {
		return vfs.DiskUsage{AvailBytes: 1 << 20, TotalBytes: 1 << 40}, nil
	}
	return vfs.DiskUsage{AvailBytes: 1 << 39, TotalBytes: 1 << 40}, nil
}

// TestAFullDiskDegradesTheDaemonAndLosesNothingThatComesLater fills the disk for a
// while. Events are taken all the same; when there is room again, what a restart goes
// on from is saved as a whole.
func TestAFullDiskDegradesTheDaemonAndLosesNothingThatComesLater(t *testing.T) {
	disk := &fullDisk{FS: vfs.NewMem()}
	m, s, now := remembering(t, disk)
	disk.full.Store(true)
	for range 20 {
		m.hear(heard{s.at().UnixMilli(), s.next()})
	}
	if _, body := get(t, m.app, "/-/healthy"); !strings.Contains(body, `"status":"degraded"`) || !strings.Contains(body, "not written since") {
		t.Errorf("health with a full disk: %s", body)
	}
	if code, _ := get(t, m.app, "/-/ready"); code != http.StatusOK {
		t.Errorf("with a full disk it is not ready: %d", code)
	}
	disk.full.Store(false)
	m.hear(heard{s.at().UnixMilli(), s.next()})
	if _, body := get(t, m.app, "/-/healthy"); !strings.Contains(body, `"history":"ok"`) {
		t.Errorf("health with room again: %s", body)
	}
	m.app.journal.save()
	want := m.shows()
	m.stop()
	again := born(t, disk, now, 2)
	defer again.stop()
	if d := difference(again.shows(), want); d != "" {
		t.Errorf("after a restart:\n%s", d)
	}
	families := scrape(t, again.app)
	if got := value(t, families, "spark_streaming_batches_total", "query_id", s.id); got != 231 {
		t.Errorf("%g batches counted, want 231", got)
	}
}

// TestStateThatAFullDiskRefusedIsSavedWhenThereIsRoomAgain saves state while the disk is
// full, of a query that says nothing afterwards. Once there is room the log may only go
// as far as that state has really been written.
func TestStateThatAFullDiskRefusedIsSavedWhenThereIsRoomAgain(t *testing.T) {
	mem := vfs.NewCrashableMem()
	disk := &fullDisk{FS: mem}
	m, s, now := remembering(t, disk)
	defer m.stop()
	other := newStream(2)
	other.operators, other.stepMs, other.start = 1, 60_000, s.at()
	for range 40 {
		m.hear(heard{other.at().UnixMilli(), other.next()})
	}
	m.app.journal.sendSafely(m.app.newSplit(stepTick))
	disk.full.Store(true)
	m.app.journal.save()
	disk.full.Store(false)
	s.start = other.at().Add(-time.Duration(s.batch*s.stepMs) * time.Millisecond)
	m.hear(heard{s.at().UnixMilli(), s.next()})
	m.app.journal.save()
	m.hear(heard{s.at().UnixMilli(), s.next()}) // syncs the end of the log that has gone
	want := windows(m.shows())
	again := born(t, mem.CrashClone(vfs.CrashCloneCfg{}), now, 2)
	defer again.stop()
	if d := difference(windows(again.shows()), want); d != "" {
		t.Errorf("after a crash:\n%s", d)
	}
}

// windows leaves out how long a query was silent, which after a crash begins with
// what was saved last.
func windows(shown string) string {
	lines := strings.Split(shown, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, `"how":"silence"`) }), "\n")
}
