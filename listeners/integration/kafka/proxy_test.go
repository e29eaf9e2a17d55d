package kafka

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// proxy passes bytes between a client and the broker, and can hold them all back.
type proxy struct {
	listener net.Listener
	to       string
	gate     sync.RWMutex // held for writing while frozen
	wg       sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// freeze returns once nothing passes any more; thaw lets it pass again.
func (p *proxy) freeze() { p.gate.Lock() }
func (p *proxy) thaw()   { p.gate.Unlock() }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.wg.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.wg.Go(func() { p.pass(client, server) })
		p.wg.Go(func() { p.pass(server, client) })
	}
}

// pass hands on what it reads until one side is gone, then closes both.
func (p *proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.gate.RLock()
		_, writeErr := to.Write(buf[:n])
		p.gate.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

func TestAFrozenProxyPassesNothingUntilItThaws(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := newProxy(t, l.Addr().String())
	defer p.close()
	client, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p.freeze()
	if _, err := client.Write([]byte("late")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4)
	if err := server.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes (%v) while frozen", n, err)
	}
	p.thaw()
	if err := server.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(server, buf); err != nil || string(buf) != "late" {
		t.Errorf("got %q: %v", buf, err)
	}
}
