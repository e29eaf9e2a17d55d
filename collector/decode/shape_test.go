package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// run returns a run id of its own for each n.
func run(n int) string { return fmt.Sprintf("%08x-1111-4222-8333-444455556666", n) }

// small returns a writer of small events of one run.
func small(n int) *synth { return &synth{run: run(n), operators: 1, partitions: 2} }

// feed decodes the events of batches from, from+1, ... to-1.
func feed(pool *Pool, s *synth, from, to int) {
	for batch := from; batch < to; batch++ {
		decodeAll(pool, []byte(s.progress(batch)))
	}
}

func TestEveryByteOfAKnownShapeMayChange(t *testing.T) {
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	s := small(1)
	s.snapshots = true
	body := []byte(s.progress(7))
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range body {
		for _, ch := range []byte{'0', '"', ',', '.', 'e', '-', ' ', '\\', '\n', '}', byte(rng.Uint32())} {
			decodeAll(shaped, body) // so that a shape learnt from a mutant does not stay
			changed := bytes.Clone(body)
			changed[i] = ch
			requireSame(t, plain, shaped, changed)
		}
	}
}

func TestBytesPutInOrTakenOutOfAKnownShape(t *testing.T) {
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	s := small(1)
	s.text = true
	body := []byte(s.progress(7))
	for i := range body {
		decodeAll(shaped, body)
		requireSame(t, plain, shaped, append(bytes.Clone(body[:i]), body[i+1:]...))
		for _, put := range []string{"0", "7", " ", `"`, ".5", "e2", "null"} {
			requireSame(t, plain, shaped, append(append(bytes.Clone(body[:i]), put...), body[i:]...))
		}
	}
}

// TestOddValuesInAKnownShape puts values of other forms where plain ones stood.
func TestOddValuesInAKnownShape(t *testing.T) {
	const shape = `{"v":1,"seq":%s,"dropped":0,"at":"2027-05-06T07:08:09.123Z","app":{"id":"a"},"event":{"id":"q","runId":"00000000-0000-4000-8000-000000000001",` +
		`"timestamp":"2027-05-06T07:08:09.123Z","batchId":%[1]s,"numInputRows":%[1]s,"newThing":%[1]s,"durationMs":{"addBatch":%[1]s,"newPhase":%[1]s},` +
		`"stateOperators":[{"numRowsTotal":%[1]s,"customMetrics":{"rocksdbGetCount":%[1]s,"brandNew":%[1]s}}],` +
		`"sources":[{"description":"d","startOffset":%[1]s,"endOffset":{"t":{"0":%[1]s}},"latestOffset":{"t":{"0":%[1]s}},"numInputRows":%[1]s,"inputRowsPerSecond":%[1]s,"metrics":{"x":"%[1]s","maxOffsetsBehindLatest":"%[1]s"}}],` +
		`"observedMetrics":{"o":{"x":%[1]s}},"rtmMetrics":{"e2eLatencyMs":{"P50":%[1]s}},"trigger":{"type":"ProcessingTime","intervalMs":%[1]s}}}`
	values := []string{
		"1", "22", "12345678", "123456789", "123456789012345", "1234567890123456", "1234567890123456789", "12345678901234567890123",
		"0", "00", "-1", "-0", "1.5", "0.1", "1e3", "1E-2", "1.", "1e", "1e999", "-1e999", "9223372036854775807", "9223372036854775808", "4.0",
		"null", "true", `"5"`, `"NaN"`, "NaN", "Infinity", "[]", "{}", "[1]", "", "x",
	}
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	for _, teach := range values {
		for _, then := range values {
			for range 2 {
				requireSame(t, plain, shaped, fmt.Appendf(nil, shape, teach))
			}
			requireSame(t, plain, shaped, fmt.Appendf(nil, shape, then))
		}
	}
	if shaped.Stats().ShapeHits == 0 {
		t.Error("nothing ever hit")
	}
}

func TestTextThatChangesIsNoNewShape(t *testing.T) {
	const shape = `{"id":"q","runId":"00000000-0000-4000-8000-000000000001","batchId":%d,"sources":[{"description":"CloudFilesSource[x]",` +
		`"startOffset":"{\"seqNum\":%[1]d,\"path\":\"p%[1]d\"}","endOffset":"{\"seqNum\":%[1]d00,\"path\":\"p\"}","latestOffset":{"reservoirVersion":%[1]d,"id":"r%[1]d"},` +
		`"metrics":{"lastPath":"s3://x/%[1]d","numFilesOutstanding":"%[1]d"}}]}`
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	for i := 10; i < 40; i++ {
		requireSame(t, plain, shaped, fmt.Appendf(nil, shape, i))
	}
	if st := shaped.Stats(); st.ShapeHits != 29 {
		t.Errorf("every event after the first should hit: %+v", st)
	}
}

func TestAnEnvelopeKeepsItsShapeWhileItsNumbersRun(t *testing.T) {
	const shape = `{"v":1,"sender":"s","seq":%d,"dropped":%[1]d,"at":"2027-05-06T07:08:%02[1]d.000Z","app":{"id":"application_1","name":"etl"},"type":"progress",` +
		`"event":{"progress":{"id":"q","runId":"00000000-0000-4000-8000-000000000001","timestamp":"2027-05-06T07:07:%02[1]d.000Z","batchId":%[1]d}}}`
	pool := NewPool(Limits{})
	for i := 10; i < 20; i++ {
		r := decodeAll(pool, fmt.Appendf(nil, shape, i))
		env := r[0].Event.Envelope
		if env.Seq != int64(i) || env.Dropped != int64(i) || env.Sender != "s" || r[0].Event.Query.Application != "etl" || r[0].Event.AtMs != r[0].Event.Batch.StartMs {
			t.Fatalf("envelope %+v of %+v", env, r[0].Event)
		}
	}
	if st := pool.Stats(); st.ShapeHits != 9 {
		t.Errorf("every event after the first should hit: %+v", st)
	}
}

func TestRotatingSnapshotKeysAreNoNewShape(t *testing.T) {
	pool := NewPool(Limits{})
	s := small(1)
	s.snapshots = true
	for batch := range 20 {
		r := decodeAll(pool, []byte(s.progress(batch)))
		o := r[0].Event.Batch.Operators[0]
		if o.NumSnapshots != 5 || o.SnapshotMin > int64(batch) {
			t.Fatalf("batch %d: %d snapshots, lowest %d", batch, o.NumSnapshots, o.SnapshotMin)
		}
	}
	if st := pool.Stats(); st.ShapeHits != 19 {
		t.Errorf("every event after the first should hit: %+v", st)
	}
}

func TestFewerAndMoreSnapshotKeysAreNoNewShape(t *testing.T) {
	body := func(keys int) []byte {
		var w strings.Builder
		w.WriteString(`{"id":"q","runId":"00000000-0000-4000-8000-000000000001","batchId":1,"stateOperators":[{"customMetrics":{`)
		for i := range keys {
			fmt.Fprintf(&w, `"SnapshotLastUploaded.partition_%d_default":%d,`, i, 100+i)
		}
		w.WriteString(`"rocksdbGetCount":4}}]}`)
		return []byte(w.String())
	}
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	for _, keys := range []int{3, 5, 0, 1, 40, 3} {
		requireSame(t, plain, shaped, body(keys))
	}
	if st := shaped.Stats(); st.ShapeHits != 5 {
		t.Errorf("every event after the first should hit: %+v", st)
	}
}

func TestTwoShapesOfOneRunAreBothRemembered(t *testing.T) {
	pool := NewPool(Limits{})
	data := small(1)
	idle := func(batch int) []byte {
		return fmt.Appendf(nil, `{"id":"q","runId":"%s","batchId":%d,"durationMs":{"latestOffset":%[2]d,"triggerExecution":%[2]d}}`, run(1), batch+10)
	}
	for batch := range 20 {
		feed(pool, data, batch, batch+1)
		decodeAll(pool, idle(batch))
	}
	st := pool.Stats()
	if st.Templates != 2 || st.ShapeMisses != 1 || st.ShapeFallbacks > 2 || st.ShapeHits < 37 {
		t.Errorf("two shapes in turns: %+v", st)
	}
}

func TestShapesThatNeverComeAgainAreLearntEverMoreSeldom(t *testing.T) {
	pool := NewPool(Limits{})
	learnt := 0
	var last *template
	for i := range 2000 {
		decodeAll(pool, fmt.Appendf(nil, `{"id":"q","runId":"%s","batchId":1,"unknown%d":{"a":1}}`, run(1), i))
		key, _ := shapeKey(fmt.Appendf(nil, `"runId":"%s"`, run(1)))
		if s := pool.shapes.find(key); s != nil {
			if now := s.known[s.newest.Load()].Load(); now != last {
				learnt, last = learnt+1, now
			}
		}
	}
	if learnt < 5 || learnt > 24 {
		t.Errorf("learnt %d of 2000 shapes, want few", learnt)
	}
	// A shape that stays is learnt again once the wait is over.
	feed(pool, small(1), 0, 2*maxPenalty)
	hits := pool.Stats().ShapeHits
	feed(pool, small(1), 0, 10)
	if got := pool.Stats().ShapeHits - hits; got != 10 {
		t.Errorf("%d of 10 events hit", got)
	}
}

func TestTheShapeCacheStaysWithinItsMemory(t *testing.T) {
	const max = 200 << 10
	pool := NewPool(Limits{TemplateBytes: max})
	for round := range 3 {
		for n := range 400 {
			feed(pool, small(n), round, round+1)
			if st := pool.Stats(); st.TemplateBytes > max {
				t.Fatalf("%d bytes in %d templates", st.TemplateBytes, st.Templates)
			}
		}
	}
	st := pool.Stats()
	if st.Templates < 10 || st.ShapeHits == 0 {
		t.Errorf("a full cache must still be of use: %+v", st)
	}
	count, size := int64(0), int64(0)
	for i := range pool.shapes.shards {
		for _, s := range pool.shapes.shards[i].runs {
			for k := range s.known {
				if known := s.known[k].Load(); known != nil {
					count, size = count+1, size+int64(known.bytes)
				}
			}
		}
	}
	if count != int64(st.Templates) || size != int64(st.TemplateBytes) {
		t.Errorf("%d templates of %d bytes in the maps, %+v in the books", count, size, st)
	}
}

func TestTheShapeCacheCanBeSwitchedOff(t *testing.T) {
	pool := NewPool(Limits{TemplateBytes: -1})
	feed(pool, small(1), 0, 10)
	if st := pool.Stats(); st.ShapeHits+st.ShapeMisses+st.ShapeFallbacks != 0 || st.Templates != 0 {
		t.Errorf("%+v", st)
	}
}

func TestEventsThatAreNoProgressTeachNothing(t *testing.T) {
	pool := NewPool(Limits{})
	for _, body := range []string{
		`{"id":"q","runId":"` + run(1) + `","name":"n","timestamp":"2027-05-06T07:08:09.123Z"}`,
		`{"id":"q","runId":"` + run(1) + `","exception":null}`,
		`{"id":"q","runId":"` + run(1) + `","batchId":1,"batchId":2}`,
		`{"id":"q","runId":"` + run(1) + `","batchId":1,"numInputRows":3,"numInputRows":null}`,
		`{"progress":"{\"id\":\"q\",\"runId\":\"` + run(1) + `\",\"batchId\":1}"}`,
		`{"conf":{},"event":{"id":"q","runId":"` + run(1) + `","batchId":1}}`,
		`{"id":"q","runId":null,"batchId":1,"x":"` + strings.Repeat("y", 60) + `"}`,
		`{"id":"q","batchId":1}`,
		`{"id":"q","runId":"` + run(1) + `","batchId":1,`,
	} {
		decodeAll(pool, []byte(body))
		decodeAll(pool, []byte(body))
	}
	if st := pool.Stats(); st.Templates != 0 || st.ShapeHits != 0 {
		t.Errorf("%+v", st)
	}
}

func TestDecodersOfOnePoolShareWhatTheyLearn(t *testing.T) {
	pool, plain := NewPool(Limits{}), NewPool(Limits{TemplateBytes: -1})
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for batch := range 30 {
				for n := range 6 {
					s := small(n)
					s.snapshots = (batch+g)%5 == 0
					body := []byte(s.progress(batch))
					if !equal(decodeAll(pool, body), decodeAll(plain, body)) {
						t.Errorf("run %d, batch %d: not the parser's event", n, batch)
					}
				}
			}
		})
	}
	all.Wait()
	if st := pool.Stats(); st.ShapeHits < 1000 || st.Templates > 12 {
		t.Errorf("%+v", st)
	}
}

func TestShapeKeysComeFromTheRunAlone(t *testing.T) {
	key := func(s string) uint64 {
		k, ok := shapeKey([]byte(s))
		if !ok {
			t.Fatalf("no key in %s", s)
		}
		return k
	}
	a := key(`{"id":"x","runId":"` + run(1) + `","batchId":1}`)
	if b := key("{\n  \"batchId\" : 5,\n  \"runId\" : \"" + run(1) + "\" }"); a != b {
		t.Error("order and spacing must not matter")
	}
	if b := key(`{"id":"x","runId":"` + run(2) + `","batchId":1}`); a == b {
		t.Error("runs must differ")
	}
	for _, s := range []string{``, `{}`, `{"runId":null}`, `{"runId":"short"}`, `{"runId":      "` + run(1) + `"}`, strings.Repeat(" ", 2*runWindow) + `"runId":"` + run(1) + `"`} {
		if _, ok := shapeKey([]byte(s)); ok {
			t.Errorf("a key in %.60q", s)
		}
	}
}

func TestASteadyShapeAllocatesNothing(t *testing.T) {
	for name, l := range map[string]Limits{"parser": {TemplateBytes: -1}, "shape cache": {}} {
		for _, s := range []*synth{newSynth(), {run: run(1), operators: 2, partitions: 40, snapshots: true, text: true}} {
			pool := NewPool(l)
			var bodies [][]byte
			for batch := range 8 {
				bodies = append(bodies, []byte(s.progress(batch)))
			}
			d := pool.Get()
			take := func(_ int, ev *event.Event, _ *collector.Reject) bool {
				pool.Release(ev)
				return true
			}
			i := 0
			step := func() {
				d.Body(bodies[i%len(bodies)], take)
				i++
			}
			for range 2 * len(bodies) {
				step()
			}
			if n := testing.AllocsPerRun(200, step); n != 0 && !raceEnabled {
				t.Errorf("%s: %v allocations per event", name, n)
			}
		}
	}
}
