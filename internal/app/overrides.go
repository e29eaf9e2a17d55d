package app

import (
	"maps"
	"math"
	"path"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// overrides answers what the configuration says about single queries. It is
// immutable: a reload puts a new one in its place.
type overrides struct{ list []QueryOverride }

// find calls f for every override that matches the query's name or id, in file
// order.
func (o *overrides) find(q event.QueryRef, f func(*QueryOverride)) {
	for i := range o.list {
		if matches(o.list[i].Match, q.Name) || matches(o.list[i].Match, string(q.ID)) {
			f(&o.list[i])
		}
	}
}

func matches(pattern, s string) bool {
	// Patterns were checked when the configuration was loaded.
	ok, _ := path.Match(pattern, s)
	return ok && s != ""
}

// trigger returns the configured trigger of a query; the last override that names
// one counts. Unknown and NaN where none does.
func (o *overrides) trigger(q event.QueryRef) (kind event.TriggerKind, intervalMs float64) {
	intervalMs = math.NaN()
	o.find(q, func(c *QueryOverride) {
		if c.Trigger != "" {
			kind = triggerKinds[c.Trigger]
		}
		if c.Interval > 0 {
			kind, intervalMs = event.TriggerInterval, float64(c.Interval.Std().Milliseconds())
		}
	})
	return kind, intervalMs
}

// labels returns the labels that a query's alerts get on top.
func (o *overrides) labels(q event.QueryRef) map[string]string {
	var out map[string]string
	o.find(q, func(c *QueryOverride) {
		if out == nil && (c.Owner != "" || len(c.Labels) > 0) {
			out = map[string]string{}
		}
		if c.Owner != "" {
			out["owner"] = c.Owner
		}
		maps.Copy(out, c.Labels)
	})
	return out
}

// facts returns what rules want to know of a query; of each fact the last override
// that names it counts.
func (o *overrides) facts(q event.QueryRef) (out rules.Override) {
	o.find(q, func(c *QueryOverride) {
		if c.Freshness > 0 {
			out.FreshnessMs = float64(c.Freshness.Std().Milliseconds())
		}
		if c.MemoryLimit > 0 {
			out.MemoryLimitBytes = float64(c.MemoryLimit)
		}
		if c.DiskLimit > 0 {
			out.DiskLimitBytes = float64(c.DiskLimit)
		}
		if c.Critical != nil {
			out.Critical = *c.Critical
		}
	})
	return out
}

// muted reports whether a query's alerts are held back at this time.
func (o *overrides) muted(q event.QueryRef, now time.Time) bool {
	muted := false
	o.find(q, func(c *QueryOverride) { muted = muted || now.Before(time.Time(c.Mute)) })
	return muted
}
