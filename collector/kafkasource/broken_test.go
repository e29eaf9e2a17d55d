package kafkasource

import (
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// recordBatch is a batch as it lies in an answer, its fields not checked.
func recordBatch(count int32, attributes int16, magic byte, body []byte) []byte {
	out := make([]byte, 0, 61+len(body))
	out = binary.BigEndian.AppendUint64(out, 0)                    // base offset
	out = binary.BigEndian.AppendUint32(out, uint32(49+len(body))) // length
	out = binary.BigEndian.AppendUint32(out, 0)                    // leader epoch
	out = append(out, magic)
	out = binary.BigEndian.AppendUint32(out, 0) // checksum
	out = binary.BigEndian.AppendUint16(out, uint16(attributes))
	out = binary.BigEndian.AppendUint32(out, uint32(count-1)) // last offset delta
	out = append(out, make([]byte, 8+8+8+2+4)...)             // times, producer, sequence
	out = binary.BigEndian.AppendUint32(out, uint32(count))
	return append(out, body...)
}

// varint is a number as records hold them.
func varint(n int64) []byte { return binary.AppendVarint(nil, n) }

func record(valueLength int64, value string) []byte {
	body := []byte{0}                  // attributes
	body = append(body, 0, 0)          // time and offset deltas
	body = append(body, varint(-1)...) // no key
	body = append(body, varint(valueLength)...)
	body = append(body, value...)
	body = append(body, 0) // no headers
	return append(varint(int64(len(body))), body...)
}

// TestBrokenAnswersAreErrorsThatPass gives the client library answers that no
// broker should give, and then right ones.
func TestBrokenAnswersAreErrorsThatPass(t *testing.T) {
	for name, batches := range map[string][]byte{
		"fewer records than said":       recordBatch(1000, 0, 2, record(1, "x")),
		"a negative number of records":  recordBatch(-5, 0, 2, record(1, "x")),
		"a value longer than its batch": recordBatch(1, 0, 2, record(1<<40, "x")),
		"a negative value length":       recordBatch(1, 0, 2, record(-77, "x")),
		"an unknown magic":              recordBatch(1, 0, 9, record(1, "x")),
		"an unknown codec":              recordBatch(1, 7, 2, record(1, "x")),
		"garbage instead of gzip":       recordBatch(1, 1, 2, []byte("this is no gzip at all")),
		"garbage instead of zstd":       recordBatch(1, 4, 2, []byte("this is no zstd at all")),
		"garbage instead of lz4":        recordBatch(1, 3, 2, []byte("this is no lz4 at all")),
		"garbage instead of snappy":     recordBatch(1, 2, 2, []byte("this is no snappy at all")),
		"a batch cut short":             recordBatch(3, 0, 2, record(1, "x"))[:40],
		"a single byte":                 {1},
		"an old message of length -1":   {0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBroker(t, withTopic(1))
			b.progresses(0, 0, 5)
			left := answersWith(b, patience, batches)
			r := newRig(t, quick(b.ListenAddrs()...)).start().wait(5).ready()
			if left.Load() > 0 {
				t.Errorf("%d broken answers were not asked for", left.Load())
			}
			r.halt()
		})
	}
}

// TestEmptiedBatchesAreSteppedOver: compaction can leave the heads of batches that
// have no records any more.
func TestEmptiedBatchesAreSteppedOver(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 5)
	// In the place of the first three, once they were sent often enough.
	answersWith(b, patience+3, recordBatch(0, 0, 2, nil))
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(2).ready()
	for _, g := range r.in.all() {
		if g.offset < 3 {
			t.Errorf("offset %d was read", g.offset)
		}
	}
	if n := r.gaps(gapEmpty); n != 3 {
		t.Errorf("%v gaps, expected 3", n)
	}
	if valueOf(r.metrics.Restarts.WithLabelValues(topicEvents)) != 0 {
		t.Error("the reader was started again")
	}
}

// TestUnreadableBatchIsGivenUpAfterAWhile sends a batch of 40 MB of blanks, which
// zstd makes tiny, between good ones.
func TestUnreadableBatchIsGivenUpAfterAWhile(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "200000000"}))
	b.client(kgo.ProducerBatchCompression(kgo.ZstdCompression()), kgo.ProducerBatchMaxBytes(99<<20))
	b.progresses(0, 0, 5)
	b.send(0, strings.Repeat(" ", maxUnpacked+8<<20))
	b.progresses(0, 5, 10)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(10).ready()
	if n := r.gaps(gapUnreadable); n != 1 {
		t.Errorf("%v gaps, expected 1", n)
	}
	if lost := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)); lost != 1 {
		t.Errorf("%v offsets lost, expected 1", lost)
	}
	eventually(t, "everything is committed", want("committed", func() int64 { return b.committed(0) }, 11))
}

func TestUnpackingStopsAtItsLimit(t *testing.T) {
	for _, c := range []struct {
		size int
		ok   bool
	}{{0, true}, {1000, true}, {maxUnpacked, true}, {maxUnpacked + 1, false}, {2 * maxUnpacked, false}} {
		n, err := io.Copy(io.Discard, onlyReader{&boundedReader{
			ReadCloser: io.NopCloser(io.LimitReader(zeros{}, int64(c.size))), left: maxUnpacked,
		}})
		if (err == nil) != c.ok || n > maxUnpacked+1 {
			t.Errorf("%d bytes: read %d, error %v", c.size, n, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

type onlyReader struct{ io.Reader }

// answersWith makes the next n fetches get an answer that holds the given bytes.
func answersWith(b *broker, n int32, batches []byte) *atomic.Int32 {
	left := &atomic.Int32{}
	left.Store(n)
	b.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		if left.Load() <= 0 {
			b.DropControl()
			return nil, nil, false
		}
		left.Add(-1)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic, part := kmsg.NewFetchResponseTopic(), kmsg.NewFetchResponseTopicPartition()
		topic.Topic = topicEvents
		part.HighWatermark, part.LastStableOffset, part.RecordBatches = 5, 5, batches
		topic.Partitions = append(topic.Partitions, part)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	return left
}

// stepRig is a source that does not run; only its steps are used.
func stepRig(t testing.TB) (*rig, *worker) {
	r := newRig(t, quick("127.0.0.1:1"))
	w := newWorker(r.src, collector.Assignment{Topic: topicEvents, Committed: event.Absent}, anywhere)
	w.commits = newCommitter(nil, r.metrics, 0)
	return r, w
}

func FuzzMessageValue(f *testing.F) {
	f.Add([]byte(progress(1)))
	f.Add([]byte("[" + progress(1) + "," + progress(2) + "]"))
	f.Add([]byte(progress(1) + "\n{\n" + progress(2)))
	f.Add([]byte("{"))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Add([]byte("[[[["))
	f.Add([]byte(`{"Event":"SparkListenerApplicationStart"}`))
	f.Add([]byte("\x00\xff"))
	f.Add([]byte(" \r\n\t"))
	r, w := stepRig(f)
	offset := int64(0)
	f.Fuzz(func(t *testing.T, value []byte) {
		before := len(r.in.all())
		msgs := []message{{offset: offset, value: value}, {offset: offset + 1, value: []byte(progress(7))}}
		offset += 2
		if !w.step.handle(t.Context(), t.Context(), msgs, offset) {
			t.Fatal("the step was not handled")
		}
		if w.reached.Load() != offset || len(w.step.items) != 0 {
			t.Fatalf("reached %d of %d, %d items left", w.reached.Load(), offset, len(w.step.items))
		}
		got := r.in.all()
		if len(got) == before || got[len(got)-1].batch != 7 {
			t.Fatalf("the good message behind %q was lost", value)
		}
		r.in.got = r.in.got[:0]
		r.in.steps, r.in.sizes = nil, nil
	})
}

func TestTransactionMarkersAreNoEvents(t *testing.T) {
	r, w := stepRig(t)
	msgs := []message{{offset: 0, value: []byte(progress(1))}, {offset: 1, value: []byte{0, 0, 0, 0, 0, 1}, control: true}}
	if !w.step.handle(t.Context(), t.Context(), msgs, 2) {
		t.Fatal("the step was not handled")
	}
	if n := len(r.in.all()); n != 1 || w.reached.Load() != 2 {
		t.Errorf("%d events, reached %d", n, w.reached.Load())
	}
	for _, reason := range collector.Reasons() {
		if r.rejected(reason) != 0 {
			t.Errorf("a marker was rejected as %s", reason)
		}
	}
}
