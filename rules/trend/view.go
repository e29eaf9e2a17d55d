package trend

// view is one column over the newest rows that cover a span, with Mann-Kendall's S
// kept exact as rows come and go. Rows in which the column has no value do not count.
type view struct {
	column  int
	span    Span
	n       int // rows, those without a value too
	known   int // rows with a value
	batches int // in the rows with a value
	sum     pairSum
}

// add counts the row that has just become the newest of l, and drops what the span
// does not need any more.
func (v *view) add(l *lane) {
	last := l.n - 1
	v.count(l, last, last-v.n, last, 1)
	v.n++
	for v.n > 1 && v.coveredWithoutOldest(l) {
		v.drop(l)
	}
}

// drop uncounts the oldest row.
func (v *view) drop(l *lane) {
	oldest := l.n - v.n
	v.count(l, oldest, oldest+1, l.n, -1)
	v.n--
}

// count adds row i to the sums, or takes it from them where sign is -1; the other
// rows of the view are [from, until).
func (v *view) count(l *lane, i, from, until int, sign int) {
	place := l.at(i)
	x := l.vals[v.column][place]
	if x != x {
		return
	}
	if sign < 0 {
		v.known--
	}
	less, equal := v.compare(l, x, from, until)
	v.sum.s += int64(2*less + equal - v.known)
	v.sum.tieTerm += int64(sign) * (tieWeight(int64(equal)+1) - tieWeight(int64(equal)))
	if sign > 0 {
		v.known++
	}
	v.batches += sign * int(l.marks[place].batches)
}

// compare counts the values below x in rows [from, until) and those equal to it.
func (v *view) compare(l *lane, x float32, from, until int) (less, equal int) {
	a, b := l.segments(v.column, from, until)
	la, ea := compareNarrow(a, x)
	lb, eb := compareNarrow(b, x)
	return la + lb, ea + eb
}

// compareNarrow is compareAll for the values of a lane; NaN is neither.
func compareNarrow(vals []float32, v float32) (less, equal int) {
	for _, u := range vals {
		var l, e int
		if u < v {
			l = 1
		}
		if u == v {
			e = 1
		}
		less += l
		equal += e
	}
	return less, equal
}

// coveredWithoutOldest reports whether the rows after the oldest cover the span.
func (v *view) coveredWithoutOldest(l *lane) bool {
	oldest := l.n - v.n
	place := l.at(oldest)
	batches := v.batches
	if x := l.vals[v.column][place]; x == x {
		batches -= int(l.marks[place].batches)
	}
	return v.span.covered(batches, l.spanMs(oldest+1))
}

// full reports whether the view covers its span.
func (v *view) full(l *lane) bool { return v.n > 0 && v.span.covered(v.batches, l.spanMs(l.n-v.n)) }

// recount starts afresh from the rows of l.
func (v *view) recount(l *lane) {
	*v = view{column: v.column, span: v.span}
	n := l.n
	for l.n = 1; l.n <= n; l.n++ {
		v.add(l)
	}
	l.n = n
}
