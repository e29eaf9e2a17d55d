package app

import (
	"testing"
)

// BenchmarkTick is what each look at the clock costs with a thousand queries of the
// built-in rules: time judged, alerts passed on, series brought in line. A daemon pays
// it four times a minute.
func BenchmarkTick(b *testing.B) {
	const queries = 1000
	a := start(b, testOptions(b))
	for i := range queries {
		s := newStream(i + 1)
		s.operators = 3
		post(b, a, s.ndjson(3))
	}
	a.judge.ask(func() {
		a.judge.drain()
		b.ResetTimer()
		for b.Loop() {
			a.judge.tick()
		}
		b.StopTimer()
	})
	b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/queries, "µs/query")
}
