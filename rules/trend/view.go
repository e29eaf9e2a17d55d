package trend

import "bytes"

// view is one column over the newest rows that cover a span, with Mann-Kendall's S
// kept exact as rows come and go. Rows in which the column has no value do not count.
// A view that nobody asks sleeps: it counts nothing, and is counted afresh when asked.
type view struct {
	column  int32
	asleep  bool
	span    Span
	n       int     // rows, those without a value too
	batches int     // in the rows with a value
	order   []uint8 // places of the rows with a value, by size
	sum     pairSum
	asked   int64 // batches that the store had taken when it was asked last
	// short is how many batches the store must have taken before the view can be full
	// while it sleeps: each brings at most one more.
	short int64
}

// sleepAfter is how many batches go by before a view that nobody asks sleeps.
const sleepAfter = 64

// wake makes the view count again, from the rows of l, and notes when that was.
func (v *view) wake(l *lane, now int64) {
	v.asked = now
	if v.asleep {
		v.asleep = false
		v.recount(l)
	}
}

// rest lets a view sleep that was not asked for long.
func (v *view) rest(now int64) {
	if !v.asleep && now-v.asked > sleepAfter {
		*v = view{column: v.column, span: v.span, asleep: true}
	}
}

// add counts the row that has just become the newest of l, and drops what the span
// does not need any more.
func (v *view) add(l *lane) {
	if v.asleep {
		return
	}
	place := l.at(l.n - 1)
	vals := l.vals[v.column]
	if x := vals[place]; x == x {
		less, equal := v.rank(vals, x)
		v.sum.s += int64(2*less + equal - len(v.order))
		v.sum.tieTerm += tieWeight(int64(equal)+1) - tieWeight(int64(equal))
		at := less + equal
		v.order = append(v.order, 0)
		copy(v.order[at+1:], v.order[at:])
		v.order[at] = uint8(place)
		v.batches += l.marks[place].batches()
	}
	v.n++
	for v.n > 1 && v.coveredWithoutOldest(l) {
		v.drop(l)
	}
}

// drop uncounts the oldest row.
func (v *view) drop(l *lane) {
	place := l.at(l.n - v.n)
	vals := l.vals[v.column]
	v.n--
	x := vals[place]
	if x != x {
		return
	}
	// Where it stands tells its rank: to find a byte takes a fifth of a search by value.
	at := bytes.IndexByte(v.order, uint8(place))
	less, equal := v.tied(vals, x, at)
	v.order = append(v.order[:at], v.order[at+1:]...)
	equal-- // itself
	v.sum.s += int64(2*less + equal - len(v.order))
	v.sum.tieTerm -= tieWeight(int64(equal)+1) - tieWeight(int64(equal))
	v.batches -= l.marks[place].batches()
}

// rank returns how many of the known values lie below x, and how many equal it.
// Half a dozen steps of a search beat a pass over all values threefold. The steps have
// no branch that hangs on a value: half of them would be mispredicted.
func (v *view) rank(vals []float32, x float32) (less, equal int) {
	order := v.order
	from := 0
	for n := uint(len(order)); n > 0; {
		half := (n + 1) >> 1
		below := 0
		if vals[order[from+int(half)-1]] < x {
			below = 1
		}
		from += int(half) & -below
		n -= half
	}
	return from, v.equalFrom(vals, x, from)
}

// equalFrom returns how many of the values from a place in the order on equal x.
func (v *view) equalFrom(vals []float32, x float32, from int) int {
	end := from
	for end < len(v.order) && vals[v.order[end]] == x {
		end++
	}
	return end - from
}

// tied returns what rank does for a value that is known to stand at a place in the order.
func (v *view) tied(vals []float32, x float32, at int) (less, equal int) {
	for at > 0 && vals[v.order[at-1]] == x {
		at--
	}
	return at, v.equalFrom(vals, x, at)
}

// coveredWithoutOldest reports whether the rows after the oldest cover the span.
func (v *view) coveredWithoutOldest(l *lane) bool {
	oldest := l.n - v.n
	place := l.at(oldest)
	batches := v.batches
	if x := l.vals[v.column][place]; x == x {
		batches -= l.marks[place].batches()
	}
	return v.span.covered(batches, l.spanMs(oldest+1))
}

// full reports whether the view covers its span.
func (v *view) full(l *lane) bool { return v.n > 0 && v.span.covered(v.batches, l.spanMs(l.n-v.n)) }

// covers is full, asleep too, of a view of the lane whose rows are one batch each. now is
// how many batches the store has taken.
func (v *view) covers(l *lane, now int64) bool {
	if !v.asleep {
		return v.full(l)
	}
	if l.n < v.span.Batches || l.spanMs(0) < v.span.Ms || now < v.short {
		return false
	}
	known := l.known(int(v.column))
	v.short = now + int64(max(v.span.Batches-known, 0))
	return known >= v.span.Batches
}

// known returns how many rows have a value in a column.
func (l *lane) known(column int) int {
	n := 0
	for _, part := range l.values(column) {
		for _, x := range part {
			known := 0
			if x == x {
				known = 1
			}
			n += known
		}
	}
	return n
}

// values are a column's from the oldest row to the newest, in two parts.
func (l *lane) values(column int) [2][]float32 {
	vals := l.vals[column]
	end := l.head + l.n
	if end <= len(vals) {
		return [2][]float32{vals[l.head:end]}
	}
	return [2][]float32{vals[l.head:], vals[:end-len(vals)]}
}

// recount starts afresh from the rows of l.
func (v *view) recount(l *lane) {
	if v.asleep {
		return
	}
	*v = view{column: v.column, span: v.span, order: v.order[:0], asked: v.asked}
	n := l.n
	for l.n = 1; l.n <= n; l.n++ {
		l.look()
		v.add(l)
	}
	l.n = n
	l.look()
}
