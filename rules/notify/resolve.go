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
	members map[string]member
	all     sync.WaitGroup
	failing string // the last look-up error
}

type member struct {
	sender *sender
	stop   context.CancelFunc
}

// follow keeps one sender for every address of the target's name until ctx ends. A
// look-up that fails changes nothing.
func (n *Notifier) follow(ctx, hard context.Context, t Target) {
	g := &group{n: n, target: t, members: map[string]member{}}
	ticker := time.NewTicker(n.o.Refresh)
	defer ticker.Stop()
	for {
		g.refresh(ctx, hard)
		select {
		case <-ctx.Done():
			g.all.Wait() // each drains for itself
			return
		case <-ticker.C:
		}
	}
}

func (g *group) refresh(ctx, hard context.Context) {
	found, err := g.lookup(ctx)
	if err != nil {
		g.complain(err)
		return
	}
	g.failing = ""
	for address, m := range g.members {
		if !slices.Contains(found, address) {
			g.remove(address, m)
		}
	}
	for _, address := range found {
		if _, ok := g.members[address]; !ok {
			g.add(ctx, hard, address)
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

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func (g *group) add(ctx, hard context.Context, address string) {
	s, err := g.n.newSender(g.target, address)
	if err != nil {
		g.complain(err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	g.members[address] = member{s, stop}
	g.n.join(s)
	g.all.Go(func() {
		s.run(ctx, hard)
		if s.abandoned.Load() {
			g.n.metrics.stop(s.name)
		}
	})
}

// remove stops the sender of an address that is gone.
func (g *group) remove(address string, m member) {
	delete(g.members, address)
	g.n.leave(m.sender)
	m.sender.abandoned.Store(true)
	m.stop()
}

// complain counts a failure and logs it if it is news.
func (g *group) complain(err error) {
	g.n.metrics.lookups.WithLabelValues(redacted(g.target.URL)).Inc()
	if text := err.Error(); text != g.failing {
		g.failing = text
		g.n.log.Warn("following the Alertmanagers behind a name failed", "alertmanager", redacted(g.target.URL), "err", err)
	}
}
