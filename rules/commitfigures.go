package rules

import "github.com/stategauge/stategauge/event"

// commitLeaves are the parts of a commit for a query: milliseconds, mean per store
// that reports, operators added up.
func commitLeaves() map[string]leaf {
	out := map[string]leaf{}
	for name, id := range map[string]event.MetricID{
		"state_flush_ms":      event.RocksDBCommitFlushLatency,
		"state_compact_ms":    event.RocksDBCommitCompactLatency,
		"state_checkpoint_ms": event.RocksDBCommitCheckpointLatency,
	} {
		f := perStore(id)
		out[name] = leaf{metric: noMetric, of: OfQuery, eval: func(_ *event.Vector, b *event.Batch, _ *event.Operator, _ *Facts) float64 { return f(b) }}
	}
	return out
}
