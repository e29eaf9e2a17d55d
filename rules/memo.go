package rules

import "github.com/stategauge/stategauge/event"

// memo keeps what expressions came to for the present batch, so that one that several
// rules, guards and pieces of evidence share is evaluated once for the query and once
// for each operator, and only once where it looks at nothing of the operators.
// Memory: 24 bytes an expression and operator, for a whole engine.
type memo struct {
	width  int     // expressions of the pack, and one for those without a place
	places *places // of the pack
	stamp  uint64
	rows   []evaluated // by operator, the query's own first, then by expression
	row    []evaluated // of what is judged now
}

// evaluated is an expression's value for the batch that it was stamped at.
type evaluated struct {
	stamp     uint64
	value     float64
	plausible bool
}

// next begins a batch of so many operators.
func (m *memo) next(operators int) {
	m.stamp++
	if want := (operators + 1) * m.width; len(m.rows) < want {
		m.rows = make([]evaluated, want)
	}
	m.of(-1)
}

// of turns to an operator by its place in the batch, to the query where it is -1.
func (m *memo) of(operator int) { m.row = m.rows[(operator+1)*m.width:][:m.width] }

// places are those of one pack: what was compiled with another one has its place among
// others.
type places struct {
	of map[string]int // by the expressions' keys
}

// count is how many there are.
func (p *places) count() int {
	if p == nil {
		return 0
	}
	return len(p.of)
}

// at evaluates x as x.at does, once; an expression of another pack, which windows that
// outlived it may still have, each time.
func (m *memo) at(x *expression, b *event.Batch, o *event.Operator, f *Facts) (value float64, plausible bool) {
	if x.places != m.places {
		return x.at(b, o, f)
	}
	row := m.row
	if x.wide {
		row, o = m.rows, nil
	}
	known := &row[x.slot]
	if known.stamp == m.stamp {
		return known.value, known.plausible
	}
	value, plausible = x.at(b, o, f)
	if x.slot > 0 {
		*known = evaluated{m.stamp, value, plausible}
	}
	return value, plausible
}

// forget makes room for another pack's expressions.
func (m *memo) forget(expressions int, of *places) {
	*m = memo{width: expressions + 1, places: of, stamp: m.stamp}
	m.next(0)
}
