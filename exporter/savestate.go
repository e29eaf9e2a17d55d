package exporter

import (
	"errors"
	"hash/crc32"
	"math"

	"github.com/stategauge/stategauge/event"
)

// maxSavedLabels bounds the labels of a carrier's that are read.
const maxSavedLabels = 256

// visit carries what is the query's own, without its objects and series.
func (q *query) visit(c *saver) {
	saveString(c, &q.key)
	c.str(&q.identity.name)
	c.str(&q.identity.application)
	c.str(&q.identity.cluster)
	n := len(q.identity.extra)
	if c.length(&n, maxSavedLabels); !c.writing && n > 0 {
		q.identity.extra = make([]event.Label, n)
	}
	for i := range q.identity.extra {
		c.str(&q.identity.extra[i].Name)
		c.str(&q.identity.extra[i].Value)
	}
	state := uint8(q.state)
	if c.byte(&state); event.State(state) > event.StateRetired {
		c.fail(errors.New("an unknown state"))
	}
	if !c.writing {
		q.state = event.State(state)
	}
	c.bools(&q.retired, &q.begun, &q.ran)
	c.ints(&q.retiredAtMs, &q.lastMs, &q.batchMs, &q.bornMs, &q.newest, &q.newestMs)
	c.uint(&q.gen)
	saveString(c, &q.run)
	c.int(&q.runFirst)
	q.known.visit(c)
	saveTri(c, &q.inferred)
	q.infoKey.visit(c)
}

func (k *known) visit(c *saver) {
	c.str(&k.told)
	for _, v := range []*uint16{&k.version.Major, &k.version.Minor, &k.version.Patch} {
		n := uint64(*v)
		if c.uint(&n); n > math.MaxUint16 {
			c.fail(errors.New("an impossible version of Spark"))
		}
		if !c.writing {
			*v = uint16(n)
		}
	}
	c.str(&k.provider)
	saveTri(c, &k.changelog, &k.bounded, &k.tracked, &k.reset)
}

func (k *infoKey) visit(c *saver) {
	for _, s := range []*string{&k.version, &k.provider, &k.changelog, &k.bounded, &k.trigger} {
		c.str(s)
	}
}

func (o *savedOperator) visit(c *saver, p *plan) {
	index := int64(o.key.index)
	c.int(&index)
	o.key.index = int(index)
	c.str(&o.key.name)
	c.int(&o.lastMs)
	if !c.writing {
		o.state = &operatorState{}
	}
	s := o.state
	c.uint(&s.gen)
	saveTri(c, &s.tracked)
	s.visitPrev(c)
	s.sticky.visit(c, p)
}

// visitPrev carries the figures that only grow, by their ids.
func (s *operatorState) visitPrev(c *saver) {
	v := &event.Vector{}
	v.Clear()
	if s.prev != nil {
		v = s.prev
	}
	if n := visitRows(c, v); n > 0 && !c.writing {
		s.prev = v
	}
}

// visitRows carries the figures that v has by the ids of their rows, and returns how
// many there are. Rows that this program does not have are left out.
func visitRows(c *saver, v *event.Vector) int {
	n := 0
	for _, x := range v {
		if x == x {
			n++
		}
	}
	if c.length(&n, 2*event.NumMetrics); c.writing {
		for i, x := range v {
			if id := uint64(i); x == x {
				c.uint(&id)
				c.number(&x)
			}
		}
		return n
	}
	for range n {
		var id uint64
		var x float64
		c.uint(&id)
		if c.number(&x); id < event.NumMetrics {
			v[id] = x
		}
	}
	return n
}

func (s *sticky) visit(c *saver, p *plan) {
	c.bools(&s.uploadSeen, &s.slowSeen, &s.pending, &s.uploaded, &s.rebase)
	compared, changed := int64(s.compared), int64(s.changed)
	if c.ints(&compared, &changed); !c.writing {
		s.compared, s.changed = int(compared), int(changed)
	}
	saveTri(c, &s.told)
	visitRepeated(c, &s.upload, p.sticky, s.uploadSeen)
	visitRepeated(c, &s.slow, p.slow, s.slowSeen)
}

// visitRepeated carries the figures that stood in the newest batch. A row that the
// program saving it did not have counts as absent.
func visitRepeated(c *saver, vals *[maxSticky]float64, rows []event.MetricID, seen bool) {
	if !seen {
		return
	}
	var have event.Vector
	have.Clear()
	for i, id := range rows {
		if c.writing {
			have[id] = vals[i]
		}
	}
	if visitRows(c, &have); c.writing {
		return
	}
	for i, id := range rows {
		if vals[i] = -1; have.Has(id) {
			vals[i] = have[id]
		}
	}
}

// visit carries a histogram's content. The bounds of its classic buckets stand
// before it by a mark; see fit for what happens when a program has others.
func (h *hist) visit(c *saver) {
	mark := uint64(0)
	if c.writing {
		mark = h.family.boundsMark()
	}
	if c.uint(&mark); !c.writing {
		h.boundsMark = mark
	}
	c.number(&h.sum)
	c.uint(&h.count)
	c.uint(&h.zeros)
	h.visitBuckets(c)
	h.visitNative(c)
	if !c.writing && c.err == nil && !h.adds() {
		c.fail(errors.New("a histogram whose buckets do not add up"))
	}
}

// boundsMark tells sets of bounds apart.
func (f *family) boundsMark() uint64 {
	c := saver{writing: true}
	for _, b := range f.bounds {
		c.bits(&b)
	}
	return uint64(crc32.ChecksumIEEE(c.buf))
}

func (h *hist) visitBuckets(c *saver) {
	for i := range h.counts {
		e := &h.exemplars[i]
		c.uint(&h.counts[i])
		if h.counts[i] == 0 {
			continue // no exemplar without an observation
		}
		if c.bools(&e.set); e.set {
			c.ints(&e.batch, &e.atMs)
			c.number(&e.value)
		}
	}
}

func (h *hist) visitNative(c *saver) {
	n := len(h.native)
	if c.length(&n, maxNative); !c.writing {
		h.native = make([]nativeBucket, n)
	}
	was := int64(-maxNativeIndex - 1)
	for i := range h.native {
		b := &h.native[i]
		step := uint64(int64(b.index) - was)
		if c.uint(&step); step == 0 || step > uint64(maxNativeIndex-was) {
			c.fail(errors.New("impossible native buckets"))
			return
		}
		if was += int64(step); !c.writing {
			b.index = int32(was)
		}
		c.uint(&b.count)
	}
}

// Native buckets span the doubles: 2^3 for each of some 2,100 exponents.
const (
	maxNativeIndex = 1100 * 8
	maxNative      = 2*maxNativeIndex + 1
)

// adds reports whether both forms of the buckets hold all observations.
func (h *hist) adds() bool {
	classic, native := uint64(0), h.zeros
	for _, n := range h.counts {
		if classic+n < classic {
			return false
		}
		classic += n
	}
	for _, b := range h.native {
		if native+b.count < native {
			return false
		}
		native += b.count
	}
	return classic == h.count && native == h.count && h.sum-h.sum == 0
}

// fit makes h a histogram of f. Where f has other bounds than what was saved, the
// classic buckets are filled from the native ones, each of them 9 % wide, and the
// exemplars are given up.
func (h *hist) fit(f *family) {
	h.family = f
	if h.boundsMark == f.boundsMark() {
		return
	}
	h.counts, h.exemplars = [maxBuckets]uint64{}, [maxBuckets]exemplar{}
	h.counts[0] = h.zeros
	for _, b := range h.native {
		h.counts[f.bucketOf(nativeUpper(b.index)*f.scale.div)] += b.count
	}
}

// nativeUpper returns the upper bound of a native bucket, in exported units.
func nativeUpper(index int32) float64 {
	n := int32(len(nativeBounds))
	exp := index / n
	if index%n < 0 {
		exp--
	}
	return math.Ldexp(nativeBounds[index-exp*n], int(exp)+1)
}
