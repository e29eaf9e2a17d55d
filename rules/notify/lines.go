package notify

import (
	"context"
	"fmt"
)

// line is what one target needs: a sender, or the group behind a name.
type line struct {
	sender *sender // nil for a group
	group  *group
	over   chan struct{} // closed when a reload has replaced the line
}

// Reload replaces the Alertmanagers. New ones begin with all that fires and with
// what resolved lately; those that stay get it once more, since their credentials
// may have changed. On an error nothing changes. It may be called at any time.
func (n *Notifier) Reload(targets []Target) error {
	o := Options{Targets: targets}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("notifier targets: %w", err)
	}
	fresh := make([]*line, 0, len(targets))
	for _, t := range o.withDefaults().Targets {
		l, err := n.newLine(t)
		if err != nil {
			return err
		}
		fresh = append(fresh, l)
	}
	n.replace(fresh)
	return nil
}

// newLine builds what a target needs and starts nothing.
func (n *Notifier) newLine(t Target) (*line, error) {
	// Built for a group as well: settings that cannot work must show at once.
	s, err := n.newSender(t, "")
	if err != nil {
		return nil, err
	}
	l := &line{sender: s}
	if t.ResolveAll {
		l = &line{group: newGroup(n, t)}
	}
	l.over = make(chan struct{})
	return l, nil
}

// replace swaps the lines and ends the old ones.
func (n *Notifier) replace(fresh []*line) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, old := range n.lines {
		if old.sender != nil {
			n.dismiss(old.sender)
		}
		close(old.over)
	}
	n.lines = fresh
	for _, l := range fresh {
		l.announce(n)
		if n.launch != nil {
			n.launch(l)
		}
	}
}

// announce makes the line known to Notify and to the metrics.
func (l *line) announce(n *Notifier) {
	if l.sender != nil {
		n.admit(l.sender)
		return
	}
	n.metrics.lookups.WithLabelValues(redacted(l.group.target.URL))
}

// setLaunch starts the lines there are, or, with nil, lets none start any more.
func (n *Notifier) setLaunch(launch func(*line)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.launch = launch
	if launch == nil {
		return
	}
	for _, l := range n.lines {
		launch(l)
	}
}

// run works until ctx ends or the line is replaced.
func (l *line) run(ctx, hard context.Context) {
	if l.group != nil {
		l.group.follow(ctx, hard, l.over)
		return
	}
	l.sender.run(ctx, hard)
}
