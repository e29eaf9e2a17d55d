package exporter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

func TestShowingCountsNothing(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	for i := range 5 {
		u := s.executed(full(int64(i)))
		u.Missed, u.MissedReason = 3, event.MissedDropped
		u.Event.Batch.UnknownPhases = []event.KV{{Key: "vendorPhase", Value: 30}}
		x.Show(u)
	}
	for name, v := range monotone(t, x) {
		if v != 0 {
			t.Errorf("%s is %g", name, v)
		}
	}
	wantValue(t, x, "4", "last_batch_id")
	wantValue(t, x, "1", "last_batch_duration_seconds")
	wantValue(t, x, "1", "query_state", `state="running"`)
	wantValue(t, x, "0", "missed_batches_total", `reason="dropped"`)
	wantValue(t, x, "0", "batch_duration_seconds_count")
	wantValue(t, x, "0.03", "last_batch_phase_seconds", `phase="vendorPhase"`)
	before := monotone(t, x)
	x.Apply(s.executed(full(9)))
	wantValue(t, x, "1", "batches_total", `kind="data"`)
	wantValue(t, x, "1", "batch_duration_seconds_count")
	for name := range monotone(t, x) {
		if _, ok := before[name]; !ok {
			t.Errorf("%s begins with the first batch that counts: nobody sees its step", name)
		}
	}
}

// The past that was shown tells a repeated upload figure from a fresh one, as if it
// had been counted.
func TestWhatIsRepeatedIsKnownFromThePastThatWasShown(t *testing.T) {
	upload := func(copied float64) func(*event.Batch) {
		return func(b *event.Batch) {
			o := &b.Operators[0]
			o.Values[event.RocksDBBytesCopied], o.Values[event.RocksDBFilesCopied] = copied, 3
			o.Values[event.RocksDBChangeLogWriterCommitLatency] = 5
			o.Values[event.RocksDBCommitFlushLatency] = 1
		}
	}
	counted, shown := New(Options{}), New(Options{})
	s := newStream("q")
	for _, copied := range []float64{10, 10, 70, 70} {
		u := s.executed(upload(copied))
		counted.Apply(u)
		shown.Show(u)
	}
	was := value(t, counted, "rocksdb_uploaded_bytes_total")
	for _, copied := range []float64{70, 90, 90} {
		u := s.executed(upload(copied))
		counted.Apply(u)
		shown.Apply(u)
	}
	if was != "80" {
		t.Errorf("%s bytes counted of what was shown", was)
	}
	wantValue(t, counted, "170", "rocksdb_uploaded_bytes_total")
	wantValue(t, shown, "90", "rocksdb_uploaded_bytes_total")
}

func TestShowingTheNewestBatchAgainChangesNothing(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	s.conf = map[string]string{confChangelog: "true"}
	x.Apply(s.started())
	var u *event.Update
	for i := range 4 {
		u = s.executed(full(int64(i / 2)))
		u.NewRun = i == 3
		x.Apply(u)
	}
	before, saved := page(t, x, expfmt.FmtOpenMetrics_1_0_0), x.SaveCounters("q", nil)
	x.Show(u)
	if page(t, x, expfmt.FmtOpenMetrics_1_0_0) != before {
		t.Error("the page changed")
	}
	if string(x.SaveCounters("q", nil)) != string(saved) {
		t.Error("what is remembered changed")
	}
}

func TestAForgottenQueryIsGoneAtOnce(t *testing.T) {
	for name, forget := range map[string]func(x *Exporter, s *stream){
		"forget": func(x *Exporter, s *stream) { x.Forget(s.ref.ID) },
		"moved": func(x *Exporter, s *stream) {
			u := s.state(event.StateRetired)
			u.Moved = true
			x.Apply(u)
		},
		"moved in a past that is shown": func(x *Exporter, s *stream) {
			u := s.state(event.StateRetired)
			u.Moved = true
			x.Show(u)
		},
	} {
		x := New(Options{})
		s, stays := newStream("q"), newStream("stays")
		x.Apply(s.executed(full(1)))
		x.Apply(stays.executed(full(1)))
		slot := x.Slot("stategauge_forecast_seconds", "Time.", event.Label{Name: "query_id", Value: "q"})
		x.Set(slot, 5)
		forget(x, s)
		if p := text(t, x); strings.Contains(p, `"q"`) || !strings.Contains(p, `"stays"`) {
			t.Errorf("%s: it is still there, or too much has gone", name)
		}
		if x.live.Load() != 1 || int(x.total.Load()) != recount(x) || x.SaveCounters("q", nil) != nil {
			t.Errorf("%s: %d queries, %d series of %d", name, x.live.Load(), x.total.Load(), recount(x))
		}
		x.Forget("q")
		x.Apply(s.executed(nil))
		wantValue(t, x, "1", "batches_total", `"q"`, `kind="data"`)
	}
}

// Batches may come out of order; what the page shows as newest must not go back.
func TestABatchThatWasOvertakenIsCountedAndChangesNoLevel(t *testing.T) {
	inOrder, overtaken := New(Options{}), New(Options{})
	s := newStream("q")
	var us []*event.Update
	for i := range 4 {
		us = append(us, s.executed(func(b *event.Batch) {
			full(int64(i * 3))(b)
			odd(1)(b)
			b.Operators = b.Operators[:4-i%2]
			b.Values[event.BatchDuration] = float64(1000 + i)
			b.Operators[0].Values[event.NumRowsTotal] = float64(100 + i)
		}))
	}
	for _, u := range us {
		inOrder.Apply(u)
	}
	late := *us[2]
	late.OutOfOrder = true
	last := *us[3]
	last.Origin.ReceivedMs, late.Origin.ReceivedMs = late.Origin.ReceivedMs, last.Origin.ReceivedMs
	for _, u := range []*event.Update{us[0], us[1], &last} {
		overtaken.Apply(u)
	}
	before := levels(t, overtaken)
	overtaken.Apply(&late)
	if diff := cmp.Diff(before, levels(t, overtaken)); diff != "" {
		t.Errorf("levels changed: (-before +after)\n%s", diff)
	}
	a, b := monotone(t, inOrder), monotone(t, overtaken)
	for name, v := range a {
		// What may repeat an earlier batch is not counted where nothing can tell.
		if b[name] != v && !strings.Contains(name, "uploaded") && !strings.Contains(name, "reused") && !strings.Contains(name, "zip") {
			t.Errorf("%s is %g, in order %g", name, b[name], v)
		}
	}
}

// levels are the lines of gauges, those of the newest arrival left out.
func levels(t *testing.T, x *Exporter) []string {
	t.Helper()
	var out []string
	for line := range strings.SplitSeq(text(t, x), "\n") {
		name, _, _ := strings.Cut(line, "{")
		f := x.byName[name]
		if f != nil && f.kind == gauge && !strings.Contains(name, "last_event") {
			out = append(out, line)
		}
	}
	return out
}
