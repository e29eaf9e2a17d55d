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
	lines   []*line
	launch  func(*line) // starts a line; nil unless Run is at work
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
	if err := n.Reload(o.Targets); err != nil {
		return nil, err
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
	n.pass(records, now)
}

// pass hands records to every sender. The caller holds mu.
func (n *Notifier) pass(records []*record, now time.Time) {
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
	var all sync.WaitGroup
	n.setLaunch(func(l *line) { all.Go(func() { l.run(ctx, hard) }) })
	<-ctx.Done()
	n.setLaunch(nil)
	// The drain is counted from here, whatever the sends before it took.
	deadline := time.AfterFunc(n.o.Drain, cancel)
	defer deadline.Stop()
	all.Wait()
	return nil
}

// admit lets a sender take part, with all that is known so far. The caller holds mu.
func (n *Notifier) admit(s *sender) {
	now := n.o.Now()
	n.book.expire(now.Add(-n.o.ResolvedRetention))
	n.metrics.start(s.name)
	s.put(n.book.records(), now)
	n.senders[s] = struct{}{}
	s.nudge()
}

// dismiss ends a sender without a last send. The caller holds mu.
func (n *Notifier) dismiss(s *sender) {
	delete(n.senders, s)
	close(s.gone)
}

// retire ends the series of a dismissed sender, unless another has its name.
func (n *Notifier) retire(s *sender) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other := range n.senders {
		if other.name == s.name {
			return
		}
	}
	n.metrics.stop(s.name)
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
	return &sender{
		n: n, o: &n.o, name: name, url: strings.TrimRight(t.URL, "/") + "/api/v2/alerts", client: client,
		metrics: n.metrics, log: n.log.With("alertmanager", name),
		queue: newQueue(n.o.QueueAlerts), work: make(chan struct{}, 1), gone: make(chan struct{}),
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
