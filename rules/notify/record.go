package notify

import (
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// What is longer is cut: a stack trace in an annotation must not make a request
// that the Alertmanager or a proxy before it refuses.
const (
	maxLabelBytes      = 1024
	maxAnnotationBytes = 8 << 10
)

// record is one state of one alert, ready to be sent. It is never changed, so all
// queues share it.
type record struct {
	key string
	// epoch counts the alert's changes between firing and resolved: queues send a
	// new epoch at once, and new annotations with the next resend.
	epoch        uint64
	labels       map[string]string
	annotations  map[string]string
	generatorURL string
	startsAt     time.Time
	resolvedAt   time.Time // zero while it fires
	until        time.Time // zero, or when it lapses
	restored     bool      // nobody has handed it in since a restart
}

// firing reports whether the alert still fires.
func (r *record) firing() bool { return r.resolvedAt.IsZero() }

// deliverable reports whether Alertmanager should hear of the alert. One that never
// fired has nothing to resolve.
func deliverable(a *rules.Alert) bool {
	return a.State == rules.Firing || a.State == rules.Resolved && a.FiringAtMs != event.Absent
}

// newRecord returns the state that follows prev, which is nil for a new alert.
func (n *Notifier) newRecord(a *rules.Alert, labels map[string]string, key string, prev *record, now time.Time) *record {
	r := &record{key: key, labels: labels, annotations: texts(a.Annotations, maxAnnotationBytes)}
	if n.o.GeneratorURL != nil {
		r.generatorURL = strings.ToValidUTF8(n.o.GeneratorURL(a), "\uFFFD")
	}
	if n.o.Until != nil {
		r.until = n.o.Until(a)
	}
	if prev != nil {
		r.epoch, r.startsAt, r.resolvedAt = prev.epoch, prev.startsAt, prev.resolvedAt
	}
	firing := a.State == rules.Firing
	if prev != nil && prev.firing() == firing {
		return r
	}
	r.epoch++
	if firing {
		r.startsAt, r.resolvedAt = n.startOf(a, now), time.Time{}
		return r
	}
	if prev == nil {
		// Fired before this process knew it. A difference of event times is free of
		// the sender's clock error.
		lasted := time.Duration(max(a.ResolvedAtMs-a.FiringAtMs, 0)) * time.Millisecond
		r.startsAt = now.Add(-lasted)
	}
	r.end(now)
	return r
}

// end resolves the alert. An Alertmanager refuses one that ends before it starts, or
// as it starts: our own clock was set back, or it was over at once.
func (r *record) end(now time.Time) {
	r.resolvedAt = now
	if latest := now.Add(-time.Millisecond); r.startsAt.After(latest) {
		r.startsAt = latest
	}
}

// startOf returns when an alert began to fire, in this process' time.
func (n *Notifier) startOf(a *rules.Alert, now time.Time) time.Time {
	if n.o.StartedAt == nil {
		return now
	}
	if t := n.o.StartedAt(a); !t.IsZero() && t.Before(now) {
		return t
	}
	return now
}

// labelsOf returns the alert's labels with the external ones, and their identity.
func (n *Notifier) labelsOf(a *rules.Alert) (labels map[string]string, key string) {
	labels = maps.Clone(n.external)
	maps.Copy(labels, texts(a.Labels, maxLabelBytes))
	return labels, keyOf(labels)
}

// texts returns labels as Alertmanager accepts them: legal names, valid UTF-8, no
// empty values, nothing longer than limit bytes.
func texts(labels rules.Labels, limit int) map[string]string {
	out := make(map[string]string, len(labels))
	for _, l := range labels {
		put(out, l.Name, l.Value, limit)
	}
	return out
}

// fit is texts for labels that are a map already.
func fit(labels map[string]string, limit int) map[string]string {
	out := make(map[string]string, len(labels))
	for _, name := range sortedNames(labels) {
		put(out, name, labels[name], limit)
	}
	return out
}

func put(to map[string]string, name, value string, limit int) {
	if v := cut(strings.ToValidUTF8(value, "\uFFFD"), limit); v != "" {
		to[legalName(name)] = v
	}
}

// cut shortens s to limit bytes, marks that it did, and splits no character.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// legalName replaces what may not stand in a label name.
func legalName(s string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
	if legal == "" || legal[0] >= '0' && legal[0] <= '9' {
		return "_" + legal
	}
	return legal
}

// keyOf returns the identity of a set of labels. Quotes keep any two sets apart.
func keyOf(labels map[string]string) string {
	var b []byte
	for _, name := range sortedNames(labels) {
		b = append(append(b, name...), '=')
		b = strconv.AppendQuote(b, labels[name])
	}
	return string(b)
}
