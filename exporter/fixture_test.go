package exporter

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stategauge/stategauge/event"
)

// t0 is when the clock of these tests starts, Unix milliseconds.
const t0 = int64(1_700_000_000_000)

// stream makes the updates of one query, one batch a second.
type stream struct {
	ref   event.QueryRef
	run   event.RunID
	next  int64 // batch id
	nowMs int64
	conf  map[string]string
}

func newStream(id string) *stream {
	return &stream{ref: event.QueryRef{ID: event.QueryID(id), Name: "orders", Application: "shop"}, run: "run-1", nowMs: t0}
}

func (s *stream) update(o event.Outcome, k event.Kind, st event.State) *event.Update {
	s.nowMs += 1000
	u := &event.Update{
		Event:   &event.Event{Kind: k, Query: s.ref, Run: s.run, AtMs: s.nowMs},
		Origin:  event.Origin{Source: "test", ReceivedMs: s.nowMs},
		Outcome: o, State: st, IntervalMs: math.NaN(),
	}
	if s.conf != nil {
		u.Event.Envelope = &event.Envelope{Conf: s.conf}
	}
	return u
}

func (s *stream) started() *event.Update {
	u := s.update(event.OutcomeStarted, event.KindStarted, event.StateRunning)
	u.StartedSeen, u.NewRun, u.NewQuery = true, true, true
	return u
}

func (s *stream) idle() *event.Update {
	return s.update(event.OutcomeIdle, event.KindIdle, event.StateIdle)
}

func (s *stream) state(st event.State) *event.Update {
	return s.update(event.OutcomeStateChange, event.KindTick, st)
}

// executed makes the update of the next batch. fill gets a batch that took
// 1,000 ms and has one RocksDB operator of four stores.
func (s *stream) executed(fill func(b *event.Batch)) *event.Update {
	u := s.update(event.OutcomeExecuted, event.KindProgress, event.StateRunning)
	b := &event.Batch{}
	b.Reset()
	b.Query, b.Run, b.ID, b.StartMs = s.ref, s.run, s.next, s.nowMs-1000
	b.Executed = true
	v := &b.Values
	v[event.BatchDuration] = 1000
	v[event.NumInputRows] = 50
	v[event.DurationTriggerExecution] = 990
	v[event.DurationAddBatch] = 800
	v[event.DurationWalCommit] = 100
	operator(b, "stateStoreSave")
	if fill != nil {
		fill(b)
	}
	s.next++
	u.Event.Batch = b
	return u
}

// operator adds a RocksDB operator of four stores to b.
func operator(b *event.Batch, name string) *event.Operator {
	o := b.AddOperator()
	o.Name, o.Instances, o.Stores, o.Provider = name, 4, 4, event.ProviderRocksDB
	v := &o.Values
	v[event.NumStateStoreInstances], v[event.NumShufflePartitions] = 4, 4
	v[event.NumRowsTotal], v[event.NumRowsUpdated] = 70, 7
	v[event.MemoryUsedBytes], v[event.CommitTime] = 4096, 900
	v[event.RocksDBSstFileSize] = 8192
	v[event.RocksDBCommitFileSyncLatency] = 400
	return o
}

// page returns what x writes in a format.
func page(t testing.TB, x *Exporter, f expfmt.Format) string {
	t.Helper()
	var buf bytes.Buffer
	if err := x.Write(&buf, f); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// text returns the text page without comments.
func text(t testing.TB, x *Exporter) string {
	t.Helper()
	var out []string
	for line := range strings.SplitSeq(page(t, x, expfmt.FmtText), "\n") {
		if line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// value returns the value of the one line that starts with name and has all the
// given parts; "absent" if there is none.
func value(t testing.TB, x *Exporter, name string, parts ...string) string {
	t.Helper()
	found := "absent"
	for line := range strings.SplitSeq(text(t, x), "\n") {
		rest, ok := strings.CutPrefix(line, "spark_streaming_"+name+"{")
		if !ok || slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(rest, p) }) {
			continue
		}
		if found != "absent" {
			t.Fatalf("more than one series of %s with %v", name, parts)
		}
		found = rest[strings.LastIndexByte(rest, ' ')+1:]
	}
	return found
}

func wantValue(t testing.TB, x *Exporter, want, name string, parts ...string) {
	t.Helper()
	if got := value(t, x, name, parts...); got != want {
		t.Errorf("%s%v = %s, want %s", name, parts, got, want)
	}
}

// selfValue returns one of the exporter's own metrics.
func selfValue(t testing.TB, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	mfs, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, mf := range mfs {
		for _, m := range mf.Metric {
			if mf.GetName() == name && (label == "" || len(m.Label) == 1 && m.Label[0].GetValue() == label) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// facts is every sample of a page by name and labels, histograms taken apart.
type facts map[string]float64

func (f facts) put(t testing.TB, name string, labels []*dto.LabelPair, v float64, more ...string) {
	t.Helper()
	ls := slices.Clone(more)
	for _, l := range labels {
		ls = append(ls, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(ls)
	key := name + "{" + strings.Join(ls, ",") + "}"
	if _, dup := f[key]; dup {
		t.Fatalf("%s is there twice", key)
	}
	f[key] = v
}

// factsOf takes families apart. Native buckets count only where wanted: text has none.
func factsOf(t testing.TB, mfs []*dto.MetricFamily, native bool) facts {
	t.Helper()
	out := facts{}
	for _, mf := range mfs {
		for _, m := range mf.Metric {
			switch mf.GetType() {
			case dto.MetricType_GAUGE:
				out.put(t, mf.GetName(), m.Label, m.Gauge.GetValue())
			case dto.MetricType_COUNTER:
				out.put(t, mf.GetName(), m.Label, m.Counter.GetValue())
			case dto.MetricType_HISTOGRAM:
				out.histogram(t, mf.GetName(), m, native)
			default:
				t.Fatalf("%s has type %s", mf.GetName(), mf.GetType())
			}
		}
	}
	return out
}

func (f facts) histogram(t testing.TB, name string, m *dto.Metric, native bool) {
	t.Helper()
	h := m.Histogram
	f.put(t, name+"_sum", m.Label, h.GetSampleSum())
	f.put(t, name+"_count", m.Label, float64(h.GetSampleCount()))
	for _, b := range h.Bucket {
		f.put(t, name+"_bucket", m.Label, float64(b.GetCumulativeCount()), fmt.Sprintf("le=%g", b.GetUpperBound()))
	}
	if !native {
		return
	}
	f.put(t, name+"_schema", m.Label, float64(h.GetSchema()))
	at, count, i := int32(0), int64(0), 0
	for _, s := range h.PositiveSpan {
		at += s.GetOffset()
		for range s.GetLength() {
			count += h.PositiveDelta[i]
			f.put(t, name+"_native", m.Label, float64(count), fmt.Sprintf("index=%d", at))
			at++
			i++
		}
	}
}

// parseText parses a text page with the library's parser.
func parseText(t testing.TB, s string) []*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	byName, err := p.TextToMetricFamilies(strings.NewReader(s))
	if err != nil {
		t.Fatalf("text page: %v", err)
	}
	return sorted(byName)
}

// parseProto parses a page of delimited messages with the library's parser.
func parseProto(t testing.TB, s string) []*dto.MetricFamily {
	t.Helper()
	dec := expfmt.NewDecoder(strings.NewReader(s), expfmt.FmtProtoDelim)
	var out []*dto.MetricFamily
	for {
		mf := &dto.MetricFamily{}
		err := dec.Decode(mf)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("protobuf page: %v", err)
		}
		out = append(out, mf)
	}
}

func sorted(byName map[string]*dto.MetricFamily) []*dto.MetricFamily {
	var out []*dto.MetricFamily
	for _, mf := range byName {
		out = append(out, mf)
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// collected gathers x through a registry of the library's.
func collected(t testing.TB, x *Exporter) []*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(x.Collector())
	mfs, err := reg.Gather()
	if err != nil {
		t.Fatalf("registry: %v", err)
	}
	return mfs
}
