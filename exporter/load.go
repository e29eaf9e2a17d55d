package exporter

import (
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// LoadCounters makes a query again from what SaveCounters wrote: its counters go
// on from there, their times of creation stay, and the page shows what it showed.
// Series that a limit forbids now are left out and counted; those of a later version
// that this one does not have are left out.
//
// It is for the start, before updates of the query come in: a query that exists
// already is an error, as is anything damaged. After an error nothing has changed.
func (x *Exporter) LoadCounters(b []byte) error {
	s, err := x.readSaved(b)
	if err != nil {
		return fmt.Errorf("load a query's series: %w", err)
	}
	l := loader{x: x, s: s, refused: map[string]int{}}
	if err := l.load(); err != nil {
		return fmt.Errorf("load series of query %q: %w", s.q.key, err)
	}
	s.q.owner.Lock()
	defer s.q.owner.Unlock()
	for reason, n := range l.refused {
		for range n {
			x.drop(reason, s.q)
		}
	}
	return nil
}

func (x *Exporter) readSaved(b []byte) (*saved, error) {
	body, err := openSaved(b)
	if err != nil {
		return nil, err
	}
	c := saver{buf: body}
	s := &saved{q: newQueryState("")}
	s.visit(&c, &x.plan)
	switch {
	case c.err != nil:
		return nil, c.err
	case len(c.buf) > 0:
		return nil, fmt.Errorf("%d %w", len(c.buf), errLeft)
	case s.q.key == "":
		return nil, errors.New("query id missing")
	}
	return s, nil
}

// loader makes a query from what was saved. It holds Exporter.mu while it works, so
// that no page shows half of it.
type loader struct {
	x       *Exporter
	s       *saved
	objects []*entity
	born    *stamp // of the series before, which most share
	refused map[string]int
}

func (l *loader) load() error {
	x, q := l.x, l.s.q
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.find(q.key) != nil {
		return errors.New("it exists already")
	}
	x.giveID(q)
	q.identity.id = x.claimID(q)
	x.relabel(q)
	if err := l.makeObjects(); err != nil {
		x.takeID(q)
		return err
	}
	q.renderInfo(q.infoKey)
	for i := range l.s.series {
		l.loadSeries(&l.s.series[i])
	}
	for i := range l.s.hists {
		l.loadHist(&l.s.hists[i])
	}
	q.publish()
	x.index.Lock()
	defer x.index.Unlock()
	x.byID[q.key] = q
	x.live.Add(1)
	return nil
}

// makeObjects makes the operators and sources in the order in which series name them.
func (l *loader) makeObjects() error {
	x, q := l.x, l.s.q
	l.objects = append(l.objects, q.base)
	q.operators = make(map[operatorKey]*entity, len(l.s.ops))
	for i := range l.s.ops {
		o := &l.s.ops[i]
		if q.operators[o.key] != nil {
			return fmt.Errorf("operator %d %q comes twice", o.key.index, o.key.name)
		}
		e := x.newEntity(q, operatorPairs(o.key)...)
		e.op, e.lastMs = o.state, o.lastMs
		q.operators[o.key] = e
		l.objects = append(l.objects, e)
	}
	for i, lastMs := range l.s.sources {
		e := x.newEntity(q, sourcePair(i))
		e.lastMs = lastMs
		q.sources = append(q.sources, e)
		l.objects = append(l.objects, e)
	}
	if l.s.unknown {
		q.unknown = x.newEntity(q, event.Label{Name: "source_index", Value: unknownName})
		l.objects = append(l.objects, q.unknown)
	}
	return nil
}

// object returns nil where a series belongs to nothing that was saved.
func (l *loader) object(p *savedPlace) *entity {
	if p.object < len(l.objects) {
		return l.objects[p.object]
	}
	return nil
}

func (l *loader) loadSeries(s *savedSeries) {
	e := l.object(&s.savedPlace)
	if e == nil {
		return
	}
	if at := l.seriesOf(e, s); at >= 0 {
		l.s.q.next[at] = s.value
	}
}

// seriesOf makes the series; -1 where there is none to be.
func (l *loader) seriesOf(e *entity, s *savedSeries) int32 {
	switch s.key.class {
	case keyRow, keyLast, keyDerived:
		return l.definedSeries(e, s)
	case keyUnknown:
		return l.unknownSeries(e, s.key.name)
	}
	if e != l.s.q.base {
		return -1
	}
	return l.dynamicSeries(s)
}

// definedSeries makes a series that has a definition of the kind it was saved as.
func (l *loader) definedSeries(e *entity, s *savedSeries) int32 {
	d, known := l.x.keyTable.defs[s.key]
	if !known {
		return -1
	}
	def := &l.x.defs[d]
	if s.counter != (def.family.kind == counter) || def.family.kind == histogram || e.slots[d] != 0 {
		return -1
	}
	ex := def.extra
	if d == defInfo {
		ex = l.s.q.info
	}
	return l.add(e, d, ex, &s.savedPlace)
}

// add makes the series of a definition.
func (l *loader) add(e *entity, d defID, ex *labels, p *savedPlace) int32 {
	at := l.place(l.x.defs[d].family, e.labels, ex, p.bornMs)
	e.slots[d] = refused
	if at >= 0 {
		e.slots[d] = at + 1
	}
	return at
}

// place makes a series as far as the limits allow.
func (l *loader) place(f *family, lab, ex *labels, bornMs int64) int32 {
	if reason := l.x.admit(l.s.q, f.weight()); reason != "" {
		l.refused[reason]++
		return -1
	}
	if l.born == nil || l.born.ms != bornMs {
		l.born = newStamp(bornMs)
	}
	born := l.born
	if f.kind == gauge {
		born = nil
	}
	return int32(l.x.place(l.s.q, f, lab, ex, born))
}

// unknownSeries makes the gauge of a key that the catalog does not have.
func (l *loader) unknownSeries(e *entity, key string) int32 {
	if e.op == nil || len(e.op.unknown) >= l.x.o.UnknownKeysPerOperator {
		return -1
	}
	if _, twice := e.op.unknown[key]; twice {
		return -1
	}
	at, reason := l.x.placeUnknown(l.s.q, e, key)
	if reason != "" {
		l.refused[reason]++
		return -1
	}
	if e.op.unknown == nil {
		e.op.unknown = map[string]uint32{}
	}
	e.op.unknown[key] = at
	return int32(at)
}

// dynamicSeries makes a series with a label of Spark's or the user's choosing.
func (l *loader) dynamicSeries(s *savedSeries) int32 {
	q, k := l.s.q, &s.key
	switch {
	case k.class == keyPhase && s.counter, k.class == keyLastPhase && !s.counter:
		return l.phaseSeries(s)
	case s.counter || len(q.observed)+len(q.quantiles) >= l.x.o.Observed:
		return -1
	case k.class == keyObserved:
		return l.observedSeries(observedKey{k.name, k.column})
	case k.class == keyQuantile:
		return l.quantileSeries(quantileKey{event.MetricID(k.id), k.quantile})
	}
	return -1
}

func (l *loader) observedSeries(k observedKey) int32 {
	q := l.s.q
	if _, twice := q.observed[k]; twice {
		return -1
	}
	at := l.place(l.x.observedFamily, q.base.labels, extra(observedPairs(k)...), 0)
	if at < 0 {
		return at
	}
	if q.observed == nil {
		q.observed = map[observedKey]uint32{}
	}
	q.observed[k] = uint32(at)
	return at
}

func (l *loader) quantileSeries(k quantileKey) int32 {
	q, d := l.s.q, &l.x.defs[k.metric]
	if _, twice := q.quantiles[k]; twice || d.row.Quirks&event.QuirkPercentile == 0 {
		return -1
	}
	at := l.place(d.family, q.base.labels, extra(quantilePair(k.quantile)), 0)
	if at < 0 {
		return at
	}
	if q.quantiles == nil {
		q.quantiles = map[quantileKey]uint32{}
	}
	q.quantiles[k] = uint32(at)
	return at
}

// phaseSeries makes the work, or the newest batch's time, of an unknown phase.
func (l *loader) phaseSeries(s *savedSeries) int32 {
	q, name := l.s.q, s.key.name
	p, known := q.phases[name]
	if !known {
		if len(q.phases) > l.x.o.Phases { // one more than the limit: "other"
			return -1
		}
		p = phaseSlots{-1, -1}
	}
	to, f := &p.total, l.x.defs[defUnaccounted].family
	if !s.counter {
		to, f = &p.last, l.x.defs[defLastUnaccounted].family
	}
	if _, taken := l.x.plan.phaseByName[name]; taken || *to >= 0 {
		return -1 // two series must not share a label value
	}
	if *to = l.place(f, q.base.labels, extra(phasePair(name)), s.bornMs); *to < 0 {
		return -1
	}
	if q.phases == nil {
		q.phases = map[string]phaseSlots{}
	}
	q.phases[name] = p
	return *to
}

// loadHist makes a histogram that goes on from what was saved.
func (l *loader) loadHist(s *savedHist) {
	e := l.object(&s.savedPlace)
	d, known := l.x.keyTable.defs[s.key]
	if e == nil || !known || l.x.defs[d].family.kind != histogram || e.slots[d] != 0 {
		return
	}
	at := l.add(e, d, l.x.defs[d].extra, &s.savedPlace)
	if at < 0 {
		return
	}
	s.h.fit(l.x.defs[d].family)
	q := l.s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hists[at] = s.h
}
