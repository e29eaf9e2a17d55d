package kafkasource

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// sink is a connection that keeps what is written.
type sink struct {
	net.Conn
	got bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) { return s.got.Write(p) }

// frame is a request as it goes over the wire.
func frame(key, version int16, body ...byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(4+len(body)))
	out = binary.BigEndian.AppendUint16(out, uint16(key))
	out = binary.BigEndian.AppendUint16(out, uint16(version))
	return append(out, body...)
}

// through writes p in pieces of the given size.
func through(t testing.TB, p []byte, size int) []byte {
	t.Helper()
	var s sink
	c := &noCreate{Conn: &s}
	before := bytes.Clone(p)
	for rest := p; len(rest) > 0; {
		piece := rest[:min(size, len(rest))]
		n, err := c.Write(piece)
		if err != nil || n != len(piece) {
			t.Fatalf("Write: %d, %v", n, err)
		}
		rest = rest[n:]
	}
	if !bytes.Equal(p, before) {
		t.Fatal("the caller's bytes were changed")
	}
	return s.got.Bytes()
}

func TestOnlyTheCreateFlagIsCleared(t *testing.T) {
	for _, c := range []struct {
		name     string
		in, want []byte
	}{
		{"metadata 6 ends with the flag", frame(3, 6, 9, 9, 1), frame(3, 6, 9, 9, 0)},
		{"metadata 4 has it too", frame(3, 4, 9, 1), frame(3, 4, 9, 0)},
		{"metadata 8 has two flags behind it", frame(3, 8, 9, 1, 1, 1), frame(3, 8, 9, 0, 1, 1)},
		{"metadata 1 has none", frame(3, 1, 9, 9, 1), frame(3, 1, 9, 9, 1)},
		{"other requests have none", frame(1, 6, 9, 9, 1), frame(1, 6, 9, 9, 1)},
		{"a cleared flag stays clear", frame(3, 6, 9, 0), frame(3, 6, 9, 0)},
		{"a request without a body", frame(18, 0), frame(18, 0)},
		{"a metadata request too short for its flag", frame(3, 8, 1), frame(3, 8, 1)},
		{"a nonsense size", []byte{0xff, 0xff, 0xff, 0xff, 0, 3, 0, 6}, []byte{0xff, 0xff, 0xff, 0xff, 0, 3, 0, 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Between two others, in pieces of every size.
			in := append(append(frame(10, 0, 1, 2, 3), c.in...), frame(3, 6, 7, 1)...)
			expected := append(append(frame(10, 0, 1, 2, 3), c.want...), frame(3, 6, 7, 0)...)
			for size := 1; size <= len(in); size++ {
				if got := through(t, in, size); !bytes.Equal(got, expected) {
					t.Fatalf("in pieces of %d: got %v, expected %v", size, got, expected)
				}
			}
		})
	}
}

func FuzzNoCreate(f *testing.F) {
	f.Add(frame(3, 6, 0, 0, 0, 1, 1), 3)
	f.Add(append(frame(3, 8, 1, 1, 1), frame(1, 10, 1)...), 1)
	f.Add([]byte{0, 0, 0, 0, 0, 3, 0, 6, 1}, 2)
	f.Fuzz(func(t *testing.T, p []byte, size int) {
		if size < 1 || size > 1<<16 {
			return
		}
		whole := through(t, p, max(len(p), 1))
		if pieces := through(t, p, size); !bytes.Equal(whole, pieces) {
			t.Fatalf("in pieces of %d: %v, in one: %v", size, pieces, whole)
		}
		if len(whole) != len(p) {
			t.Fatalf("%d bytes became %d", len(p), len(whole))
		}
	})
}

func TestGroupLeaderDoesNotCreateTopics(t *testing.T) {
	b := newBroker(t, withTopic(1), kfake.AllowAutoTopicCreation())
	cfg := quick(b.ListenAddrs()...)
	m, _ := instruments()
	c := newClient(&cfg, &limitedLog{log: slog.New(slog.DiscardHandler), now: time.Now, suppressed: m.LogSuppressed})
	defer c.cut()
	g, err := c.join([]string{"ghost", topicEvents}, func() claim { return claim{} })
	if err != nil {
		t.Fatal(err)
	}
	// The leader asks for every topic of every member, and asks to create them.
	if _, err := g.next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	if b.exists("ghost") {
		t.Error("the topic was created")
	}
}
