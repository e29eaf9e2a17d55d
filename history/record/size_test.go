package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
)

// block is about how many bytes of neighbours the store compresses together.
const block = 32 << 10

// sizes are the mean bytes of a batch's record.
type sizes struct {
	batches, operators, words int
	alone, inBlocks           float64
}

// measured encodes the batches among updates as they lie on the disk, one after
// another, and compresses blocks of them.
func measured(t testing.TB, updates []*event.Update) sizes {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	var s sizes
	var buf []byte
	var alone, packed int
	d := NewDictionary(0)
	for _, u := range updates {
		if u.Event.Batch == nil {
			continue
		}
		from := len(buf)
		buf = Append(buf, u, d)
		alone += len(buf) - from
		s.batches++
		s.operators += len(u.Event.Batch.Operators)
		if len(buf) >= block {
			packed += len(z.EncodeAll(buf, nil))
			buf = buf[:0]
		}
	}
	packed += len(z.EncodeAll(buf, nil))
	s.words = d.Len()
	s.alone, s.inBlocks = float64(alone)/float64(s.batches), float64(packed)/float64(s.batches)
	return s
}

// Bytes are no matter of the machine, so they are checked and not only reported.
func TestABatchOfThreeOperatorsTakesFewBytes(t *testing.T) {
	if raced {
		t.Skip("nothing in it runs at once; make plays plays it without the race detector")
	}
	for name, c := range map[string]struct {
		updates         []*event.Update
		alone, inBlocks float64
	}{
		"simulated, 16 partitions":   {simulated(t, 80, 16), 330, 200},
		"simulated, 200 partitions":  {simulated(t, 80, 200), 330, 200},
		"made up, every figure wild": {benchUpdates(), 420, 330},
	} {
		s := measured(t, c.updates)
		t.Logf("%s: %d batches of %d operators, %.0f bytes each alone and %.0f in compressed blocks, %d words",
			name, s.batches, s.operators/s.batches, s.alone, s.inBlocks, s.words)
		if s.operators != 3*s.batches || s.alone > c.alone || s.inBlocks > c.inBlocks {
			t.Errorf("%s: %+v, want at most %.0f and %.0f bytes", name, s, c.alone, c.inBlocks)
		}
	}
}

// A heartbeat comes every half minute of every driver, so it may take a fraction of a
// batch.
func TestAHeartbeatTakesFewBytes(t *testing.T) {
	d := NewDictionary(0)
	_, updates := goldenHeartbeats()
	AppendStored(nil, Live, updates[0], d) // the words are known
	if n := len(AppendStored(nil, Live, updates[0], d)); n > 40 {
		t.Errorf("a heartbeat of one query takes %d bytes, want at most 40", n)
	}
}

// What running Spark said of one operator, of any version.
func TestACapturedBatchTakesFewBytes(t *testing.T) {
	for name, updates := range map[string][]*event.Update{
		"Spark 3, bare":      captured(t, "3.*", false),
		"Spark 4, bare":      captured(t, "4.*", false),
		"Spark 3, enveloped": captured(t, "3.*", true),
		"Spark 4, enveloped": captured(t, "4.*", true),
	} {
		s := measured(t, updates)
		t.Logf("%s: %d batches of %.1f operators, %.0f bytes each alone and %.0f in compressed blocks, %d words",
			name, s.batches, float64(s.operators)/float64(s.batches), s.alone, s.inBlocks, s.words)
		if s.alone > 260 || s.inBlocks > 130 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestCapturedAndSimulatedUpdatesComeBack(t *testing.T) {
	streams := map[string][]*event.Update{"bare": captured(t, "*", false), "enveloped": captured(t, "*", true), "made up": benchUpdates()}
	if !raced {
		streams["simulated"] = simulated(t, 40, 16)
	}
	for name, updates := range streams {
		d := NewDictionary(0)
		var x Decoder
		kinds := map[event.Outcome]int{}
		for i, u := range updates {
			kinds[u.Outcome]++
			back, err := x.Decode(Append(nil, u, d), d)
			if err != nil {
				t.Fatalf("%s, update %d: %v", name, i, err)
			}
			if diff := cmp.Diff(u, back, bitwise); diff != "" {
				t.Fatalf("%s, update %d (-in +out):\n%s", name, i, diff)
			}
		}
		t.Logf("%s: %v", name, kinds)
	}
}

func TestSteadyEncodingAndDecodingDoNotAllocate(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates")
	}
	updates, d := benchUpdates(), NewDictionary(0)
	_, golden := goldenUpdates()
	updates = append(updates, golden[4], madeOdd()) // a heartbeat, and a batch with everything
	records := encoded(updates, d)
	var x Decoder
	dst := make([]byte, 0, 4096)
	i := 0
	allocs := testing.AllocsPerRun(500, func() {
		i = (i + 1) % len(updates)
		dst = Append(dst[:0], updates[i], d)
	})
	if allocs != 0 {
		t.Errorf("encoding: %v allocations an event", allocs)
	}
	allocs = testing.AllocsPerRun(500, func() {
		i = (i + 1) % 64
		if _, err := x.Decode(records[i], d); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("decoding: %v allocations an event", allocs)
	}
}
