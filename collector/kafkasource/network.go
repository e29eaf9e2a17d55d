package kafkasource

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	// dialTimeout bounds one connection attempt, TLS included.
	dialTimeout = 5 * time.Second
	// requestTimeout bounds one request to a broker that should answer at once.
	requestTimeout = 5 * time.Second
)

// errCut is what a connection attempt gets once the network is cut.
var errCut = errors.New("source is stopping")

// network makes every connection of a source and can cut them all. kafka-go takes
// no context in half of its calls; cutting is how they are bounded.
type network struct {
	tls *tls.Config
	ctx context.Context // ends with cut
	end context.CancelFunc

	mu    sync.Mutex
	conns map[*trackedConn]struct{}
}

func newNetwork(config *tls.Config) *network {
	n := &network{tls: config, conns: map[*trackedConn]struct{}{}}
	n.ctx, n.end = context.WithCancel(context.Background())
	return n
}

// dial connects to addr, with TLS where it is configured.
func (n *network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	raw, err := (&net.Dialer{}).DialContext(ctx, kind, addr)
	if err != nil {
		return nil, err
	}
	conn, err := n.secure(ctx, raw, addr)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return n.track(&noCreate{Conn: conn})
}

func (n *network) secure(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	if n.tls == nil {
		return raw, nil
	}
	config := n.tls
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("broker address %q: %w", addr, err)
		}
		config = config.Clone()
		config.ServerName = host
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("tls with %s: %w", addr, err)
	}
	return conn, nil
}

func (n *network) track(conn net.Conn) (net.Conn, error) {
	c := &trackedConn{Conn: conn, owner: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		_ = conn.Close()
		return nil, errCut
	}
	n.conns[c] = struct{}{}
	return c, nil
}

// cut closes every connection and makes every attempt fail from now on.
func (n *network) cut() {
	n.mu.Lock()
	n.end()
	conns := n.conns
	n.conns = map[*trackedConn]struct{}{}
	n.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
	}
}

// trackedConn is a connection that the network can close.
type trackedConn struct {
	net.Conn
	owner *network
}

// Close closes the connection and forgets it.
func (c *trackedConn) Close() error {
	c.owner.mu.Lock()
	delete(c.owner.conns, c)
	c.owner.mu.Unlock()
	return c.Conn.Close()
}
