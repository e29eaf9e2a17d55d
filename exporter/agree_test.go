package exporter

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/stategauge/stategauge/event"
)

// everything returns an exporter that has something in every kind of family.
func everything(t testing.TB, o Options) *Exporter {
	t.Helper()
	x := New(o)
	hostile := newStream("id\xff\xfe\x00\"\\\n")
	hostile.ref.Name = "na\"me\\ \n \xed\xa0\x80 \u00fc"
	hostile.ref.Application = ""
	for i, s := range []*stream{newStream("a"), hostile} {
		x.Apply(s.started())
		for j := range 5 {
			u := s.executed(full(int64(i*10 + j)))
			b := u.Event.Batch
			b.Operators = b.Operators[:2-i]
			b.Values[event.BatchDuration] = []float64{0, 3, 1017.5, 90_000, 7.2e6}[j]
			b.Operators[0].Name = "odd\x00\"name"
			b.Operators[1-i].Unknown = []event.KV{{Key: "rocksdbNewLatencyMs", Value: 12.5}, {Key: "rocksdbNew\xffThing", Value: 1e300}}
			b.UnknownPhases = []event.KV{{Key: "odd\nphase", Value: 3}}
			b.Observed = []event.Observed{{Name: "q\"", Column: "\\", Value: -0.1}}
			b.Percentiles = []event.Percentile{{Metric: event.RTME2ELatency, Quantile: 0.5, Value: 1.0 / 3}}
			b.WatermarkMs = t0 + 123
			u.IntervalMs, u.IntervalFrom = 10_000, event.IntervalListener
			u.Missed, u.MissedReason = j, event.MissedSender
			x.Apply(u)
		}
	}
	x.Set(x.Slot("stategauge_forecast_seconds", "Time until something.", event.Label{Name: "query_id", Value: "a"}), 1e21)
	x.Set(x.Slot("stategauge_trend_slope_per_batch", "Slope."), -1.5e-9)
	return x
}

func TestAllFormatsSayTheSame(t *testing.T) {
	x := everything(t, Options{})
	proto := parseProto(t, page(t, x, expfmt.FmtProtoDelim))
	want := factsOf(t, proto, false)
	if len(want) < 300 {
		t.Fatalf("only %d samples", len(want))
	}
	if diff := cmp.Diff(want, factsOf(t, parseText(t, page(t, x, expfmt.FmtText)), false)); diff != "" {
		t.Errorf("text differs from protobuf (-protobuf +text):\n%s", diff)
	}
	if diff := cmp.Diff(want, factsOf(t, parseOpenMetrics(t, page(t, x, expfmt.FmtOpenMetrics_1_0_0)), false)); diff != "" {
		t.Errorf("OpenMetrics differs from protobuf (-protobuf +OpenMetrics):\n%s", diff)
	}
	if diff := cmp.Diff(factsOf(t, proto, true), factsOf(t, collected(t, x), true)); diff != "" {
		t.Errorf("Collector differs from protobuf, native histograms included (-protobuf +Collector):\n%s", diff)
	}
}

// parseOpenMetrics parses a page with the library's strict parser, which wants
// its end.
func parseOpenMetrics(t testing.TB, s string) []*dto.MetricFamily {
	t.Helper()
	if strings.Count(s, "# EOF\n") != 1 || !strings.HasSuffix(s, "\n# EOF\n") {
		t.Fatal("an OpenMetrics page has one end, at its end")
	}
	dec := expfmt.NewDecoder(strings.NewReader(s), expfmt.FmtOpenMetrics_1_0_0)
	var out []*dto.MetricFamily
	for {
		mf := &dto.MetricFamily{}
		err := dec.Decode(mf)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("OpenMetrics page: %v", err)
		}
		if mf.GetType() == dto.MetricType_COUNTER && !strings.HasSuffix(mf.GetName(), "_total") {
			*mf.Name += "_total"
		}
		out = append(out, mf)
	}
}

func TestProtobufAndCollectorAgreeInEveryField(t *testing.T) {
	x := everything(t, Options{})
	page := parseProto(t, page(t, x, expfmt.FmtProtoDelim))
	gathered := collected(t, x)
	// The registry sorts metrics and labels and keeps no unit.
	opts := []cmp.Option{
		protocmp.Transform(),
		protocmp.IgnoreFields(&dto.MetricFamily{}, "unit"),
		protocmp.SortRepeated(func(a, b *dto.LabelPair) bool { return a.GetName() < b.GetName() }),
		protocmp.SortRepeated(func(a, b *dto.Metric) bool { return metricKey(a) < metricKey(b) }),
		cmpopts.EquateEmpty(),
	}
	if diff := cmp.Diff(page, gathered, opts...); diff != "" {
		t.Error(diff)
	}
}

func metricKey(m *dto.Metric) string {
	pairs := map[string]string{}
	for _, l := range m.Label {
		pairs[l.GetName()] = l.GetValue()
	}
	var b strings.Builder
	for _, n := range []string{"query_id", "operator", "operator_index", "source_index", "phase", "kind", "state", "op", "result", "reason", "origin", "quantile", "column"} {
		b.WriteString(pairs[n] + "\x01")
	}
	return b.String()
}

func TestExemplarsAndCreatedTimesSurviveTheFormats(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.started())
	x.Apply(s.executed(nil))
	var bucket *dto.Bucket
	for _, mf := range parseProto(t, page(t, x, expfmt.FmtProtoDelim)) {
		if mf.GetName() == "spark_streaming_batch_duration_seconds" {
			h := mf.Metric[0].Histogram
			bucket = h.Bucket[4]
			if got := h.GetCreatedTimestamp().AsTime().UnixMilli(); got != t0+1000 {
				t.Errorf("histogram created at %d, want the arrival of Started, %d", got, t0+1000)
			}
		}
	}
	e := bucket.GetExemplar()
	if e.GetLabel()[0].GetName() != "batch_id" || e.GetLabel()[0].GetValue() != "0" || e.GetValue() != 1 {
		t.Errorf("exemplar %v", e)
	}
	if got, want := e.GetTimestamp().AsTime().UnixMilli(), t0+2000; got != want {
		t.Errorf("exemplar at %d, want the end of the batch, %d", got, want)
	}
	om := page(t, x, expfmt.FmtOpenMetrics_1_0_0)
	for _, want := range []string{
		`le="1.0"} 1 # {batch_id="0"} 1 1700000002` + "\n",
		"spark_streaming_batch_duration_seconds_created{query_id=\"q\",query_name=\"orders\",application=\"shop\"} 1700000001\n",
		"spark_streaming_batches_created{query_id=\"q\",query_name=\"orders\",application=\"shop\",kind=\"data\"} 1700000001\n",
	} {
		if !strings.Contains(om, want) {
			t.Errorf("page has no line ending in %s", want)
		}
	}
}

// A counter that appears later was still 0 when the query was heard of last.
func TestLateCountersAreCreatedAtThePreviousUpdate(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.executed(func(b *event.Batch) { b.Operators = b.Operators[:0] }))
	x.Apply(s.executed(nil))
	want := map[string]int64{
		"spark_streaming_batches_total":            t0, // arrival of the first batch less its duration
		"spark_streaming_state_rows_updated_total": t0 + 1000,
	}
	for _, mf := range parseProto(t, page(t, x, expfmt.FmtProtoDelim)) {
		if at, ok := want[mf.GetName()]; ok {
			delete(want, mf.GetName())
			if got := mf.Metric[0].Counter.GetCreatedTimestamp().AsTime().UnixMilli(); got != at {
				t.Errorf("%s created at %d, want %d", mf.GetName(), got, at)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("not found: %v", want)
	}
}

func TestHistogramsMatchTheLibrarys(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Help: "The library's own.", Buckets: batchBounds, NativeHistogramBucketFactor: 1.1,
	})
	for _, ms := range []float64{0, 1, 1, 49, 50, 51, 100, 125, 250, 500, 501, 999, 1000, 1000, 4096, 60_000, 3.6e6, 1e12} {
		x.Apply(s.executed(func(b *event.Batch) { b.Values[event.BatchDuration] = ms }))
		h.Observe(ms / 1000)
	}
	var want dto.Metric
	if err := h.Write(&want); err != nil {
		t.Fatal(err)
	}
	want.Histogram.Bucket = append(want.Histogram.Bucket, &dto.Bucket{CumulativeCount: new(uint64(18)), UpperBound: new(inf)})
	for _, mf := range parseProto(t, page(t, x, expfmt.FmtProtoDelim)) {
		if mf.GetName() != "spark_streaming_batch_duration_seconds" {
			continue
		}
		opts := []cmp.Option{
			protocmp.Transform(), protocmp.IgnoreFields(&dto.Histogram{}, "created_timestamp"), protocmp.IgnoreFields(&dto.Bucket{}, "exemplar"),
			cmpopts.EquateApprox(1e-12, 0),
		}
		if diff := cmp.Diff(want.Histogram, mf.Metric[0].Histogram, opts...); diff != "" {
			t.Error(diff)
		}
		return
	}
	t.Error("no histogram")
}

func TestAHistogramWithoutObservationsIsStillNative(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").started())
	for _, mf := range parseProto(t, page(t, x, expfmt.FmtProtoDelim)) {
		if mf.GetType() == dto.MetricType_HISTOGRAM && len(mf.Metric[0].Histogram.PositiveSpan) != 1 {
			t.Errorf("%s has no span to tell it from a classic histogram", mf.GetName())
		}
	}
}

func TestPromtoolFindsNoFault(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed")
	}
	reg := prometheus.NewRegistry()
	x := everything(t, Options{Registerer: reg})
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = get(t, x.Handler(reg)).Body
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 1) {
		t.Fatalf("promtool: %v\n%s", err, out)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		if line != "" && !tolerated(line) {
			t.Error(line)
		}
	}
}

// tolerated is what promtool says of percentiles: they come ready-made, one batch
// each, so they are gauges and no summary, which would have a count and a sum.
func tolerated(line string) bool {
	return strings.Contains(line, "_rtm_") && strings.HasSuffix(line, `non-summary metrics should not have "quantile" label`)
}
