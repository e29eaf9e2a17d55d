package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// notedSpec is a made-up query in short notation.
type notedSpec struct {
	Interval   strictyaml.Duration `yaml:"interval"`    // from batch to batch; default 1m
	Start      string              `yaml:"start"`       // of the first batch, RFC 3339; default 2026-03-02T00:00:00Z
	FirstBatch int64               `yaml:"first_batch"` // its id; one above 0 is a run that was there before
	Query      map[string]string   `yaml:"query"`       // figures of the query by Spark's keys, such as durationMs.addBatch
	Operators  []notedOperator     `yaml:"operators"`
}

type notedOperator struct {
	Name   string            `yaml:"name"` // default stateStoreSave
	Values map[string]string `yaml:"values"`
}

// noted is a notedSpec ready to be played.
type noted struct {
	startMs, everyMs, first int64
	batches                 int
	query                   []column
	operators               [][]column
	names                   []string
}

// column is one figure over all batches. set puts it into a batch.
type column struct {
	values   []float64
	constant bool
	set      func(b *event.Batch, o *event.Operator, v float64)
}

func (c *column) at(n int) float64 {
	if c.constant {
		return c.values[0]
	}
	return c.values[n]
}

// derived are the figures that a query has beside Spark's keys, as rules call them.
var derived = map[string]func(b *event.Batch, v float64){
	"backlog_offsets": func(b *event.Batch, v float64) { firstSource(b).Backlog = int64(v) },
	"watermark_lag_ms": func(b *event.Batch, v float64) {
		b.EventTimeMaxMs = timeMax(b)
		b.WatermarkMs = b.EventTimeMaxMs - int64(v)
	},
	"event_time_lag_ms": func(b *event.Batch, v float64) { b.EventTimeMaxMs = b.StartMs - int64(v) },
}

func timeMax(b *event.Batch) int64 {
	if b.EventTimeMaxMs == event.Absent {
		return b.StartMs
	}
	return b.EventTimeMaxMs
}

func firstSource(b *event.Batch) *event.Source {
	if len(b.Sources) == 0 {
		b.AddSource().Description = "noted"
	}
	return &b.Sources[0]
}

// compile checks the spec at path.
func (s *notedSpec) compile(pos *strictyaml.Positions, path string) (*noted, strictyaml.Faults) {
	n := &noted{everyMs: 60_000, first: s.FirstBatch, startMs: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixMilli()}
	var faults strictyaml.Faults
	if s.Interval > 0 {
		n.everyMs = s.Interval.Std().Milliseconds()
	}
	if s.Start != "" {
		at, err := time.Parse(time.RFC3339, s.Start)
		if err != nil {
			faults = append(faults, pos.Faultf(path+".start", "start %q is no time such as 2026-03-02T00:00:00Z", s.Start))
		}
		n.startMs = at.UnixMilli()
	}
	c := columnCompiler{pos: pos, n: n, faults: &faults}
	n.query = c.columns(path+".query", event.ScopeQuery, s.Query)
	for i := range s.Operators {
		o := &s.Operators[i]
		if o.Name == "" {
			o.Name = "stateStoreSave"
		}
		n.names = append(n.names, o.Name)
		n.operators = append(n.operators, c.columns(fmt.Sprintf("%s.operators[%d].values", path, i), event.ScopeOperator, o.Values))
	}
	if n.batches == 0 && len(faults) == 0 {
		faults = append(faults, pos.Faultf(path, "no series says how many batches there are: give one a number, such as 100x60"))
	}
	return n, faults
}

type columnCompiler struct {
	pos    *strictyaml.Positions
	n      *noted
	from   string // key whose series set the number of batches
	faults *strictyaml.Faults
}

func (c *columnCompiler) columns(path string, scope event.Scope, values map[string]string) (out []column) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := path + "." + strictyaml.Path(key)
		set := setterOf(scope, key)
		if set == nil {
			*c.faults = append(*c.faults, c.pos.Faultf(path, "unknown figure %q%s", key, strictyaml.DidYouMean(key, keysOf(scope))))
			continue
		}
		v, constant, err := parseNotation(values[key])
		if err != nil {
			*c.faults = append(*c.faults, c.pos.Faultf(at, "%s: %w", key, err))
			continue
		}
		switch {
		case constant:
		case c.n.batches == 0:
			c.n.batches, c.from = len(v), key
		case c.n.batches != len(v):
			*c.faults = append(*c.faults, c.pos.Faultf(at, "%s has %d batches, %s has %d", key, len(v), c.from, c.n.batches))
		}
		out = append(out, column{v, constant, set})
	}
	return out
}

// setterOf says where a figure goes; nil for an unknown one.
func setterOf(scope event.Scope, key string) func(*event.Batch, *event.Operator, float64) {
	if f := derived[key]; f != nil && scope == event.ScopeQuery {
		return func(b *event.Batch, _ *event.Operator, v float64) { f(b, v) }
	}
	id, ok := event.ByKey(scope, []byte(key))
	switch {
	case !ok:
		return nil
	case scope == event.ScopeOperator:
		return func(_ *event.Batch, o *event.Operator, v float64) { o.Values[id] = v }
	}
	return func(b *event.Batch, _ *event.Operator, v float64) { b.Values[id] = v }
}

func keysOf(scope event.Scope) (out []string) {
	for _, m := range event.Catalog() {
		if m.Scope == scope {
			out = append(out, m.JSON)
		}
	}
	if scope == event.ScopeQuery {
		out = slices.AppendSeq(out, maps.Keys(derived))
	}
	return out
}

// play makes the batches, one after the other in the same memory.
func (n *noted) play(p *Player) {
	b := &event.Batch{}
	for i := range n.batches {
		b.Reset()
		b.Query, b.Run = event.QueryRef{ID: "noted", Name: "noted", Application: "noted"}, "noted-run"
		b.ID, b.StartMs = n.first+int64(i), n.startMs+int64(i)*n.everyMs
		for k := range n.operators {
			o := b.AddOperator()
			o.Name, o.Index = n.names[k], k
			o.Values[event.NumStateStoreInstances] = 1
			apply(n.operators[k], b, o, i)
		}
		apply(n.query, b, nil, i)
		n.complete(b)
		p.Play(&event.Event{Kind: event.KindProgress, Batch: b, Query: b.Query, Run: b.Run, AtMs: b.StartMs}, event.Origin{})
	}
}

func apply(columns []column, b *event.Batch, o *event.Operator, i int) {
	for k := range columns {
		if v := columns[k].at(i); !math.IsNaN(v) {
			columns[k].set(b, o, v)
		}
	}
}

// complete adds what a batch always has: rows, a phase, and durations that are the
// sum of the phases.
func (n *noted) complete(b *event.Batch) {
	def := func(id event.MetricID, v float64) {
		if !b.Values.Has(id) {
			b.Values[id] = v
		}
	}
	def(event.NumInputRows, 1000)
	if b.Values.Has(event.BatchDuration) {
		def(event.DurationAddBatch, b.Values[event.BatchDuration])
	}
	def(event.DurationAddBatch, 1000)
	sum := 0.0
	for id := event.FirstPhase; id <= event.LastPhase; id++ {
		if id != event.DurationTriggerExecution && b.Values.Has(id) {
			sum += b.Values[id]
		}
	}
	def(event.DurationTriggerExecution, sum)
	def(event.BatchDuration, b.Values[event.DurationTriggerExecution])
	b.Settle()
}
