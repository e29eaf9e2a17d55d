package notify

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// posted is an alert as the v2 API takes it.
type posted struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// payload renders records; those that fire end at leaseEnd. Times are UTC, so that a
// change of the local zone changes nothing on the wire.
func payload(records []*record, now, leaseEnd time.Time) ([]byte, error) {
	out := make([]posted, len(records))
	for i, r := range records {
		out[i] = posted{Labels: r.labels, Annotations: r.annotations, GeneratorURL: r.generatorURL}
		out[i].StartsAt, out[i].EndsAt = r.span(now, leaseEnd)
	}
	return json.Marshal(out)
}

// span returns the times to send. None lies ahead of our wall clock, which may have
// been set back since: an alert that starts after its end is refused, and one that
// ended in the future would fire until then.
func (r *record) span(now, leaseEnd time.Time) (starts, ends time.Time) {
	if r.firing() {
		return earlier(r.startsAt, now), leaseEnd.UTC()
	}
	ends = earlier(r.resolvedAt, now)
	return earlier(r.startsAt, ends.Add(-time.Millisecond)), ends
}

// earlier compares by the wall clock alone.
func earlier(a, b time.Time) time.Time {
	a, b = a.Round(0).UTC(), b.Round(0).UTC()
	if a.Before(b) {
		return a
	}
	return b
}

// sortedNames gives label names an order.
func sortedNames(labels map[string]string) []string {
	return slices.Sorted(maps.Keys(labels))
}
