package trend

import (
	"math"
	"slices"
)

// maxRows bounds the rows of a lane.
const maxRows = 255

// lane is a ring of rows, oldest first: one mark and one float32 of each column,
// NaN where a column has nothing. Views name rows by place, so there are at most
// maxRows.
type lane struct {
	limit   int
	origin  *origin // of the store
	marks   []packedMark
	vals    [][]float32 // by column, then by place
	head, n int
	until   int64 // when the newest row's last batch began
	size    int   // batches of a new row
	views   []*view
}

func newLane(columns, limit int, o *origin) *lane {
	return &lane{limit: limit, origin: o, vals: make([][]float32, columns), size: 1}
}

// at returns the place of the i-th row.
func (l *lane) at(i int) int {
	if i += l.head; i >= len(l.marks) {
		return i - len(l.marks)
	}
	return i
}

// mark returns the mark at a place.
func (l *lane) mark(place int) mark { return l.origin.unpack(l.marks[place]) }

// look makes the newest row's end known, whichever that is by now.
func (l *lane) look() {
	if l.n > 0 {
		m := l.mark(l.at(l.n - 1))
		l.until = m.untilMs()
	}
}

// append keeps a row; the lane must have room.
func (l *lane) append(m mark, row []float32) {
	if l.n == len(l.marks) {
		l.grow()
	}
	i := l.at(l.n)
	l.marks[i] = l.origin.pack(m)
	for c := range l.vals {
		l.vals[c][i] = row[c]
	}
	l.n++
	l.until = m.untilMs()
	for _, v := range l.views {
		v.add(l)
	}
}

// grow doubles the room, up to the limit.
func (l *lane) grow() {
	room := min(max(2*len(l.marks), minKept), l.limit)
	marks := make([]packedMark, room)
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
		m := l.mark(l.at(i))
		for k := i + 1; k < end; k++ {
			m = m.join(l.mark(l.at(k)))
		}
		to := l.at(kept)
		for c := range l.vals {
			var three [blockGrowth]float32
			for k := i; k < end; k++ {
				three[k-i] = l.vals[c][l.at(k)]
			}
			l.vals[c][to] = medianOfFew(three[:end-i])
		}
		l.marks[to] = l.origin.pack(m)
		kept++
	}
	l.n = kept
	l.size *= blockGrowth
	l.look()
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
	return l.until - l.marks[l.at(i)].fromMs(*l.origin)
}

// coversFrom reports whether the rows from the i-th on cover the span.
func (l *lane) coversFrom(i int, s Span) bool {
	if i >= l.n || l.spanMs(i) < s.Ms {
		return false
	}
	batches := 0
	for k := l.n - 1; k >= i && batches < s.Batches; k-- {
		batches += l.marks[l.at(k)].batches()
	}
	return batches >= s.Batches
}
