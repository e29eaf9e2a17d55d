package notify

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// maxAddresses bounds the Alertmanagers behind one name.
const maxAddresses = 32

// group is the set of senders behind one name.
type group struct {
	n       *Notifier
	target  Target
	members map[string]*sender // by address
	all     sync.WaitGroup
	failing string // the last look-up error
}

func newGroup(n *Notifier, t Target) *group {
	return &group{n: n, target: t, members: map[string]*sender{}}
}

// follow keeps one sender for every address of the target's name until ctx ends or
// over is closed. A look-up that fails changes nothing.
func (g *group) follow(ctx, hard context.Context, over <-chan struct{}) {
	defer g.all.Wait() // each drains for itself
	ticker := time.NewTicker(g.n.o.Refresh)
	defer ticker.Stop()
	for {
		g.refresh(ctx, hard)
		select {
		case <-ctx.Done():
			return
		case <-over:
			g.keep(nil)
			return
		case <-ticker.C:
		}
	}
}

// refresh looks the name up and brings the senders in line.
func (g *group) refresh(ctx, hard context.Context) {
	found, err := g.lookup(ctx)
	if err != nil {
		g.complain(err)
		return
	}
	g.failing = ""
	g.keep(found)
	for _, address := range found {
		if _, ok := g.members[address]; !ok {
			g.add(ctx, hard, address)
		}
	}
}

// keep dismisses the senders of all other addresses.
func (g *group) keep(found []string) {
	g.n.mu.Lock()
	defer g.n.mu.Unlock()
	for address, s := range g.members {
		if !slices.Contains(found, address) {
			delete(g.members, address)
			g.n.dismiss(s)
		}
	}
}

// lookup returns the addresses of the name with the port of the URL.
func (g *group) lookup(ctx context.Context) ([]string, error) {
	u, err := url.Parse(g.target.URL)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", redacted(g.target.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, g.n.o.Timeout)
	defer cancel()
	hosts, err := g.n.o.Lookup(ctx, u.Hostname())
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", u.Hostname(), err)
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("looking up %s: no address", u.Hostname())
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	out := make([]string, 0, len(hosts))
	for _, h := range hosts[:min(len(hosts), maxAddresses)] {
		out = append(out, net.JoinHostPort(h, portOf(u)))
	}
	return out, nil
}

// portOf returns the port that a client would use.
func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// add starts the sender of one more address.
func (g *group) add(ctx, hard context.Context, address string) {
	s, err := g.n.newSender(g.target, address)
	if err != nil {
		g.complain(err)
		return
	}
	g.members[address] = s
	g.n.mu.Lock()
	g.n.admit(s)
	g.n.mu.Unlock()
	g.all.Go(func() { s.run(ctx, hard) })
}

// complain counts a failure and logs it if it is news.
func (g *group) complain(err error) {
	g.n.metrics.lookups.WithLabelValues(redacted(g.target.URL)).Inc()
	if text := err.Error(); text != g.failing {
		g.failing = text
		g.n.log.Warn("following the Alertmanagers behind a name failed", "alertmanager", redacted(g.target.URL), "err", err)
	}
}
