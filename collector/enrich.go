package collector

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Label names that Enrich writes into the event itself instead of its extra labels.
const (
	LabelApplication = "application"
	LabelCluster     = "spark_cluster"
)

// Enrich adds labels that the carrier knows and the event does not. Each label
// has an ordered list of places to look: "app.name", "app.id", "app.cluster" (of
// our envelope), "header:NAME" (Kafka) or "query:NAME" (HTTP); the first that is
// not empty counts.
type Enrich struct{ rules []enrichRule }

type enrichRule struct {
	label string
	from  []string
}

// NewEnrich builds an Enrich from label name to places. Names and places must
// have been validated.
func NewEnrich(from map[string][]string) *Enrich {
	e := &Enrich{}
	for label, places := range from {
		e.rules = append(e.rules, enrichRule{label, places})
	}
	slices.SortFunc(e.rules, func(a, b enrichRule) int { return strings.Compare(a.label, b.label) })
	return e
}

// Apply sets the labels of ev. lookup returns the carrier's value for a place
// such as "header:team", empty where it has none. A nil Enrich does nothing.
func (e *Enrich) Apply(ev *event.Event, lookup func(place string) string) {
	if e == nil {
		return
	}
	for _, r := range e.rules {
		v := r.find(ev, lookup)
		if v == "" {
			continue
		}
		e.set(ev, r.label, v)
	}
}

func (r enrichRule) find(ev *event.Event, lookup func(place string) string) string {
	for _, place := range r.from {
		v := ""
		switch {
		case strings.HasPrefix(place, "app."):
			v = appField(ev.Envelope, place)
		case lookup != nil:
			v = lookup(place)
		}
		if v != "" {
			return v
		}
	}
	return ""
}

func appField(env *event.Envelope, place string) string {
	if env == nil {
		return ""
	}
	switch place {
	case "app.name":
		return env.App.Name
	case "app.id":
		return env.App.ID
	case "app.cluster":
		return env.App.Cluster
	}
	return ""
}

func (e *Enrich) set(ev *event.Event, label, value string) {
	switch label {
	case LabelApplication:
		ev.Query.Application = value
		if ev.Batch != nil {
			ev.Batch.Query.Application = value
		}
	case LabelCluster:
		ev.Cluster = value
	default:
		ev.Extra = append(ev.Extra, event.Label{Name: label, Value: value})
	}
}
