package app

import (
	"encoding/json"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
)

// ordinary is what an exporter is usually made of: encoding/json into structs, and
// a GaugeVec looked up by label values for every figure.
type ordinary struct {
	vecs map[string]*prometheus.GaugeVec
	reg  *prometheus.Registry
}

// ordinaryProgress has the fields that such an exporter reads.
type ordinaryProgress struct {
	ID, RunID, Name, Timestamp string
	BatchID                    int64
	DurationMs                 map[string]int64
	StateOperators             []struct {
		OperatorName                               string
		NumRowsTotal, NumRowsUpdated, CommitTimeMs int64
		CustomMetrics                              map[string]int64
	}
	Sources []struct {
		StartOffset, EndOffset, LatestOffset map[string]map[string]int64
		NumInputRows                         int64
	}
}

func (o *ordinary) set(name string, v float64, query, operator, index string) {
	vec := o.vecs[name]
	if vec == nil {
		vec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "spark_" + name}, []string{"query_id", "query_name", "operator", "operator_index"})
		o.reg.MustRegister(vec)
		o.vecs[name] = vec
	}
	vec.WithLabelValues(query, query, operator, index).Set(v)
}

func (o *ordinary) take(body []byte) error {
	var p ordinaryProgress
	if err := json.Unmarshal(body, &p); err != nil {
		return err
	}
	for k, v := range p.DurationMs {
		o.set(k, float64(v), p.ID, "", "")
	}
	for i := range p.StateOperators {
		op, index := &p.StateOperators[i], strconv.Itoa(i)
		o.set("rows", float64(op.NumRowsTotal), p.ID, op.OperatorName, index)
		o.set("updated", float64(op.NumRowsUpdated), p.ID, op.OperatorName, index)
		o.set("commit", float64(op.CommitTimeMs), p.ID, op.OperatorName, index)
		for k, v := range op.CustomMetrics {
			o.set(k, float64(v), p.ID, op.OperatorName, index)
		}
	}
	for i := range p.Sources {
		o.set("input", float64(p.Sources[i].NumInputRows), p.ID, "", strconv.Itoa(i))
	}
	return nil
}

// ours is the same path of this daemon, without HTTP and queues: decode, track,
// export.
type ours struct {
	pool     *decode.Pool
	decoder  *decode.Decoder
	tracker  *track.Tracker
	exporter *exporter.Exporter
	updates  []event.Update
}

func newOurs() *ours {
	p := decode.NewPool(decode.DefaultLimits())
	return &ours{
		pool: p, decoder: p.Get(), tracker: track.New(track.DefaultConfig(), nil),
		exporter: exporter.New(exporter.Options{Registerer: prometheus.NewRegistry()}),
	}
}

func (o *ours) take(body []byte) (err error) {
	o.decoder.Body(body, func(_ int, e *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			err = rej.Err
			return false
		}
		o.updates = o.tracker.Apply(e, e.AtMs+5000, o.updates[:0])
		for i := range o.updates {
			o.exporter.Apply(&o.updates[i])
		}
		o.pool.Release(e)
		return true
	})
	return err
}

// processorTime is what this process has used so far, garbage collection on other
// processors included.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecodeAndUpdateVersusJSONAndGaugeVec takes events of 7 KB into 100,000
// live series, both ways in turns, five rounds of all queries each. It compares
// processor time: most of what the ordinary way costs is collecting its garbage.
func BenchmarkDecodeAndUpdateVersusJSONAndGaugeVec(b *testing.B) {
	const queries, rounds = 400, 5
	f, mine, theirs := newFleet(queries), newOurs(), &ordinary{map[string]*prometheus.GaugeVec{}, prometheus.NewRegistry()}
	sides := []func([]byte) error{mine.take, theirs.take}
	bodies := make([][]byte, rounds*queries)
	play := func(take func([]byte) error) {
		for _, body := range bodies {
			if err := take(body); err != nil {
				b.Fatal(err)
			}
		}
	}
	// Only new batches count, so bodies serve each side once.
	refill := func() {
		for i := range bodies {
			bodies[i] = append(bodies[i][:0], f.event()...)
		}
	}
	refill()
	play(mine.take)
	play(theirs.take)
	var spent [2]time.Duration
	for b.Loop() {
		refill()
		for i, take := range sides {
			runtime.GC()
			began := processorTime(b)
			play(take)
			spent[i] += processorTime(b) - began
		}
	}
	events := float64(b.N * len(bodies))
	b.ReportMetric(float64(spent[0].Nanoseconds())/events, "ours-ns/event")
	b.ReportMetric(float64(spent[1].Nanoseconds())/events, "peer-ns/event")
	b.ReportMetric(float64(spent[1])/float64(spent[0]), "x_peer")
}
