package rules

import "github.com/stategauge/stategauge/event"

// memo keeps what expressions came to for the present batch, so that one that several
// rules, guards and pieces of evidence share is evaluated once for the query and once
// for each operator. Memory: 24 bytes an expression and operator, for a whole engine.
type memo struct {
	width int // expressions of the pack, and one for those without a place
	stamp uint64
	rows  []evaluated // by operator, the query's own first, then by expression
	row   []evaluated // of what is judged now
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

// at evaluates x as x.at does, once.
func (m *memo) at(x *expression, b *event.Batch, o *event.Operator, f *Facts) (value float64, plausible bool) {
	if known := &m.row[x.slot]; known.stamp == m.stamp {
		return known.value, known.plausible
	}
	return m.evaluate(x, b, o, f)
}

func (m *memo) evaluate(x *expression, b *event.Batch, o *event.Operator, f *Facts) (value float64, plausible bool) {
	value, plausible = x.at(b, o, f)
	if x.slot > 0 {
		m.row[x.slot] = evaluated{m.stamp, value, plausible}
	}
	return value, plausible
}

// forget makes room for another pack's expressions.
func (m *memo) forget(expressions int) {
	*m = memo{width: expressions + 1, stamp: m.stamp}
	m.next(0)
}
