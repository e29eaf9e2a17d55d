package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// Probed is what came of a test alert at one Alertmanager.
type Probed struct {
	Name string // as metrics and log call it
	// Fired and Resolved say why the alert, and its end, was not taken; nil where it was.
	Fired, Resolved error
	Took            time.Duration // for the answer to the alert
	Skew            time.Duration // how far the Alertmanager's clock is ahead
	// Listed says that the Alertmanager lists the alert: one that it took for ended
	// already, since its clock is ahead, is taken and forgotten. Receivers are who it
	// would tell; Silenced says that it tells nobody.
	Listed    bool
	Receivers []string
	Silenced  bool
	Unlisted  error // why that cannot be said
}

// OK reports whether a page would get through.
func (p *Probed) OK() bool {
	return p.Fired == nil && p.Resolved == nil && (p.Listed || p.Unlisted != nil)
}

// Probe sends an alert with the labels through every target and resolves it after
// hold, or when ctx ends. It reports once for each Alertmanager, for each address
// where a name stands for several.
func (n *Notifier) Probe(ctx context.Context, labels, annotations rules.Labels, hold time.Duration) []Probed {
	var out []Probed
	var firing []*sender
	for _, t := range n.o.Targets {
		senders, err := n.sendersOf(ctx, t)
		if err != nil {
			out = append(out, Probed{Name: redacted(t.URL), Fired: err})
			firing = append(firing, nil)
		}
		for _, s := range senders {
			out = append(out, s.probe(ctx, n.probeRecord(labels, annotations, rules.Firing)))
			firing = append(firing, s)
		}
	}
	wait(ctx, hold)
	for i, s := range firing {
		if s == nil || out[i].Fired != nil {
			continue
		}
		// It is resolved whatever ends the waiting; one request is bounded by Timeout.
		end := n.probeRecord(labels, annotations, rules.Resolved)
		out[i].Resolved = s.exchange(context.WithoutCancel(ctx), []*record{end})
	}
	return out
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// sendersOf returns a sender for each Alertmanager of a target.
func (n *Notifier) sendersOf(ctx context.Context, t Target) ([]*sender, error) {
	addresses := []string{""}
	if t.ResolveAll {
		found, err := newGroup(n, t).lookup(ctx)
		if err != nil {
			return nil, err
		}
		addresses = found
	}
	var out []*sender
	for _, a := range addresses {
		s, err := n.newSender(t, a)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (n *Notifier) probeRecord(labels, annotations rules.Labels, state rules.AlertState) *record {
	now := n.o.Now()
	al := rules.Alert{Labels: labels, Annotations: annotations, State: state, FiringAtMs: now.UnixMilli(), ResolvedAtMs: event.Absent}
	l, key := n.labelsOf(&al)
	return n.newRecord(&al, l, key, nil, now)
}

// probe sends the alert and looks whether it is there.
func (s *sender) probe(ctx context.Context, r *record) Probed {
	out := Probed{Name: s.name}
	start := s.o.Now()
	out.Fired = s.exchange(ctx, []*record{r})
	out.Took, out.Skew = s.o.Now().Sub(start), s.skew
	if out.Fired == nil {
		out.Unlisted = s.list(ctx, r, &out)
	}
	return out
}

// list asks the Alertmanager what it holds of an alert.
func (s *sender) list(ctx context.Context, r *record, out *Probed) error {
	q := url.Values{}
	for _, name := range sortedNames(r.labels) {
		q.Add("filter", fmt.Sprintf("%s=%q", name, r.labels[name]))
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return fmt.Errorf("building the request: %w", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("listing alerts: %w", err)
	}
	defer resp.Body.Close()
	var held []struct {
		Receivers []struct{ Name string }
		Status    struct{ State string }
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("listing alerts: alertmanager answers %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&held); err != nil {
		return fmt.Errorf("listing alerts: %w", err)
	}
	for i := range held {
		out.Listed = true
		out.Silenced = held[i].Status.State == "suppressed"
		for _, receiver := range held[i].Receivers {
			out.Receivers = append(out.Receivers, receiver.Name)
		}
	}
	return nil
}
