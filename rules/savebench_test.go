package rules

import "testing"

// savedQueryBytes is what a query of three operators whose windows are full may take
// where it is kept.
const savedQueryBytes = 60_000

// saturated is an engine that has judged one query of three operators by the whole pack
// until its windows were full.
func saturated(tb testing.TB) *Engine {
	tb.Helper()
	s := newFullStream(New(wholePack(tb), Options{}), 0)
	s.play(1000)
	return s.e
}

func TestASavedQueryIsSmall(t *testing.T) {
	e := saturated(t)
	id := e.Queries(nil)[0]
	data := e.SaveQuery(id, nil)
	if len(data) > savedQueryBytes {
		t.Errorf("a query of three operators takes %d bytes, more than %d", len(data), savedQueryBytes)
	}
	t.Logf("a query of three operators takes %d bytes", len(data))
}

// BenchmarkSaveQuery is one query of three operators, windows full, into a buffer that
// is there.
func BenchmarkSaveQuery(b *testing.B) {
	e := saturated(b)
	id := e.Queries(nil)[0]
	data := e.SaveQuery(id, nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		data = e.SaveQuery(id, data[:0])
	}
	b.ReportMetric(float64(len(data)), "saved_bytes")
}

// BenchmarkLoadQuery is the way back, into an engine that does not know the query.
func BenchmarkLoadQuery(b *testing.B) {
	e := saturated(b)
	id := e.Queries(nil)[0]
	data := e.SaveQuery(id, nil)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		e.Forget(id, e.nowMs, nil)
		if _, err := e.LoadQuery(data); err != nil {
			b.Fatal(err)
		}
	}
}
