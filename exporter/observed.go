package exporter

import (
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// observedKey and quantileKey tell the series of a query apart whose labels are
// Spark's or the user's. Names are as they stand in labels: two that are cleaned
// to the same text are one series.
type observedKey struct{ name, column string }

type quantileKey struct {
	metric   event.MetricID
	quantile float64
}

// measureObserved shows the observed columns and the percentiles of the newest
// batch; what it does not have goes.
func (x *Exporter) measureObserved(q *query, b *event.Batch) {
	if q.past {
		return
	}
	for _, at := range q.observed {
		q.next[at] = absent
	}
	for _, at := range q.quantiles {
		q.next[at] = absent
	}
	for i := range b.Observed {
		o := &b.Observed[i]
		key := observedKey{cleanValue(o.Name, x.o.LabelBytes), cleanValue(o.Column, x.o.LabelBytes)}
		// A user's figure may be anything but absent or infinite.
		if o.Value-o.Value != 0 {
			continue
		}
		if at := x.observedSlot(q, key); at >= 0 {
			q.next[at] = o.Value
		}
	}
	for i := range b.Percentiles {
		x.measurePercentile(q, &b.Percentiles[i])
	}
}

// observedSlot returns the place of an observed column, -1 if a limit forbids it.
func (x *Exporter) observedSlot(q *query, key observedKey) int32 {
	if at, ok := q.observed[key]; ok {
		return int32(at)
	}
	at := x.addObserved(q, x.observedFamily, observedPairs(key)...)
	if at < 0 {
		return at
	}
	if q.observed == nil {
		q.observed = map[observedKey]uint32{}
	}
	q.observed[key] = uint32(at)
	return at
}

func observedPairs(k observedKey) []event.Label {
	return []event.Label{{Name: "observation", Value: k.name}, {Name: "column", Value: k.column}}
}

func quantilePair(q float64) event.Label {
	return event.Label{Name: "quantile", Value: strconv.FormatFloat(q, 'g', -1, 64)}
}

// addObserved makes a gauge under the limit that columns and percentiles share.
func (x *Exporter) addObserved(q *query, f *family, pairs ...event.Label) int32 {
	if len(q.observed)+len(q.quantiles) >= x.o.Observed {
		x.drop(dropObserved, q)
		return -1
	}
	return x.addDynamic(q, f, q.base.labels, extra(pairs...))
}

// measurePercentile shows one percentile. It has a label that no other gauge has
// and is never added up.
func (x *Exporter) measurePercentile(q *query, p *event.Percentile) {
	if int(p.Metric) >= event.NumMetrics || p.Value != p.Value || !(p.Quantile >= 0 && p.Quantile <= 1) {
		return
	}
	d := &x.defs[p.Metric]
	if d.row.Quirks&event.QuirkPercentile == 0 {
		return
	}
	if !plausible(p.Value) {
		x.implausible(d.row.JSON)
		return
	}
	key := quantileKey{p.Metric, p.Quantile}
	at, ok := q.quantiles[key]
	if !ok {
		made := x.addObserved(q, d.family, quantilePair(p.Quantile))
		if made < 0 {
			return
		}
		if q.quantiles == nil {
			q.quantiles = map[quantileKey]uint32{}
		}
		at = uint32(made)
		q.quantiles[key] = at
	}
	q.next[at] = p.Value
}
