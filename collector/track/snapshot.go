package track

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/stategauge/stategauge/event"
)

// snapshotVersion changes whenever what visit writes changes.
const snapshotVersion = 1

const snapshotMagic = "sgtrack"

var (
	errCut     = errors.New("cut off")
	errTooMany = errors.New("more than there is room for")
)

// Snapshot appends everything the Tracker knows to dst, in a versioned form that
// Restore reads. The Config and the Filter are not part of it.
func (t *Tracker) Snapshot(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, snapshotMagic...)
	c := codec{buf: append(dst, snapshotVersion), writing: true}
	n := len(t.order)
	// The newest tick tells Restore's first one how long nobody listened.
	c.int(&t.tickMs)
	c.length(&n)
	for _, q := range t.order {
		q.visit(&c, &t.c)
	}
	return binary.LittleEndian.AppendUint32(c.buf, crc32.ChecksumIEEE(c.buf[from:]))
}

// Restore replaces what the Tracker knows by a snapshot. The time until the next
// tick counts as a pause of our own where it is Config.TickGapMs or more. After an error the
// Tracker is as it was. Queries beyond the configured limit are an error.
func (t *Tracker) Restore(b []byte) error {
	body, err := openSnapshot(b)
	if err != nil {
		return fmt.Errorf("restore tracker: %w", err)
	}
	c := codec{buf: body}
	var n int
	r := New(t.c, t.filter)
	c.int(&r.tickMs)
	if c.length(&n); n > t.c.Queries {
		return fmt.Errorf("restore tracker: %d queries: %w", n, errTooMany)
	}
	for i := range n {
		q := newQuery(event.QueryRef{}, 0)
		q.visit(&c, &t.c)
		if c.err == nil && (q.ref.ID == "" || r.byID[q.ref.ID] != nil) {
			c.err = errors.New("query id missing or repeated")
		}
		if c.err != nil {
			return fmt.Errorf("restore tracker: query %d: %w", i, c.err)
		}
		r.order, r.byID[q.ref.ID] = append(r.order, q), q
		r.name(q)
		r.configure(q)
	}
	if len(c.buf) != 0 {
		return fmt.Errorf("restore tracker: %d bytes too many", len(c.buf))
	}
	*t = *r
	return nil
}

func openSnapshot(b []byte) ([]byte, error) {
	const head = len(snapshotMagic) + 1
	if len(b) < head+4 {
		return nil, errCut
	}
	end := len(b) - 4
	if string(b[:len(snapshotMagic)]) != snapshotMagic {
		return nil, errors.New("not a tracker snapshot")
	}
	if v := b[head-1]; v != snapshotVersion {
		return nil, fmt.Errorf("version %d, this program reads %d", v, snapshotVersion)
	}
	if binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return nil, errors.New("checksum does not match")
	}
	return b[head:end], nil
}

// codec writes values to buf, or reads them from its front: one list of fields
// serves both directions. The first error sticks.
type codec struct {
	buf     []byte
	writing bool
	err     error
}

func (c *codec) int(v *int64) {
	if c.writing {
		c.buf = binary.AppendVarint(c.buf, *v)
		return
	}
	got, n := binary.Varint(c.buf)
	if c.take(n) {
		*v = got
	}
}

func (c *codec) ints(vs ...*int64) {
	for _, v := range vs {
		c.int(v)
	}
}

// take moves on by n bytes; n < 1 is an error of the varint reader.
func (c *codec) take(n int) bool {
	if n < 1 || n > len(c.buf) {
		c.fail(errCut)
		return false
	}
	c.buf = c.buf[n:]
	return c.err == nil
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.buf = nil
}

// length carries the length of a list; one that the rest cannot hold is refused.
func (c *codec) length(n *int) {
	v := int64(*n)
	if c.int(&v); !c.writing && (v < 0 || v > int64(len(c.buf))) {
		c.fail(errTooMany)
		v = 0
	}
	*n = int(v)
}

func (c *codec) str(s *string) {
	n := len(*s)
	c.length(&n)
	if c.writing {
		c.buf = append(c.buf, *s...)
		return
	}
	if *s = ""; n > 0 {
		*s = string(c.buf[:n])
		c.buf = c.buf[n:]
	}
}

func (c *codec) float(v *float64) {
	if c.writing {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(*v))
		return
	}
	if b := c.buf; c.take(8) {
		*v = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
}

func (c *codec) byte(v *uint8) {
	if c.writing {
		c.buf = append(c.buf, *v)
		return
	}
	if b := c.buf; c.take(1) {
		*v = b[0]
	}
}

func (c *codec) bools(vs ...*bool) {
	for _, v := range vs {
		var b uint8
		if *v {
			b = 1
		}
		c.byte(&b)
		*v = b != 0
	}
}

func (c *codec) limit(v *uint8, most int) {
	if c.byte(v); int(*v) > most {
		c.fail(errTooMany)
		*v = 0
	}
}

func visitString[T ~string](c *codec, v *T) {
	s := string(*v)
	c.str(&s)
	*v = T(s)
}

func visitByte[T ~uint8](c *codec, v *T) {
	b := uint8(*v)
	c.byte(&b)
	*v = T(b)
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
	q.earlier = q.earlier[:min(len(q.earlier), conf.RunsKept)]
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
		for _, v := range w.bits {
			c.buf = binary.LittleEndian.AppendUint64(c.buf, v)
		}
		return
	}
	old := window{bits: make([]uint64, words), newest: newest}
	for i := range old.bits {
		if b := c.buf; c.take(8) {
			old.bits[i] = binary.LittleEndian.Uint64(b)
		}
	}
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
		v := float64(s.ring[i])
		c.float(&v)
		s.ring[i] = float32(v)
	}
}

func (b *beats) visit(c *codec) {
	c.limit(&b.n, memory)
	c.limit(&b.next, memory-1)
	for i := range b.n {
		x := &b.ring[i]
		dur := int64(x.durMs)
		c.ints(&x.startMs, &dur)
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
