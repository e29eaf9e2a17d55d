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
func payload(records []*record, leaseEnd time.Time) ([]byte, error) {
	out := make([]posted, len(records))
	for i, r := range records {
		out[i] = posted{
			Labels: r.labels, Annotations: r.annotations, GeneratorURL: r.generatorURL,
			StartsAt: r.startsAt.UTC(), EndsAt: leaseEnd.UTC(),
		}
		if !r.firing() {
			out[i].EndsAt = r.resolvedAt.UTC()
		}
	}
	return json.Marshal(out)
}

// sortedNames gives label names an order.
func sortedNames(labels map[string]string) []string {
	return slices.Sorted(maps.Keys(labels))
}
