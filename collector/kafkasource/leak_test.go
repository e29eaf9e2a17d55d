package kafkasource

import (
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// ours returns the stacks of goroutines that belong to the source or its client
// library. The test functions themselves are not among them.
func ours() []string {
	buf := make([]byte, 4<<20)
	var out []string
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		source := strings.Contains(stack, "kafkasource.(*") || strings.Contains(stack, "segmentio/kafka-go")
		if source && !strings.Contains(stack, "testing.tRunner") {
			out = append(out, stack)
		}
	}
	return out
}

func noGoroutines() error {
	if left := ours(); len(left) > 0 {
		return fmt.Errorf("%d are left, the first:\n%s", len(left), left[0])
	}
	return nil
}

// The tests of this file do not run in parallel: they look at all goroutines.

func TestEveryGoroutineEndsWithTheSource(t *testing.T) {
	b := newBroker(t, withTopic(3), kfake.NumBrokers(2))
	b.progresses(0, 0, 100)
	for range 3 {
		newRig(t, quick(b.ListenAddrs()...)).start().ready().halt()
	}
	eventually(t, "every goroutine has ended", noGoroutines)
}

func TestEveryGoroutineEndsWithoutBrokers(t *testing.T) {
	// A port that nobody listens on, and one whose listener says nothing.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	for _, addr := range []string{closed, mute.Addr().String()} {
		r := newRig(t, quick(addr)).start()
		eventually(t, "the outage is reported", r.reports("brokers cannot be asked"))
		r.halt()
		eventually(t, "every goroutine has ended", noGoroutines)
	}
}

func TestNoConnectionOutlivesTheSource(t *testing.T) {
	b := newBroker(t, withTopic(3))
	r := newRig(t, quick(b.ListenAddrs()...)).start().ready()
	n := r.src.cluster.(*client).net
	n.mu.Lock()
	open := len(n.conns)
	n.mu.Unlock()
	if open < 4 {
		t.Errorf("%d connections, expected the coordinator's and one for each partition", open)
	}
	r.halt()
	n.mu.Lock()
	open = len(n.conns)
	n.mu.Unlock()
	if open != 0 {
		t.Errorf("%d connections are open after the stop", open)
	}
	if _, err := n.dial(t.Context(), "tcp", b.ListenAddrs()[0]); err == nil {
		t.Error("a connection can still be made")
	}
}
