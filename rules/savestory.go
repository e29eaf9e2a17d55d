package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// carry carries what is known of a query beside its windows. Who else was heard is the
// engine's.
func (q *queryState) carry(c *codec) {
	text(c, &q.ref.ID)
	c.str(&q.ref.Name)
	c.str(&q.ref.Application)
	c.str(&q.cluster)
	c.str(&q.group)
	q.carryExtra(c)
	small(c, &q.trigger, event.TriggerContinuous)
	small(c, &q.state, event.StateRetired)
	text(c, &q.run)
	c.ints(&q.runStartMs, &q.lastBatch, &q.position, &q.shift, &q.atMs, &q.elapsedMs, &q.gapMs)
	c.counts(&q.runBatches, &q.dated)
	c.bools(&q.midway, &q.held)
	c.Float(&q.spacingMs)
	q.facts.carry(c)
	q.uploads.carry(c)
	q.story.carry(c)
}

func (q *queryState) carryExtra(c *codec) {
	n := len(q.extra)
	c.items(&n)
	if !c.writing && n > 0 {
		q.extra = make([]event.Label, n)
	}
	for i := range q.extra {
		c.str(&q.extra[i].Name)
		c.str(&q.extra[i].Value)
	}
}

// carry carries the facts that there were when they were saved: those of later versions
// stay unknown.
func (f *Facts) carry(c *codec) {
	n := len(f)
	c.Count(&n, len(f))
	for i := range f[:n] {
		c.Float(&f[i])
	}
}

func (p *uploads) carry(c *codec) {
	c.Bool(&p.told)
	for i := range p.last {
		c.Float(&p.last[i])
	}
	c.unsigned(&p.changed)
	c.counts(&p.judged)
}

func (s *story) carry(c *codec) {
	c.ints(&s.heardMs, &s.wordMs, &s.lastMs, &s.startMs, &s.outMs, &s.newest, &s.place)
	text(c, &s.run)
	c.counts(&s.ran)
	c.bools(&s.idle, &s.ended, &s.died)
	small(c, &s.strikes, math.MaxUint8)
	c.floats(&s.before, &s.rows, &s.backlog)
	s.gaps.carry(c)
	s.durations.carry(c)
	s.runs.carry(c)
	s.longest.carry(c)
	s.beats.carry(c)
	if present(c, &s.failure) {
		s.failure.carry(c)
	}
	s.starts.carry(c)
	s.changes.carry(c)
	s.first.carry(c)
	s.shape.carry(c)
	s.reload.carry(c)
}

// present carries whether there is anything at p, and makes room for it.
func present[T any](c *codec, p **T) bool {
	there := *p != nil
	if c.Bool(&there); there && !c.writing {
		*p = new(T)
	}
	return there
}

func (r *recent) carry(c *codec) {
	small(c, &r.n, recentKept)
	small(c, &r.next, recentKept-1)
	small(c, &r.due, recentStride)
	c.Singles(r.ring[:r.n])
	c.floats(&r.p50, &r.p90, &r.p99)
}

func (d *days) carry(c *codec) {
	for i := range d.day {
		day := int64(d.day[i])
		c.Int(&day)
		d.day[i] = int32(day)
	}
	c.Singles(d.most[:])
}

// carry carries the sender along: it may have been forgotten, or come from elsewhere.
func (h *heartbeats) carry(c *codec) {
	c.Int(&h.ms)
	c.Bool(&h.active)
	if present(c, &h.sender) {
		h.sender.carry(c)
	}
}

func (p *sender) carry(c *codec) {
	c.str(&p.name)
	c.Int(&p.lastMs)
	c.Float(&p.gapMs)
}

func (f *exception) carry(c *codec) {
	c.str(&f.class)
	c.str(&f.text)
	text(c, &f.run)
	c.Int(&f.atMs)
}

func (s *starts) carry(c *codec) {
	c.Count(&s.n, maxStarts)
	for i := range s.list[:s.n] {
		c.Int(&s.list[i].atMs)
		c.counts(&s.list[i].batches)
	}
	s.last.carry(c)
}

func (h *happenings) carry(c *codec) {
	kinds := len(h.of)
	c.Count(&kinds, len(h.of))
	for k := range h.of[:kinds] {
		c.Bool(&h.standing[k])
		h.of[k].carry(c)
	}
}

func (h *happened) carry(c *codec) {
	n := len(*h)
	c.Count(&n, occurrencesKept)
	if !c.writing && n > 0 {
		*h = make(happened, n)
	}
	for i := range *h {
		o := &(*h)[i]
		c.ints(&o.atMs, &o.batch)
		c.Float(&o.count)
		c.str(&o.text)
		c.str(&o.why)
	}
}

func (f *firstBatch) carry(c *codec) {
	c.ints(&f.id, &f.startMs, &f.position)
	c.floats(&f.rows, &f.backlog)
	if present(c, &f.from) {
		f.from.carry(c)
	}
}

func (p *predecessor) carry(c *codec) {
	text(c, &p.id)
	c.ints(&p.lastBatch, &p.lastMs)
	c.floats(&p.backlog, &p.rowsASecond)
	c.Bool(&p.acknowledged)
}

func (p *shape) carry(c *codec) {
	for _, list := range []*[]operatorShape{&p.known, &p.seen} {
		n := len(*list)
		c.Count(&n, maxShapes)
		if !c.writing && n > 0 {
			*list = make([]operatorShape, n)
		}
		for i := range *list {
			o := &(*list)[i]
			c.str(&o.name)
			c.floats(&o.partitions, &o.instances, &o.rows)
		}
	}
	text(c, &p.run)
	c.counts(&p.times)
}

func (r *reload) carry(c *codec) {
	c.floats(&r.hits, &r.misses, &r.replayed, &r.commit, &r.losses, &r.executors)
	c.str(&r.hint)
	c.str(&r.doubt)
	c.counts(&r.hinted, &r.doubted)
	c.Int(&r.last)
	c.Bool(&r.told)
}
