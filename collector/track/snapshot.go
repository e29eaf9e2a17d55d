package track

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
)

const snapshotMagic = "sgtrack"

// Snapshot appends everything the Tracker knows to dst, in a versioned form that
// Restore and Adopt read. The Config, the Filter and the Senders are not part of it.
func (t *Tracker) Snapshot(dst []byte) []byte {
	return sealForm(dst, snapshotMagic, func(c *codec) {
		n := len(t.order)
		// The newest tick tells the first one after a restart how long nobody listened.
		c.int(&t.tickMs)
		c.length(&n)
		for _, q := range t.order {
			c.query(q, &t.c)
		}
	})
}

// query writes q behind its length, so that a reader who wants others need not
// build it.
func (c *codec) query(q *query, conf *Config) {
	at := len(c.buf)
	c.buf = append(c.buf, 0, 0, 0, 0)
	q.visit(c, conf)
	binary.LittleEndian.PutUint32(c.buf[at:], uint32(len(c.buf)-at-4))
}

// Restore replaces what the Tracker knows by a snapshot. The time until the next
// tick counts as a pause of our own where it is Config.TickGapMs or more. After an
// error the Tracker is as it was. Queries beyond the configured limit are an error.
//
// Old forms are read; one of a newer version is an error.
func (t *Tracker) Restore(b []byte) error {
	r := New(t.c, t.filter)
	if err := r.adoptFrom(b, nil); err != nil {
		return fmt.Errorf("restore tracker: %w", err)
	}
	for _, q := range t.order {
		t.c.Names.take(q.ref)
	}
	for _, q := range r.order { // those that stood in t too are back
		t.c.Names.give(q.ref, q.firstMs)
	}
	*t = *r
	return nil
}

// Adopt takes those queries out of a snapshot that mine says are this Tracker's
// (nil: all), and keeps what it knows. So state that some number of Trackers saved
// can be loaded by another number of them: each adopts from every snapshot. Queries
// stand in the order of the snapshots, and the names they share are looked at across
// all of them.
//
// An id that the Tracker knows already, and queries beyond the configured limit, are
// errors. After an error the Tracker is as it was.
func (t *Tracker) Adopt(b []byte, mine func(event.QueryID) bool) error {
	if err := t.adoptFrom(b, mine); err != nil {
		return fmt.Errorf("adopt tracker snapshot: %w", err)
	}
	return nil
}

func (t *Tracker) adoptFrom(b []byte, mine func(event.QueryID) bool) error {
	c, err := openForm(b, snapshotMagic, "tracker snapshot")
	if err != nil {
		return err
	}
	tickMs := int64(event.Absent)
	c.int(&tickMs)
	found, err := t.readQueries(&c, mine)
	if err != nil {
		return err
	}
	t.meet(tickMs, found)
	for _, q := range found {
		t.order, t.byID[q.ref.ID] = append(t.order, q), q
		t.file(q, q.ref)
		t.configure(q)
	}
	return nil
}

func (t *Tracker) readQueries(c *codec, mine func(event.QueryID) bool) ([]*query, error) {
	n, seen := 0, map[event.QueryID]bool{}
	var found []*query
	for c.length(&n); n > 0 && c.err == nil; n-- {
		q := t.readQuery(c, mine)
		if q == nil {
			continue
		}
		switch {
		case q.ref.ID == "":
			c.fail(errors.New("query id missing"))
		case seen[q.ref.ID] || t.byID[q.ref.ID] != nil:
			c.fail(fmt.Errorf("query %q is known already", q.ref.ID))
		case len(t.order)+len(found) >= t.c.Queries:
			c.fail(fmt.Errorf("%d queries are kept: %w", t.c.Queries, errTooMany))
		}
		seen[q.ref.ID] = true
		found = append(found, q)
	}
	if c.err != nil {
		return nil, fmt.Errorf("query %d: %w", len(seen), c.err)
	}
	if len(c.buf) != 0 {
		return nil, fmt.Errorf("%d %w", len(c.buf), errLeft)
	}
	return found, nil
}

// readQuery returns nil for a query that is not wanted, and on an error.
func (t *Tracker) readQuery(c *codec, mine func(event.QueryID) bool) *query {
	q := newQuery(event.QueryRef{}, 0)
	if c.version < 2 {
		q.visit(c, &t.c)
	} else if !c.queryPart(q, &t.c, mine) {
		return nil
	}
	if c.err != nil || mine != nil && !mine(q.ref.ID) {
		return nil
	}
	return q
}

// queryPart reads a query that stands behind its length; false if it is not wanted.
func (c *codec) queryPart(q *query, conf *Config, mine func(event.QueryID) bool) bool {
	head := c.buf
	if !c.take(4) {
		return false
	}
	n := binary.LittleEndian.Uint32(head)
	if uint64(n) > uint64(len(c.buf)) {
		c.fail(errCut)
		return false
	}
	part := codec{buf: c.buf[:n], version: c.version}
	c.buf = c.buf[n:]
	id := part // the id stands first
	if visitString(&id, &q.ref.ID); mine != nil && id.err == nil && !mine(q.ref.ID) {
		return false
	}
	if q.visit(&part, conf); part.err == nil && len(part.buf) > 0 {
		part.err = errLeft
	}
	if part.err != nil {
		c.fail(part.err)
	}
	return part.err == nil
}

// meet brings the clocks of what is known and of what comes together: who was not
// looked at for long must not be taken for silent.
func (t *Tracker) meet(tickMs int64, found []*query) {
	switch {
	case tickMs == event.Absent:
	case t.tickMs == event.Absent || tickMs > t.tickMs:
		t.stoodStill(t.order, t.tickMs, tickMs)
		t.tickMs = tickMs
	default:
		t.stoodStill(found, tickMs, t.tickMs)
	}
}

func (q *query) visit(c *codec, conf *Config) {
	visitString(c, &q.ref.ID)
	c.str(&q.ref.Name)
	c.str(&q.ref.Application)
	visitByte(c, &q.state)
	c.ints(&q.firstMs, &q.lastMs, &q.seenMs, &q.aliveMs, &q.heartbeatMs, &q.lifeMs)
	c.ints(&q.runs, &q.batches, &q.duplicates, &q.late, &q.missed, &q.reexecuted, &q.idle, &q.lostSeen)
	visitString(c, &q.turnRun)
	c.int(&q.turnMs)
	c.byte(&q.turns)
	c.byte(&q.turnLeft)
	c.byte(&q.shorts)
	c.byte(&q.strikes)
	c.bools(&q.triggerActive, &q.manyOf)
	if c.version >= 2 {
		c.bools(&q.handed)
	}
	c.float(&q.usualMs)
	q.gaps.visit(c)
	q.beats.visit(c)
	q.began.visit(c)
	q.inferred.visit(c)
	q.told.visit(c)
	q.dropped.visit(c)
	q.visitRuns(c, conf)
}

func (g *ghosts) visit(c *codec) {
	c.limit(&g.next, len(g.hash)-1)
	for i := range g.hash {
		c.int(&g.hash[i])
	}
}

// visitRuns carries the current run and the earlier ones, as many as are kept.
func (q *query) visitRuns(c *codec, conf *Config) {
	if q.cur == nil {
		q.cur = newRun(conf)
	}
	q.cur.visit(c, conf)
	n := len(q.earlier)
	for c.length(&n); len(q.earlier) < n && c.err == nil; {
		r := newRun(conf)
		r.visit(c, conf)
		q.earlier = append(q.earlier, r)
	}
	if c.writing {
		for _, r := range q.earlier {
			r.visit(c, conf)
		}
	}
	for n := conf.RunsKept; len(q.earlier) > n; { // fewer are kept now than when it was saved
		q.dropped.add(q.earlier[len(q.earlier)-1].id)
		q.earlier = q.earlier[:len(q.earlier)-1]
	}
}

func newRun(conf *Config) *run {
	r := &run{win: newWindow(conf.WindowBatches)}
	r.reset("", event.Absent, event.Absent)
	return r
}

func (r *run) visit(c *codec, conf *Config) {
	visitString(c, &r.id)
	c.ints(&r.startMs, &r.newestMs, &r.endMs, &r.executed, &r.previous)
	c.ints(&r.base, &r.settled, &r.acrossTo, &r.holeMs, &r.holeTo, &r.filled, &r.carried)
	c.bools(&r.holeSender, &r.started, &r.ended, &r.failed, &r.idleSeen)
	if c.version >= 2 {
		c.ints(&r.passFrom, &r.passTo)
		c.bools(&r.handed)
	}
	r.win.visit(c, conf)
	r.unnamed.visit(c, batchStamps)
	r.idles.visit(c, idleStamps)
	why := r.failure != nil
	if c.bools(&why); !why {
		return
	}
	if !c.writing {
		r.failure = &event.Failure{}
	}
	c.str(&r.failure.Class)
	c.str(&r.failure.Message)
}

// visit carries the window; one of another size than configured is taken over as
// far as it fits.
func (w *window) visit(c *codec, conf *Config) {
	words := len(w.bits)
	newest := w.newest
	c.int(&newest)
	if c.length(&words); c.writing {
		c.words(w.bits)
		return
	}
	if words > maxWindow/64 {
		c.fail(errTooMany)
		return
	}
	old := window{bits: make([]uint64, words), newest: newest}
	c.words(old.bits)
	if newest != event.Absent && (newest < 0 || newest > maxBatch || words == 0) {
		c.fail(errors.New("impossible batch id"))
	}
	if c.err != nil || words == conf.WindowBatches/64 {
		*w = old
		return
	}
	*w = old.resized(conf.WindowBatches)
}

func (w *window) resized(batches int) window {
	to := newWindow(batches)
	if w.newest == event.Absent {
		return to
	}
	for id := max(0, w.newest-min(w.size(), to.size())+1); id <= w.newest; id++ {
		if w.has(id) {
			to.mark(id)
		}
	}
	return to
}

func (s *stamps) visit(c *codec, most int) {
	n := len(s.at)
	if c.length(&n); n > most {
		c.fail(errTooMany)
		return
	}
	if !c.writing {
		s.at = make([]int64, n)
	}
	for i := range s.at {
		c.int(&s.at[i])
	}
}

func (s *spacing) visit(c *codec) {
	c.limit(&s.n, memory)
	c.limit(&s.next, memory-1)
	for i := range s.n {
		v := int64(s.ring[i]) // whole milliseconds
		if c.version < 2 {
			f := float64(s.ring[i])
			c.float(&f)
			v = int64(f)
		} else {
			c.int(&v)
		}
		s.ring[i] = float32(v)
	}
}

func (b *beats) visit(c *codec) {
	c.limit(&b.n, memory)
	c.limit(&b.next, memory-1)
	prev := int64(0)
	for i := range b.n {
		x := &b.ring[i]
		dur := int64(x.durMs)
		if c.version < 2 {
			prev = 0
		}
		c.delta(&x.startMs, &prev)
		c.int(&dur)
		x.durMs = int32(dur)
		visitByte(c, &x.flags)
	}
}

func (s *starts) visit(c *codec) {
	c.limit(&s.n, len(s.at))
	for i := range s.n {
		c.int(&s.at[i])
	}
}

func (t *trigger) visit(c *codec) {
	visitByte(c, &t.kind)
	c.float(&t.intervalMs)
}
