package rules

import (
	"fmt"
	"math"

	"github.com/stategauge/stategauge/event"
)

const (
	// shapeBatches is how many batches running must agree on a shape.
	shapeBatches = 3
	// maxShapes is how many operators of a query are compared.
	maxShapes = 16
	// rowsAlike is how far the rows in state may be from the factor that stores have
	// grown by.
	rowsAlike = 0.3
)

// shape follows how many partitions and stores the operators of a query have.
type shape struct {
	known, seen []operatorShape // the shape that is expected, and another one that is there now
	run         event.RunID     // that the known one was last seen in
	times       int             // batches running that seen was there
}

type operatorShape struct {
	name                        string
	partitions, instances, rows float64
}

// same compares all but the rows.
func (o *operatorShape) same(p *operatorShape) bool {
	return o.name == p.name && o.partitions == p.partitions && o.instances == p.instances
}

func sameShapes(a, b []operatorShape) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].same(&b[i]) {
			return false
		}
	}
	return true
}

// shapeOf describes a batch's operators; false where they do not say.
func shapeOf(b *event.Batch, buf *[maxShapes]operatorShape) ([]operatorShape, bool) {
	out := buf[:0]
	for i := range b.Operators[:min(len(b.Operators), maxShapes)] {
		o := &b.Operators[i]
		x := operatorShape{o.Name, o.Values[event.NumShufflePartitions], o.Values[event.NumStateStoreInstances], o.Values[event.NumRowsTotal]}
		if !(x.partitions > 0) || !(x.instances > 0) {
			return nil, false
		}
		out = append(out, x)
	}
	return out, len(out) > 0
}

// push compares the batch with what is known, and notes what changed once a few
// batches running agree.
func (s *story) pushShape(b *event.Batch, at, position int64) {
	var buf [maxShapes]operatorShape
	p := &s.shape
	now, ok := shapeOf(b, &buf)
	if !ok {
		return
	}
	if sameShapes(now, p.known) {
		copy(p.known, now)
		p.run, p.times = s.run, 0
		s.changes.standing[changeInstances] = false
		return
	}
	if !sameShapes(now, p.seen) {
		p.times = 0
	}
	p.seen = append(p.seen[:0], now...)
	if p.times++; p.times < shapeBatches {
		return
	}
	if len(p.known) > 0 && s.compareShapes(at, position-shapeBatches+1) {
		return
	}
	p.known, p.run, p.times = append(p.known[:0], p.seen...), s.run, 0
	s.changes.standing[changeInstances] = false
}

// compareShapes judges a shape that stays. It reports true where the known one
// goes on to be what is expected.
func (s *story) compareShapes(at, position int64) (keeps bool) {
	p := &s.shape
	if len(p.known) != len(p.seen) {
		return false
	}
	for i := range p.known {
		if p.known[i].name != p.seen[i].name {
			return false
		}
	}
	if k := p.multiple(s.run == p.run); k > 1 {
		if !s.changes.standing[changeInstances] {
			s.note(changeInstances, occurrence{atMs: at, batch: position, count: k, text: fmt.Sprintf("%g times", k), why: fmt.Sprintf(
				"%s has %g stores where %g are expected: each batch evaluates its state %g times", p.seen[0].name, p.seen[0].instances, p.known[0].instances, k)})
		}
		s.changes.standing[changeInstances] = true
		return true
	}
	if s.run != p.run && p.oneFactor() {
		a, b := p.known[0].partitions, p.seen[0].partitions
		s.note(changePartitions, occurrence{atMs: at, batch: position, count: b, text: fmt.Sprintf("%g to %g", a, b), why: fmt.Sprintf(
			"the new run has %g partitions, the one before had %g", b, a)})
	}
	return false
}

// multiple returns the whole number that the stores of the operators have been
// multiplied by, 0 where they have not. Within a run no setting can do that; at a
// change of run the rows in state must have grown as much, for new partitions
// share the rows that are there.
func (p *shape) multiple(sameRun bool) float64 {
	most := 0.0
	for i := range p.known {
		a, b := &p.known[i], &p.seen[i]
		k := b.instances / a.instances
		if k < 2 || math.Abs(k-math.Round(k)) > 0.001 {
			continue
		}
		if !sameRun && !(math.Abs(b.rows/a.rows-k) <= rowsAlike*k) {
			continue
		}
		most = max(most, math.Round(k))
	}
	return most
}

// oneFactor reports whether the partitions and stores of all operators changed by
// one factor.
func (p *shape) oneFactor() bool {
	k := p.seen[0].partitions / p.known[0].partitions
	for i := range p.known {
		a, b := &p.known[i], &p.seen[i]
		if b.partitions/a.partitions != k || b.instances/a.instances != k {
			return false
		}
	}
	return k != 1
}
