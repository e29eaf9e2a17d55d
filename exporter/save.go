package exporter

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

const savedMagic = "sgseries"

// savedVersion changes whenever what is written changes.
const savedVersion = 1

// saved is what is saved of a query: its private state, its objects and its series
// in the order in which they began.
type saved struct {
	q       *query
	ops     []savedOperator
	sources []int64 // when a batch named each last
	unknown bool    // rows that no source accounts for were counted
	series  []savedSeries
	hists   []savedHist
}

type savedOperator struct {
	key    operatorKey
	lastMs int64
	state  *operatorState
}

// savedPlace says which series it is. Objects are numbered: the query, its
// operators, its sources and the unaccounted rows.
type savedPlace struct {
	object int
	bornMs int64 // when a counter was 0; 0 if not known
	key    savedKey
}

type savedSeries struct {
	savedPlace
	counter bool
	value   float64
}

type savedHist struct {
	savedPlace
	h *hist
}

// SaveCounters appends to dst what LoadCounters needs to go on with the query's
// series: counters and histograms with the times at which they were 0, levels, and
// what the exporter remembers from batch to batch. An unknown query appends
// nothing. About 1 KiB for a query of one operator, and 0.5 KiB for each further one.
//
// It may be called while updates come in; it sees the query before one or after it.
func (x *Exporter) SaveCounters(id event.QueryID, dst []byte) []byte {
	q := x.find(id)
	if q == nil {
		return dst
	}
	q.owner.Lock()
	defer q.owner.Unlock()
	if q.gone {
		return dst
	}
	s := x.collectSaved(q)
	from := len(dst)
	dst = append(append(dst, savedMagic...), savedVersion)
	c := saver{buf: dst, writing: true}
	s.visit(&c, &x.plan)
	return binary.LittleEndian.AppendUint32(c.buf, crc32.ChecksumIEEE(c.buf[from:]))
}

// collectSaved lists what is to be saved of q. The caller owns q.
func (x *Exporter) collectSaved(q *query) *saved {
	s := &saved{q: q, unknown: q.unknown != nil}
	s.series, s.hists = make([]savedSeries, len(q.refs)), make([]savedHist, len(q.histRefs))
	s.own(x, 0, q.base)
	keys := slices.SortedFunc(maps.Keys(q.operators), compareOperators)
	for _, k := range keys {
		e := q.operators[k]
		s.ops = append(s.ops, savedOperator{k, e.lastMs, e.op})
		s.own(x, len(s.ops), e)
	}
	for _, e := range q.sources {
		s.sources = append(s.sources, e.lastMs)
		s.own(x, len(s.ops)+len(s.sources), e)
	}
	if s.unknown {
		s.own(x, len(s.ops)+len(s.sources)+1, q.unknown)
	}
	s.ownDynamic()
	x.mu.RLock()
	defer x.mu.RUnlock()
	for i := range s.series {
		at := q.refs[i]
		s.series[i].bornMs = at.bornMs()
		s.series[i].counter, s.series[i].value = at.family.kind == counter, q.next[i]
	}
	for i := range s.hists {
		s.hists[i].bornMs, s.hists[i].h = q.histRefs[i].bornMs(), q.hists[i]
	}
	return s
}

func compareOperators(a, b operatorKey) int {
	return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.name, b.name))
}

// bornMs returns when the series was 0, 0 if that is not known. The caller holds mu.
func (r ref) bornMs() int64 {
	if born := r.family.series[r.pos].born; born != nil {
		return born.ms
	}
	return 0
}

// own notes which series are those of an object.
func (s *saved) own(x *Exporter, object int, e *entity) {
	for d, at := range e.slots {
		if at <= 0 {
			continue
		}
		place := savedPlace{object: object, key: x.keyTable.keys[d]}
		if x.defs[d].family.kind == histogram {
			s.hists[at-1].savedPlace = place
			continue
		}
		s.series[at-1].savedPlace = place
	}
	if e.op == nil {
		return
	}
	for name, at := range e.op.unknown {
		s.series[at].savedPlace = savedPlace{object: object, key: savedKey{class: keyUnknown, name: name}}
	}
}

// ownDynamic notes which series are those with a label of Spark's or the user's.
func (s *saved) ownDynamic() {
	put := func(at int32, k savedKey) {
		if at >= 0 {
			s.series[at].key = k
		}
	}
	for name, p := range s.q.phases {
		put(p.total, savedKey{class: keyPhase, name: name})
		put(p.last, savedKey{class: keyLastPhase, name: name})
	}
	for k, at := range s.q.observed {
		put(int32(at), savedKey{class: keyObserved, name: k.name, column: k.column})
	}
	for k, at := range s.q.quantiles {
		put(int32(at), savedKey{class: keyQuantile, id: uint64(k.metric), quantile: k.quantile})
	}
}

// openSaved checks what SaveCounters wrote and returns its content.
func openSaved(b []byte) ([]byte, error) {
	const head = len(savedMagic) + 1
	if len(b) < head+4 {
		return nil, errCut
	}
	end := len(b) - 4
	if string(b[:len(savedMagic)]) != savedMagic {
		return nil, errors.New("not a query's series")
	}
	if v := b[head-1]; v != savedVersion {
		return nil, fmt.Errorf("version %d, this program reads %d", v, savedVersion)
	}
	if binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return nil, errors.New("checksum does not match")
	}
	return b[head:end], nil
}

// maxSavedSeries bounds what is read of one query, whatever its limit was.
const maxSavedSeries = 1 << 20

func (s *saved) visit(c *saver, p *plan) {
	s.q.visit(c)
	n := len(s.ops)
	if c.length(&n, maxObjects); !c.writing {
		s.ops = make([]savedOperator, n)
	}
	for i := range s.ops {
		s.ops[i].visit(c, p)
	}
	n = len(s.sources)
	if c.length(&n, maxObjects); !c.writing {
		s.sources = make([]int64, n)
	}
	for i := range s.sources {
		c.int(&s.sources[i])
	}
	c.bools(&s.unknown)
	s.visitSeries(c)
	s.visitHists(c)
}

// objects returns how many objects series may belong to.
func (s *saved) objects() int { return len(s.ops) + len(s.sources) + 2 }

func (s *saved) visitSeries(c *saver) {
	n := len(s.series)
	if c.length(&n, maxSavedSeries); !c.writing {
		s.series = make([]savedSeries, n)
	}
	at := savedPlace{}
	for i := range s.series {
		if s.series[i].visit(c, &at, s.objects()); c.err != nil {
			return
		}
	}
}

func (s *saved) visitHists(c *saver) {
	n := len(s.hists)
	if c.length(&n, maxSavedSeries); !c.writing {
		s.hists = make([]savedHist, n)
	}
	at := savedPlace{}
	for i := range s.hists {
		s.hists[i].visit(c, &at, s.objects())
		if !c.writing {
			s.hists[i].h = &hist{}
		}
		if s.hists[i].h.visit(c); c.err != nil {
			return
		}
	}
}

// Bits of the byte before each series: what differs from the series before.
const (
	markForm    = 3 // form of the number
	markCounter = 1 << 2
	markObject  = 1 << 3
	markBorn    = 1 << 4
)

func (s *savedSeries) visit(c *saver, at *savedPlace, objects int) {
	mark := formOfNumber(s.value)
	if s.counter {
		mark |= markCounter
	}
	s.visitPlace(c, &mark, at, objects)
	s.counter = mark&markCounter != 0
	c.form(mark&markForm, &s.value)
	if !c.writing && s.counter && !(s.value >= 0 && s.value <= math.MaxFloat64) && s.value == s.value {
		c.fail(errors.New("a counter that cannot be"))
	}
}

func (h *savedHist) visit(c *saver, at *savedPlace, objects int) {
	mark := uint8(0)
	h.visitPlace(c, &mark, at, objects)
}

// visitPlace carries mark, and what it says to be another than at.
func (p *savedPlace) visitPlace(c *saver, mark *uint8, at *savedPlace, objects int) {
	if c.writing && p.object != at.object {
		*mark |= markObject
	}
	if c.writing && p.bornMs != at.bornMs {
		*mark |= markBorn
	}
	c.byte(mark)
	if *mark&markObject != 0 {
		n := uint64(p.object)
		if c.uint(&n); n >= uint64(objects) {
			c.fail(errors.New("a series of nothing"))
			n = 0
		}
		at.object = int(n)
	}
	if *mark&markBorn != 0 {
		d := p.bornMs - at.bornMs
		c.int(&d)
		at.bornMs += d
	}
	p.object, p.bornMs = at.object, at.bornMs
	p.key.visit(c)
}
