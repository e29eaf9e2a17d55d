package notify

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/rules"
)

// Notifier files alerts and delivers them. Make one with New, start it with Run.
type Notifier struct {
	o        Options
	external map[string]string
	metrics  *metrics
	log      *slog.Logger

	mu      sync.Mutex
	book    *queue // newest state of every alert, for Alertmanagers that join later
	senders map[*sender]struct{}
	fixed   []*sender
}

// New returns a notifier that has registered its metrics with reg. It returns an
// error that holds all faults of the options, or that of a client which cannot be
// built. It starts nothing.
func New(o Options, reg prometheus.Registerer, log *slog.Logger) (*Notifier, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("notifier options: %w", err)
	}
	o = o.withDefaults()
	n := &Notifier{
		o: o, external: texts(o.ExternalLabels, maxLabelBytes), metrics: newMetrics(reg), log: log,
		book: newQueue(o.QueueAlerts), senders: map[*sender]struct{}{},
	}
	for _, t := range o.Targets {
		if t.ResolveAll {
			n.metrics.lookups.WithLabelValues(redacted(t.URL))
			continue
		}
		s, err := n.newSender(t, "")
		if err != nil {
			return nil, err
		}
		n.fixed = append(n.fixed, s)
		n.join(s)
	}
	return n, nil
}

// Notify files the alerts' states for every Alertmanager. It never waits for one.
//
// Hand in an alert when it begins to fire, when it resolves (once), and as often as
// its annotations change. The caller keeps the alerts; pending ones are left out.
// Between calls the notifier itself sends a firing alert again, until it resolves.
func (n *Notifier) Notify(_ context.Context, alerts []rules.Alert) {
	now := n.o.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.book.expire(now.Add(-n.o.ResolvedRetention))
	var records []*record
	for i := range alerts {
		if a := &alerts[i]; deliverable(a) {
			records = append(records, n.file(a, now))
		}
	}
	for s := range n.senders {
		s.put(records, now)
		s.nudge()
	}
}

// file notes one alert in the book.
func (n *Notifier) file(a *rules.Alert, now time.Time) *record {
	labels, key := n.labelsOf(a)
	r := n.newRecord(a, labels, key, n.book.get(key), now)
	n.book.put(r, now)
	return r
}

// Run delivers until ctx ends, then sends what is due once more for at most Drain,
// and returns nil when every goroutine of the notifier has ended. It must be called
// once only.
func (n *Notifier) Run(ctx context.Context) error {
	// Requests outlive ctx by Drain, so that a stop does not cut off the last resolve.
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	release := context.AfterFunc(ctx, func() { time.AfterFunc(n.o.Drain, cancel) })
	defer release()
	var all sync.WaitGroup
	for _, s := range n.fixed {
		all.Go(func() { s.run(ctx, hard) })
	}
	for _, t := range n.o.Targets {
		if t.ResolveAll {
			all.Go(func() { n.follow(ctx, hard, t) })
		}
	}
	all.Wait()
	return nil
}

// join lets a sender take part, with all that is known so far.
func (n *Notifier) join(s *sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	n.book.expire(now.Add(-n.o.ResolvedRetention))
	s.put(n.book.records(), now)
	n.senders[s] = struct{}{}
	s.nudge()
}

func (n *Notifier) leave(s *sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.senders, s)
}

// newSender returns the sender for a target, or for one address of it.
func (n *Notifier) newSender(t Target, address string) (*sender, error) {
	client, err := t.NewClient(address)
	if err != nil {
		return nil, fmt.Errorf("alertmanager %s: %w", redacted(t.URL), err)
	}
	name := redacted(t.URL)
	if address != "" {
		name += " at " + address
	}
	n.metrics.start(name)
	return &sender{
		o: &n.o, name: name, url: strings.TrimRight(t.URL, "/") + "/api/v2/alerts", client: client,
		metrics: n.metrics, log: n.log.With("alertmanager", name),
		queue: newQueue(n.o.QueueAlerts), work: make(chan struct{}, 1),
	}, nil
}

// redacted returns a URL without its password.
func redacted(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "unreadable URL"
	}
	return u.Redacted()
}
