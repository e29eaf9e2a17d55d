package exporter

import (
	"slices"
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// identity is what a query's labels are made of, as it arrived.
type identity struct {
	id                         string // value of query_id
	name, application, cluster string
	extra                      []event.Label
}

// identify takes over what ev says of the query's name, application, cluster and
// extra labels. A carrier that leaves one out says nothing about it, so what is
// known stays; a change replaces the labels of all series.
func (x *Exporter) identify(q *query, ev *event.Event) {
	was, first := &q.identity, q.identity.id == ""
	news := func(have, got string) bool { return got != "" && got != have }
	if !first && !news(was.name, ev.Query.Name) && !news(was.application, ev.Query.Application) &&
		!news(was.cluster, ev.Cluster) && (len(ev.Extra) == 0 || slices.Equal(ev.Extra, was.extra)) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if first {
		was.id = x.claimID(q)
	}
	take := func(have *string, got string) {
		if got != "" {
			*have = got
		}
	}
	take(&was.name, ev.Query.Name)
	take(&was.application, ev.Query.Application)
	take(&was.cluster, ev.Cluster)
	if len(ev.Extra) > 0 {
		was.extra = slices.Clone(ev.Extra)
	}
	x.relabel(q)
}

// claimID returns a value of query_id that no other query has. The caller holds mu.
func (x *Exporter) claimID(q *query) string {
	id := cleanID(q.key, x.o.LabelBytes)
	for n := 2; ; n++ {
		if _, taken := x.ids[id]; !taken {
			x.ids[id] = q.key
			return id
		}
		id = cleanValue(string(q.key), x.o.LabelBytes-markBytes) + "~" + strconv.Itoa(n)
	}
}

// relabel renders all labels of q anew. The caller holds mu.
func (x *Exporter) relabel(q *query) {
	base := x.pairs(q)
	q.base.labels.render("", base)
	for k, e := range q.operators {
		e.labels.render("", append(slices.Clip(base), operatorPairs(k)...))
	}
	for i, e := range q.sources {
		e.labels.render("", append(slices.Clip(base), sourcePair(i)))
	}
	if q.unknown != nil {
		q.unknown.labels.render("", append(slices.Clip(base), event.Label{Name: "source_index", Value: unknownName}))
	}
}

// pairs returns the labels of everything about q.
func (x *Exporter) pairs(q *query) []event.Label {
	i := &q.identity
	clean := func(s string) string { return cleanValue(s, x.o.LabelBytes) }
	name := clean(i.name)
	if name == "" {
		name = i.id
	}
	out := []event.Label{
		{Name: "query_id", Value: i.id},
		{Name: "query_name", Value: name},
		{Name: "application", Value: clean(i.application)},
	}
	if i.cluster != "" {
		out = append(out, event.Label{Name: "spark_cluster", Value: clean(i.cluster)})
	}
	for n, l := range i.extra {
		repeat := slices.ContainsFunc(i.extra[:n], func(o event.Label) bool { return o.Name == l.Name })
		if usableLabel(l.Name) && l.Value != "" && !repeat {
			out = append(out, event.Label{Name: l.Name, Value: clean(l.Value)})
		}
	}
	return out
}

// unknownName stands for an operator without a name and a source without a
// number: an empty label is no label.
const unknownName = "unknown"

// operatorPairs returns the labels that an operator adds to its query's.
func operatorPairs(k operatorKey) []event.Label {
	return []event.Label{{Name: "operator", Value: k.name}, {Name: "operator_index", Value: strconv.Itoa(k.index)}}
}

func sourcePair(i int) event.Label {
	return event.Label{Name: "source_index", Value: strconv.Itoa(i)}
}

// newEntity makes an operator or source of q that adds pairs to the query's labels.
func (x *Exporter) newEntity(q *query, pairs ...event.Label) *entity {
	l := &labels{}
	l.render("", append(slices.Clip(q.base.labels.pairs), pairs...))
	return &entity{labels: l}
}
