package trend

import (
	"math"
	"slices"
)

// mark is where and when one row of a lane stands: a batch, or a block of batches.
type mark struct {
	first   int64  // first batch id
	fromMs  int64  // on the lane's own clock, see Columns.elapsedMs
	lasts   uint32 // milliseconds from the first batch's start to the last one's, at most 49 days
	ids     uint16 // last batch id less the first, at most 65,535
	batches uint16
}

// x is the middle of the block's batch ids.
func (m *mark) x() float64 { return float64(m.first) + float64(m.ids)/2 }

func (m *mark) untilMs() int64 { return m.fromMs + int64(m.lasts) }

// join returns the block of m and the later o.
func (m mark) join(o mark) mark {
	m.lasts = uint32(min(max(o.untilMs()-m.fromMs, 0), math.MaxUint32))
	m.ids = uint16(min(o.first+int64(o.ids)-m.first, math.MaxUint16))
	m.batches = uint16(min(int(m.batches)+int(o.batches), math.MaxUint16))
	return m
}

// maxRows bounds the rows of a lane.
const maxRows = 255

// lane is a ring of rows, oldest first: one mark and one float32 of each column,
// NaN where a column has nothing. Views name rows by place, so there are at most
// maxRows.
type lane struct {
	limit   int
	marks   []mark
	vals    [][]float32 // by column, then by place
	head, n int
	size    int // batches of a new row
	views   []*view
}

func newLane(columns, limit int) *lane {
	return &lane{limit: limit, vals: make([][]float32, columns), size: 1}
}

// at returns the place of the i-th row.
func (l *lane) at(i int) int {
	if i += l.head; i >= len(l.marks) {
		return i - len(l.marks)
	}
	return i
}

func (l *lane) newest() *mark { return &l.marks[l.at(l.n-1)] }

// append keeps a row; the lane must have room.
func (l *lane) append(m mark, row []float32) {
	if l.n == len(l.marks) {
		l.grow()
	}
	i := l.at(l.n)
	l.marks[i] = m
	for c := range l.vals {
		l.vals[c][i] = row[c]
	}
	l.n++
	for _, v := range l.views {
		v.add(l)
	}
}

// grow doubles the room, up to the limit.
func (l *lane) grow() {
	room := min(max(2*len(l.marks), minKept), l.limit)
	marks := make([]mark, room)
	for i := range l.n {
		marks[i] = l.marks[l.at(i)]
	}
	for c := range l.vals {
		vals := make([]float32, room)
		for i := range l.n {
			vals[i] = l.vals[c][l.at(i)]
		}
		l.vals[c] = vals
	}
	l.marks, l.head = marks, 0
	for _, v := range l.views {
		v.recount(l)
	}
}

// evict drops the oldest row.
func (l *lane) evict() {
	for _, v := range l.views {
		if v.n == l.n {
			v.drop(l)
		}
	}
	l.head = l.at(1)
	l.n--
}

// fold joins the rows by threes, each column to its median.
func (l *lane) fold() {
	kept := 0
	for i := 0; i < l.n; i += blockGrowth {
		end := min(i+blockGrowth, l.n)
		m := l.marks[l.at(i)]
		for k := i + 1; k < end; k++ {
			m = m.join(l.marks[l.at(k)])
		}
		to := l.at(kept)
		for c := range l.vals {
			var three [blockGrowth]float32
			for k := i; k < end; k++ {
				three[k-i] = l.vals[c][l.at(k)]
			}
			l.vals[c][to] = medianOfFew(three[:end-i])
		}
		l.marks[to] = m
		kept++
	}
	l.n = kept
	l.size *= blockGrowth
	for _, v := range l.views {
		v.recount(l)
	}
}

// medianOfFew returns the median of up to three values, NaN ones left out.
func medianOfFew(v []float32) float32 {
	if len(v) == blockGrowth && v[0] == v[0] && v[1] == v[1] && v[2] == v[2] {
		return max(min(v[0], v[1]), min(max(v[0], v[1]), v[2]))
	}
	v = slices.DeleteFunc(v, func(x float32) bool { return x != x })
	switch len(v) {
	case 0:
		return float32(math.NaN())
	case 1:
		return v[0]
	case 2:
		return v[0] + (v[1]-v[0])/2
	}
	return max(min(v[0], v[1]), min(max(v[0], v[1]), v[2]))
}

// reset forgets all rows; the room stays.
func (l *lane) reset() {
	l.head, l.n, l.size = 0, 0, 1
	for _, v := range l.views {
		v.recount(l)
	}
}

// spanMs is the time from the first batch of row i to the newest batch.
func (l *lane) spanMs(i int) int64 {
	if i >= l.n {
		return 0
	}
	return l.newest().untilMs() - l.marks[l.at(i)].fromMs
}

// coversFrom reports whether the rows from the i-th on cover the span.
func (l *lane) coversFrom(i int, s Span) bool {
	if i >= l.n || l.spanMs(i) < s.Ms {
		return false
	}
	batches := 0
	for k := l.n - 1; k >= i && batches < s.Batches; k-- {
		batches += int(l.marks[l.at(k)].batches)
	}
	return batches >= s.Batches
}
