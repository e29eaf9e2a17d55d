package rules

import (
	"math"
	"math/bits"
)

// saved is what a tracker's state is carried by; what its rule decides is not part of it.
type saved interface{ carry(c *codec) }

func (j *Judgement) carry(c *codec) {
	small(c, &j.Said, SaidExplained)
	c.floats(&j.Value, &j.Start, &j.End, &j.Rise, &j.Relative, &j.SlopePerBatch, &j.Limit, &j.EtaMs, &j.EtaLowMs, &j.EtaHighMs, &j.Period)
	c.whole(&j.Points)
	c.whole(&j.Count)
	c.ints(&j.SpanMs, &j.Since)
	c.str(&j.How)
	c.str(&j.Why)
	c.str(&j.Text)
	c.Bool(&j.OnClock)
}

// whole carries a number of either sign.
func (c *codec) whole(n *int) {
	x := int64(*n)
	c.Int(&x)
	*n = int(x)
}

func (s *steadyClock) carry(c *codec) {
	c.ints(&s.batch, &s.atMs, &s.elapsedMs)
	c.Bool(&s.started)
}

// carry carries points as distances, and figures column by column.
func (h *history) carry(c *codec) {
	all := len(h.batch)
	c.Count(&all, h.limit+maxStep)
	c.Count(&h.n, h.limit)
	c.Count(&h.step, maxStep)
	c.Int(&h.base)
	h.clock.carry(c)
	counted := h.count != nil
	c.Bool(&counted)
	if !c.writing {
		if h.n > all || h.step == 0 || all-h.n >= h.step || 4*all*h.columns > len(c.buf) {
			c.Fail("a history of %d points, %d of them closed, in steps of %d", all, h.n, h.step)
			return
		}
		h.hold(all, counted)
	}
	carryRising(c, h.batch)
	carryRising(c, h.at)
	for i := range h.count {
		n := int(h.count[i])
		c.Count(&n, math.MaxUint16)
		h.count[i] = uint16(n)
	}
	h.carryValues(c)
}

// hold makes room for so many points, as grow would have.
func (h *history) hold(n int, counted bool) {
	room := 0
	for room < n {
		room += max(min(max(room, 16), h.limit-room), h.step)
	}
	h.batch, h.at, h.values = make([]uint32, n, room), make([]uint32, n, room), make([]float32, n*h.columns, room*h.columns)
	if counted {
		h.count = make([]uint16, n, room)
	}
}

// carryRising carries numbers that hardly ever fall.
func carryRising(c *codec, v []uint32) {
	before := int64(0)
	for i := range v {
		step := int64(v[i]) - before
		c.Int(&step)
		before += step
		v[i] = uint32(before)
	}
}

func (h *history) carryValues(c *codec) {
	points := len(h.batch)
	column := make([]float32, points)
	for k := range h.columns {
		for i := range column {
			column[i] = h.values[i*h.columns+k]
		}
		c.Singles(column)
		for i := range column {
			h.values[i*h.columns+k] = column[i]
		}
	}
}

func (f *frozen) carry(c *codec) {
	points := len(f.values) / f.columns
	c.Count(&points, baselinePoints+maxStep)
	if !c.writing {
		if 4*points*f.columns > len(c.buf) {
			c.short()
			return
		}
		f.values = make([]float32, points*f.columns)
	}
	c.counts(&f.batches)
	c.Int(&f.spanMs)
	c.Bool(&f.rare)
	h := history{columns: f.columns, values: f.values, batch: make([]uint32, points)}
	h.carryValues(c)
}

func (t *risingTracker) carry(c *codec) {
	c.ints(&t.looked, &t.agreedAt)
	c.Float(&t.value)
	c.Bool(&t.old)
	small(c, &t.agrees, SaidExplained)
	if present(c, &t.leveled) {
		t.leveled.carry(c)
	}
	w := &t.short
	watched := w.moves == w.column.moves
	if c.Bool(&watched); !watched {
		return
	}
	if !c.writing && c.err == nil {
		w.watch()
	}
	w.pace.Carry(c)
}

func (t *reachesTracker) carry(c *codec) {
	c.Float(&t.limit)
	c.Int(&t.atMs)
	if t.day != nil {
		t.day.carry(c)
	}
}

func (d *dailyCycle) carry(c *codec) {
	c.Singles(d.level[:])
	for i := range d.days {
		small(c, &d.days[i], math.MaxUint8)
	}
	c.Int(&d.hour)
	c.counts(&d.n)
	c.floats(&d.sum, &d.last)
	if d.hour < 0 {
		c.Fail("an hour before 1970")
	}
}

func (t *shiftedTracker) carry(c *codec) {
	if present(c, &t.base) {
		t.base.columns = t.d.columns()
		t.base.carry(c)
	}
	if learning := t.next != nil; carried(c, &learning) {
		if !c.writing {
			t.next = t.d.newBaseline()
		}
		t.next.carry(c)
	}
	t.recent.carry(c)
	t.cusum.Carry(c)
	c.counts(&t.age, &t.quiet, &t.alarms)
	c.Bool(&t.broken)
	c.Float(&t.version)
}

func (t *spikingTracker) carry(c *codec) {
	t.fine.carry(c)
	if long := t.coarse != nil; carried(c, &long) {
		if !c.writing {
			t.coarse = t.d.newCoarse()
		}
		t.coarse.carry(c)
	}
}

// carried carries a truth and returns it.
func carried(c *codec, x *bool) bool {
	c.Bool(x)
	return *x
}

func (t *followsTracker) carry(c *codec) { t.past.carry(c) }

func (t *standsTracker) carry(c *codec) {
	t.clock.carry(c)
	c.floats(&t.value, &t.other)
	c.Bool(&t.changed)
	c.counts(&t.seen, &t.same, &t.known, &t.moved, &t.longest)
	c.ints(&t.since, &t.sinceMs, &t.longestMs)
}

func (t *aboveTracker) carry(c *codec) {
	t.clock.carry(c)
	c.counts(&t.seen)
	c.unsigned(&t.over)
	c.unsigned(&t.beyond)
	c.floats(&t.limit, &t.usual)
	c.bools(&t.anyUsual, &t.high, &t.blind, &t.thin)
	c.Int(&t.since)
	for i := range t.newest[:min(t.seen, len(t.newest))] {
		c.Int(&t.newest[i].batch)
		c.Float(&t.newest[i].value)
	}
	if bits.Len64(t.over|t.beyond) > min(t.seen, len(t.newest)) {
		c.Fail("more batches beyond the limit than are watched")
	}
	if t.pool != nil {
		t.pool.carry(c)
	}
}

func (p *pool) carry(c *codec) {
	c.counts(&p.seen)
	for i := range p.ring[:min(p.seen, len(p.ring))] {
		pair := [2]float32{p.ring[i].value, p.ring[i].weight}
		c.Singles(pair[:])
		p.ring[i] = weighed{pair[0], pair[1]}
	}
}

// carry carries an alert in its life.
func (a *liveAlert) carry(c *codec) {
	small(c, &a.state, Firing)
	carryLabels(c, &a.labels)
	a.finding.carry(c)
	n := len(a.before)
	c.items(&n)
	if !c.writing && n > 0 {
		a.before = make([]float64, n)
	}
	for i := range a.before {
		c.Float(&a.before[i])
	}
	c.counts(&a.found, &a.clear, &a.total)
	c.ints(&a.foundAt, &a.clearAt, &a.pendingAtMs, &a.firingAtMs, &a.firstBatch, &a.firingBatch, &a.judgedLast)
	c.str(&a.inhibitedBy)
	c.str(&a.raised)
	n = len(a.members)
	c.items(&n)
	if !c.writing && n > 0 {
		a.members = make([]string, n)
	}
	for i := range a.members {
		c.str(&a.members[i])
	}
	if a.state != Pending && a.state != Firing {
		c.Fail("an alert that is neither pending nor firing")
	}
}
