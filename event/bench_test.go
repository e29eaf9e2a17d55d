package event

import (
	"testing"
	"time"
)

// BenchmarkCopyFromVersusFreshCopy measures handing a batch of three operators on
// to the rules' queue: a copy into used memory against a copy into new memory.
func BenchmarkCopyFromVersusFreshCopy(b *testing.B) {
	src, dst := fullBatch(), newBatch()
	var ours, peer time.Duration
	for b.Loop() {
		began := time.Now()
		dst.CopyFrom(src)
		between := time.Now()
		fresh(src)
		ours, peer = ours+between.Sub(began), peer+time.Since(between)
	}
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/copy")
}

var sink *Batch

func fresh(src *Batch) {
	b := *src
	b.Operators = append([]Operator(nil), src.Operators...)
	for i := range b.Operators {
		b.Operators[i].Unknown = append([]KV(nil), src.Operators[i].Unknown...)
	}
	b.Sources = append([]Source(nil), src.Sources...)
	b.UnknownPhases = append([]KV(nil), src.UnknownPhases...)
	b.Observed = append([]Observed(nil), src.Observed...)
	b.Percentiles = append([]Percentile(nil), src.Percentiles...)
	sink = &b
}
