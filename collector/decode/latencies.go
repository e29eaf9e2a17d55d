package decode

import (
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// latencies parses the percentiles of a real-time mode batch: an object of
// metrics, each an object of percentiles such as P50.
func (d *Decoder) latencies() {
	d.repeated(len(d.batch.Percentiles) > 0)
	d.batch.Percentiles = d.batch.Percentiles[:0]
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		id, ok := latencyOf(key)
		if !ok {
			d.c.skip()
			continue
		}
		if d.open('{') {
			d.percentiles(id)
		}
	}
}

// latencyOf finds the catalog row of a latency. One vendor text leaves the unit out.
func latencyOf(key []byte) (event.MetricID, bool) {
	switch string(key) {
	case "processingLatencyMs", "processingLatency":
		return event.RTMProcessingLatency, true
	case "sourceQueuingLatencyMs", "sourceQueuingLatency":
		return event.RTMSourceQueuingLatency, true
	case "e2eLatencyMs", "e2eLatency":
		return event.RTME2ELatency, true
	}
	return 0, false
}

func (d *Decoder) percentiles(id event.MetricID) {
	b := d.batch
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		q, ok := quantile(key)
		if !ok || !d.room() {
			d.c.rec.giveUp()
			d.c.skip()
			continue
		}
		v := d.c.number(slot{kind: slotPercentile, id: uint32(len(b.Percentiles))})
		if v != v {
			d.c.rec.giveUp()
			continue
		}
		d.unknown++
		b.Percentiles = append(b.Percentiles, event.Percentile{Metric: id, Quantile: q, Value: v})
	}
}

// quantile reads P50, p99 or P99.9 as a number from 0 to 1.
func quantile(key []byte) (q float64, ok bool) {
	if len(key) < 2 || len(key) > 8 || key[0]|0x20 != 'p' {
		return 0, false
	}
	// Shifting the decimal point in the text keeps 0.999 the nearest float64.
	percent, err := strconv.ParseFloat(string(key[1:])+"e-2", 64)
	if err != nil || !(percent >= 0 && percent <= 1) {
		return 0, false
	}
	return percent, true
}
