package exporter

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stategauge/stategauge/event"
)

// Collector returns the same series for a client_golang registry. It builds every
// metric anew at each gathering, at that library's usual cost; pages are better
// served by Handler. Registered in the Gatherer that Handler is given, it is
// passed over there.
func (x *Exporter) Collector() prometheus.Collector { return collector{x} }

type collector struct{ x *Exporter }

// Describe sends nothing: families come and go with what Spark sends.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every series. No lock is held while it waits for the receiver.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.x.gather() {
		desc := prometheus.NewDesc(f.GetName(), f.GetHelp(), nil, nil)
		for _, m := range f.Metric {
			ch <- metric{desc, m}
		}
	}
}

// metric is a finished metric.
type metric struct {
	desc *prometheus.Desc
	dto  *dto.Metric
}

// Desc returns name and help; labels are in the metric itself.
func (m metric) Desc() *prometheus.Desc { return m.desc }

// Write copies the metric to out.
func (m metric) Write(out *dto.Metric) error {
	out.Label, out.Gauge, out.Counter, out.Histogram = m.dto.Label, m.dto.Gauge, m.dto.Counter, m.dto.Histogram
	return nil
}

// gather returns all families that have a value as client_golang knows them.
func (x *Exporter) gather() []*dto.MetricFamily {
	sc := x.acquire()
	defer x.release(sc)
	x.mu.RLock()
	defer x.mu.RUnlock()
	x.snapshot(sc)
	var out []*dto.MetricFamily
	for _, f := range x.families {
		if mf := f.dto(sc); len(mf.Metric) > 0 {
			out = append(out, mf)
		}
	}
	return out
}

// dto builds the family from the scrape's copy; what it returns is independent of
// both.
func (f *family) dto(sc *scrape) *dto.MetricFamily {
	mf := &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: dtoTypes[f.kind].Enum()}
	if f.unit != "" {
		mf.Unit = &f.unit
	}
	for i := range f.series {
		s := &f.series[i]
		m := &dto.Metric{}
		switch f.kind {
		case histogram:
			m.Histogram = f.dtoHistogram(s, sc.hist(s))
		default:
			v := f.scale.of(sc.value(s))
			if v != v {
				continue
			}
			if f.kind == gauge {
				m.Gauge = &dto.Gauge{Value: &v}
			} else {
				m.Counter = &dto.Counter{Value: &v, CreatedTimestamp: s.born.dto()}
			}
		}
		m.Label = dtoPairs(s.labels, s.extra)
		mf.Metric = append(mf.Metric, m)
	}
	return mf
}

// dto returns the time of s, nil where it is not known.
func (s *stamp) dto() *timestamppb.Timestamp {
	if s == nil {
		return nil
	}
	return timestamppb.New(time.UnixMilli(s.ms))
}

// dtoHistogram builds both forms of a histogram.
func (f *family) dtoHistogram(s *series, h *hist) *dto.Histogram {
	sum, schema, zero := f.scale.of(h.sum), int32(nativeSchema), nativeZero
	count, zeros := h.count, h.zeros // h is the scrape's, which is used again
	out := &dto.Histogram{
		SampleCount: &count, SampleSum: &sum, CreatedTimestamp: s.born.dto(),
		Schema: &schema, ZeroThreshold: &zero, ZeroCount: &zeros,
	}
	total := uint64(0)
	for i := range f.bucketText {
		total += h.counts[i]
		n, bound := total, math.Inf(1)
		if i < len(f.bounds) {
			bound = f.scale.of(f.bounds[i])
		}
		out.Bucket = append(out.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &bound, Exemplar: h.exemplars[i].dto()})
	}
	dtoNative(out, h)
	return out
}

// dtoNative sets the native buckets as appendNative writes them.
func dtoNative(out *dto.Histogram, h *hist) {
	if len(h.native) == 0 {
		offset, length := int32(0), uint32(0)
		out.PositiveSpan = []*dto.BucketSpan{{Offset: &offset, Length: &length}}
		return
	}
	next, was := int32(0), int64(0)
	add := func(count int64) {
		*out.PositiveSpan[len(out.PositiveSpan)-1].Length++
		out.PositiveDelta = append(out.PositiveDelta, count-was)
		was = count
		next++
	}
	for i, n := range h.native {
		if i == 0 || n.index-next > maxGap {
			offset, length := n.index-next, uint32(0)
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: &length})
			next = n.index
		}
		for next < n.index {
			add(0)
		}
		add(int64(n.count))
	}
}

// dto returns nil where the bucket has no exemplar.
func (e *exemplar) dto() *dto.Exemplar {
	if !e.set {
		return nil
	}
	name, id, v := "batch_id", strconv.FormatInt(e.batch, 10), e.value
	out := &dto.Exemplar{Label: []*dto.LabelPair{{Name: &name, Value: &id}}, Value: &v}
	if e.atMs > 0 && e.atMs != event.Absent {
		out.Timestamp = timestamppb.New(time.UnixMilli(e.atMs))
	}
	return out
}
