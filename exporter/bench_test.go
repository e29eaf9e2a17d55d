package exporter

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// benchSeries is the number of series on the pages that are compared.
const benchSeries = 100_000

// full fills an operator with every RocksDB figure of Spark 4.1.
func full(seed int64) func(*event.Batch) {
	return func(b *event.Batch) {
		b.Operators = b.Operators[:0]
		for range 3 {
			o := operator(b, "stateStoreSave")
			for id := event.RocksDBSstFileSize; id <= event.RocksDBForceSnapshotCount; id++ {
				if id != event.RocksDBCommitWriteBatchLatency && id != event.RocksDBCommitPauseLatency {
					o.Values[id] = float64(seed*31+int64(id)*17) / 1
				}
			}
			o.Values[event.RocksDBCommitFileSyncLatency] = float64(900 + seed%500)
			o.Values[event.CommitTime] = 8000
			o.Values[event.AllUpdatesTime], o.Values[event.AllRemovalsTime] = 1234, 17
			o.SnapshotMin, o.NumSnapshots = b.ID-2, 5
		}
		s := b.AddSource()
		s.Rows, s.Backlog, s.InputRate, s.ProcessedRate = 50, 1000, 12.5, 18.25
	}
}

// loaded returns an exporter with at least n series, each query having run twice.
func loaded(b testing.TB, n int64) *Exporter {
	b.Helper()
	x := New(Options{Series: math.MaxInt, SeriesPerQuery: math.MaxInt})
	for i := int64(0); x.total.Load() < n; i++ {
		s := newStream(fmt.Sprintf("6b2b7a0e-58e4-4b3c-9d5c-%012d", i))
		s.ref.Name = "orders-enriched-" + strconv.FormatInt(i, 10)
		x.Apply(s.started())
		x.Apply(s.executed(full(i)))
		x.Apply(s.executed(full(i + 1)))
	}
	return x
}

// peer returns a registry of GaugeVecs that holds the same samples as x.
func peer(b testing.TB, x *Exporter) *prometheus.Registry {
	b.Helper()
	reg := prometheus.NewRegistry()
	for _, mf := range parseText(b, page(b, x, expfmt.FmtText)) {
		switch mf.GetType() {
		case dto.MetricType_HISTOGRAM:
			for _, m := range mf.Metric {
				for _, bucket := range m.Histogram.Bucket {
					le := &dto.LabelPair{Name: new("le"), Value: new(strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64))}
					peerSet(b, reg, mf.GetName()+"_bucket", append(m.Label, le), float64(bucket.GetCumulativeCount()))
				}
				peerSet(b, reg, mf.GetName()+"_sum", m.Label, m.Histogram.GetSampleSum())
				peerSet(b, reg, mf.GetName()+"_count", m.Label, float64(m.Histogram.GetSampleCount()))
			}
		default:
			for _, m := range mf.Metric {
				peerSet(b, reg, mf.GetName(), m.Label, m.Counter.GetValue()+m.Gauge.GetValue())
			}
		}
	}
	return reg
}

func peerSet(b testing.TB, reg *prometheus.Registry, name string, labels []*dto.LabelPair, v float64) {
	names, values := make([]string, len(labels)), make([]string, len(labels))
	for i, l := range labels {
		names[i], values[i] = l.GetName(), l.GetValue()
	}
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "A gauge of the peer."}, names)
	if err := reg.Register(vec); err != nil {
		vec = err.(prometheus.AlreadyRegisteredError).ExistingCollector.(*prometheus.GaugeVec) //nolint:errorlint // as the library documents it
	}
	vec.WithLabelValues(values...).Set(v)
}

// versus times ours and the peer in turn and reports how many times faster ours is.
func versus(b *testing.B, ours, theirs func()) {
	b.Helper()
	ours()
	theirs()
	b.ReportAllocs()
	var mine, other time.Duration
	rounds := 0
	for b.Loop() {
		start := time.Now()
		ours()
		mine += time.Since(start)
		// The peer is slow; it need not run as often to be measured as well.
		if rounds%8 == 0 {
			b.StopTimer()
			start = time.Now()
			theirs()
			other += time.Since(start)
			b.StartTimer()
		}
		rounds++
	}
	peers := (rounds + 7) / 8
	b.ReportMetric(other.Seconds()/float64(peers)/(mine.Seconds()/float64(rounds)), "x_peer")
}

func benchScrape(b *testing.B, f expfmt.Format) {
	x := loaded(b, benchSeries)
	reg := peer(b, x)
	versus(b, func() {
		if err := x.Write(io.Discard, f); err != nil {
			b.Fatal(err)
		}
	}, func() {
		mfs, err := reg.Gather()
		if err != nil {
			b.Fatal(err)
		}
		enc := expfmt.NewEncoder(io.Discard, f)
		for _, mf := range mfs {
			if err := enc.Encode(mf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkScrapeTextVersusGaugeVec(b *testing.B) { benchScrape(b, expfmt.FmtText) }

func BenchmarkScrapeOpenMetricsVersusGaugeVec(b *testing.B) {
	benchScrape(b, expfmt.FmtOpenMetrics_1_0_0)
}

func BenchmarkScrapeProtobufVersusGaugeVec(b *testing.B) { benchScrape(b, expfmt.FmtProtoDelim) }

// discard is a client that reads everything and keeps nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func BenchmarkScrapeGzipVersusGaugeVec(b *testing.B) {
	x := loaded(b, benchSeries)
	ours := x.Handler(nil)
	theirs := promhttp.HandlerFor(peer(b, x), promhttp.HandlerOpts{})
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	r.Header.Set("Accept-Encoding", "gzip")
	serve := func(h http.Handler) func() {
		return func() { h.ServeHTTP(&discard{http.Header{}}, r) }
	}
	versus(b, serve(ours), serve(theirs))
}

// BenchmarkApplyVersusGaugeVec sets the figures of one batch of three operators
// among 100,000 series of other queries.
func BenchmarkApplyVersusGaugeVec(b *testing.B) {
	x := loaded(b, benchSeries)
	s := newStream("bench")
	x.Apply(s.started())
	u := s.executed(full(1))
	x.Apply(u)
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "g"}, []string{"family", "query_id", "query_name", "application", "operator", "operator_index"})
	for i := range benchSeries / 100 {
		for j := range 100 {
			vec.WithLabelValues(strconv.Itoa(j), strconv.Itoa(i), "orders", "shop", "stateStoreSave", "0").Set(1)
		}
	}
	versus(b, func() { x.Apply(u) }, func() {
		batch := u.Event.Batch
		for i, v := range batch.Values {
			if v == v {
				vec.WithLabelValues(event.Lookup(event.MetricID(i)).Series, "bench", "orders", "shop", "", "").Set(v)
			}
		}
		for i := range batch.Operators {
			o := &batch.Operators[i]
			for j, v := range o.Values {
				if v == v {
					vec.WithLabelValues(event.Lookup(event.MetricID(j)).Series, "bench", "orders", "shop", o.Name, strconv.Itoa(o.Index)).Set(v)
				}
			}
		}
	})
}
