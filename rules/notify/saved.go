package notify

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"
)

const savedMagic = "sgnotify"

// savedVersion changes whenever what is written changes.
const savedVersion = 1

// savedAlert is an alert's newest state as it is saved. Whether an Alertmanager has
// it is not: after a restart each is told everything once, under the same labels and
// the same start, which is no second page.
type savedAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	GeneratorURL string            `json:"generator_url,omitempty"`
	StartsAt     time.Time         `json:"starts_at"`
	ResolvedAt   time.Time         `json:"resolved_at,omitzero"`
}

// Snapshot appends to dst what Restore needs: every alert that was handed in and
// fires, or resolved within the retention, with its times. Alerts that have to be
// handed in again and again are not part of it.
func (n *Notifier) Snapshot(dst []byte) []byte {
	from := len(dst)
	dst = append(append(dst, savedMagic...), savedVersion)
	body, err := json.Marshal(n.savedAlerts())
	if err != nil {
		panic(fmt.Errorf("notify: %w", err)) // texts and times of our own making
	}
	dst = append(dst, body...)
	return binary.LittleEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[from:]))
}

func (n *Notifier) savedAlerts() []savedAlert {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.o.Now()
	n.book.expire(now.Add(-n.o.ResolvedRetention))
	out := []savedAlert{}
	for _, r := range n.book.records() {
		if !r.until.IsZero() {
			continue
		}
		a := savedAlert{Labels: r.labels, Annotations: r.annotations, GeneratorURL: r.generatorURL, StartsAt: within(r.startsAt, now)}
		if !r.firing() {
			a.ResolvedAt = within(r.resolvedAt, now)
		}
		out = append(out, a)
	}
	return out
}

// Restore files the alerts of a snapshot for every Alertmanager, as they were: what
// fired keeps its start and its lease is renewed at once, and what resolved is sent
// until its retention is over. Alerts that were handed in already stay as they are.
//
// The rules have to confirm what fires by handing it in again; once they have caught
// up, ResolveUnconfirmed ends the rest. After an error nothing has changed.
func (n *Notifier) Restore(b []byte) error {
	alerts, err := readSaved(b)
	if err != nil {
		return fmt.Errorf("restore notifications: %w", err)
	}
	now := n.o.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	var records []*record
	for i := range alerts {
		r := alerts[i].record(now)
		if n.book.get(r.key) == nil {
			n.book.put(r, now)
			records = append(records, r)
		}
	}
	n.pass(records, now)
	return nil
}

func readSaved(b []byte) ([]savedAlert, error) {
	const head = len(savedMagic) + 1
	if len(b) < head+4 {
		return nil, errors.New("cut off")
	}
	end := len(b) - 4
	switch {
	case string(b[:len(savedMagic)]) != savedMagic:
		return nil, errors.New("not a snapshot of notifications")
	case b[head-1] != savedVersion:
		return nil, fmt.Errorf("version %d, this program reads %d", b[head-1], savedVersion)
	case binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]):
		return nil, errors.New("checksum does not match")
	}
	var alerts []savedAlert
	if err := json.Unmarshal(b[head:end], &alerts); err != nil {
		return nil, err
	}
	return alerts, nil
}

// record is the alert as it is sent from now on.
func (a *savedAlert) record(now time.Time) *record {
	labels := fit(a.Labels, maxLabelBytes)
	r := &record{
		key: keyOf(labels), epoch: 1, labels: labels, annotations: fit(a.Annotations, maxAnnotationBytes),
		generatorURL: strings.ToValidUTF8(a.GeneratorURL, "\uFFFD"), startsAt: within(a.StartsAt, now), restored: true,
	}
	if !a.ResolvedAt.IsZero() {
		r.resolvedAt = within(a.ResolvedAt, now)
	}
	return r
}

// within keeps a time between the beginning of Unix time and now: our clock may have
// been set back while we were down.
func within(t, now time.Time) time.Time {
	if epoch := time.Unix(0, 0); t.Before(epoch) {
		return epoch
	}
	return earlier(t, now)
}

// ResolveUnconfirmed ends the alerts that Restore brought back and that nobody handed
// in since: their rule is gone, their query is, or it recovered and nobody noticed.
// Call it once the rules have judged all that came before the restart, and after. It
// returns how many there were.
func (n *Notifier) ResolveUnconfirmed() int {
	now := n.o.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	var ended []*record
	for _, r := range n.book.records() {
		if r.restored && r.firing() {
			ended = append(ended, r.over(now))
		}
	}
	for _, r := range ended {
		n.book.put(r, now)
	}
	n.pass(ended, now)
	return len(ended)
}

// over is the resolve of an alert that nobody stands for any more.
func (r *record) over(now time.Time) *record {
	out := *r
	out.epoch, out.restored = r.epoch+1, false
	out.annotations = map[string]string{}
	for name, text := range r.annotations {
		out.annotations[name] = text
	}
	out.annotations["resolved_because"] = "after a restart nothing found it any more"
	out.end(now)
	return &out
}

// LetGo forgets the firing alerts whose labels gone picks, without a resolve: another
// process sends them from now on. gone gets a func that returns the value of a label,
// empty where there is none. Resolves that are on their way are still sent.
func (n *Notifier) LetGo(gone func(label func(name string) string) bool) {
	picked := func(r *record) bool {
		return r.firing() && gone(func(name string) string { return r.labels[name] })
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.book.dropWhere(picked)
	for s := range n.senders {
		s.letGo(picked)
	}
}
