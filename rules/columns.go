package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

const (
	// coarseRows is how many medians a set keeps for what lies further back than its
	// newest batches: four hours of a batch each ten seconds in blocks of nine.
	coarseRows = 174
	// fewRows is how many it keeps where no rule asks for more than 60 batches or an
	// hour.
	fewRows = 96
	// sparseEvery is how many batches pass between looks at how full columns are,
	// sparseRows how many a column must have been there for, and sparseShare the share
	// of them that it must have: a set reaches back half as far again as its spans.
	sparseEvery = 32
	sparseRows  = 96
	sparseShare = 2.0 / 3
)

// reach is how far back the windows of a set go: series are put together by how many
// batches and how much time their rules ask for, four times more from one reach to the
// next, so that a window of minutes is not judged by the medians that a window of days
// needs.
type reach struct {
	batches, hours           int8 // powers of four; hours is -1 where no time is asked for
	acrossRuns, acrossPauses bool
}

// reachOf returns the reach of an extent.
func reachOf(e Extent) reach {
	r := reach{hours: -1}
	for n := 60; n < e.Batches; n *= 4 {
		r.batches++
	}
	if e.Ms > 0 {
		r.hours = 0
		for ms := int64(dayMs / 24); ms < e.Ms; ms *= 4 {
			r.hours++
		}
	}
	return r
}

// longest is the longest span that a set of this reach can be asked for.
func (r reach) longest() trend.Span {
	s := trend.Span{Batches: 90 << (2 * r.batches)}
	if r.hours >= 0 {
		s.Ms = dayMs / 24 << (2 * r.hours)
	}
	return s
}

// columnKey tells columns of a query apart: what they hold, as a hash, and of which
// operator, -1 for the query.
type columnKey struct {
	values   uint64
	operator string
	index    int32
	load     bool // values is what rules adjust for, and no signal
}

// column is one series of figures that any number of rules judge: a signal under its
// guards, for one operator or for the query.
type column struct {
	key   columnKey
	rule  *rule       // whose signal and guards it has; nil for a load
	input *expression // of a load
	load  *column     // what the rules adjust for, nil without
	users int         // rules, and columns that it is the load of
	set   *columnSet
	place int
	born  int64 // batches that the set had taken before
	moves int   // from one set to another

	value       float64 // of the batch that was staged last
	staged      int64   // its position
	implausible bool
}

// columnSet is a time axis and the columns on it. The columns of a query and of all of
// its operators share one, as far as their rules reach back alike.
type columnSet struct {
	reach  reach
	single bool // of one series that has no value in most batches
	cols   *trend.Columns
	list   []*column // by place; nil is free
	row    []float32
	due    bool // the row has a value
}

func newColumnSet(r reach, single bool, s *trend.Scratch) *columnSet {
	o := trend.ColumnsOptions{Coarse: coarseRows, Longest: r.longest()}
	if r.batches == 0 && r.hours <= 0 {
		o.Coarse = fewRows
	}
	if single || r.hours > 1 {
		o.Coarse = 0 // the default, which is less
	}
	c := trend.NewColumns(0, o)
	c.UseScratch(s)
	return &columnSet{reach: r, single: single, cols: c}
}

// add puts a column into a place of its own.
func (s *columnSet) add(c *column) *column {
	c.set, c.born, c.staged = s, s.cols.Pushes(), -1
	for i, other := range s.list {
		if other == nil {
			c.place = i
			s.list[i] = c
			return c
		}
	}
	c.place = s.cols.AddColumn()
	s.list, s.row = append(s.list, c), append(s.row, float32(math.NaN()))
	return c
}

// find returns the column of that key, nil where there is none.
func (s *columnSet) find(key columnKey) *column {
	for _, c := range s.list {
		if c != nil && c.key == key {
			return c
		}
	}
	return nil
}

// release gives a column back; the last user takes its values along.
func (c *column) release() {
	if c == nil {
		return
	}
	if c.users--; c.users > 0 {
		return
	}
	c.load.release()
	c.set.cols.ClearColumn(c.place)
	c.set.list[c.place] = nil
}

// loadPlace is the load's column, trend.NoLoad without one.
func (c *column) loadPlace() int {
	if c.load == nil {
		return trend.NoLoad
	}
	return c.load.place
}

// stage evaluates the column for a batch, once for all rules that judge it.
func (c *column) stage(q *queryState, b *event.Batch, o *event.Operator, m *memo, warm bool) {
	if c.staged == q.position {
		return
	}
	c.staged, c.implausible, c.value = q.position, false, math.NaN()
	if c.rule == nil {
		c.value, _ = m.at(c.input, b, o, &q.facts)
	} else if !warm || c.rule.inWarmUp {
		v, plausible := c.rule.valueOf(b, o, &q.facts, m)
		c.value, c.implausible = v, !plausible
		c.set.due = c.set.due || v == v
	}
	c.set.row[c.place] = float32(c.value)
	if c.load != nil {
		c.load.stage(q, b, o, m, warm)
	}
}

// push takes in the row that was staged, if there is a figure to judge in it.
func (s *columnSet) push(batch, atMs int64) {
	if s.due {
		s.cols.Push(batch, max(atMs, 0), s.row)
	}
	s.due = false
	for i := range s.row {
		s.row[i] = float32(math.NaN())
	}
}

// empty reports whether no rule uses any column.
func (s *columnSet) empty() bool {
	for _, c := range s.list {
		if c != nil {
			return false
		}
	}
	return true
}

// columnOf returns the column that a rule judges for an operator, or for the query
// where index is -1, in the set that reaches back as far as e asks; it is made where
// no other rule has it.
func (q *queryState) columnOf(r *rule, load *expression, e Extent, index int, name string, scratch *trend.Scratch) *column {
	want := reachOf(e)
	want.acrossRuns, want.acrossPauses = r.acrossRuns, r.acrossPauses
	key := columnKey{values: r.columnKey, operator: name, index: int32(index)}
	var set *columnSet
	for _, s := range q.columns {
		if s.reach != want {
			continue
		}
		if c := s.find(key); c != nil {
			c.users++
			return c
		}
		if !s.single {
			set = s
		}
	}
	if set == nil {
		set = newColumnSet(want, false, scratch)
		q.columns = append(q.columns, set)
	}
	c := set.add(&column{key: key, rule: r, users: 1})
	if load != nil {
		c.load = set.loadOf(load, columnKey{values: hashOf(load.key), operator: name, index: int32(index), load: true})
	}
	return c
}

// loadOf returns the column of what rules adjust for.
func (s *columnSet) loadOf(x *expression, key columnKey) *column {
	if c := s.find(key); c != nil {
		c.users++
		return c
	}
	return s.add(&column{key: key, input: x, users: 1})
}

// pushColumns takes the staged rows in, and drops sets that nobody uses any more.
func (q *queryState) pushColumns() {
	kept := q.columns[:0]
	for _, s := range q.columns {
		if s.empty() {
			continue
		}
		s.push(q.position, q.atMs)
		kept = append(kept, s)
	}
	clear(q.columns[len(kept):])
	q.columns = kept
	for _, s := range kept {
		if !s.single && s.cols.Pushes()%sparseEvery == 0 {
			q.thin(s)
		}
	}
}

// thin gives columns that have no value in most batches a set of their own: beside full
// ones they would never have enough of them.
func (q *queryState) thin(s *columnSet) {
	for _, c := range s.list {
		if c == nil || c.rule == nil {
			continue
		}
		known, batches := s.cols.Known(c.place, int(min(s.cols.Pushes()-c.born, math.MaxInt32)))
		if batches >= sparseRows && float64(known) < sparseShare*float64(batches) {
			q.columns = append(q.columns, s.alone(c))
		}
	}
}

// alone moves a column and a copy of its load into a set of their own, with what they
// hold.
func (s *columnSet) alone(c *column) *columnSet {
	from, fromLoad, load := c.place, c.loadPlace(), c.load
	own := s.apart(c)
	s.cols.Replay(from, fromLoad, func(batch, ms int64, v, units float32) {
		own.row[c.place] = v
		if c.load != nil {
			own.row[c.load.place] = units
		}
		own.due = true
		own.push(batch, ms)
	})
	s.leave(from, load)
	return own
}

// apart gives a column and a copy of its load an empty set of their own.
func (s *columnSet) apart(c *column) *columnSet {
	own := newColumnSet(s.reach, true, s.cols.Scratch())
	load, staged, value := c.load, c.staged, c.value
	own.add(c)
	c.staged, c.value = staged, value
	c.moves++
	if load != nil {
		c.load = own.add(&column{key: load.key, input: load.input, users: 1})
	}
	return own
}

// leave frees the place of a column that went, and gives back its load.
func (s *columnSet) leave(place int, load *column) {
	s.cols.ClearColumn(place)
	s.list[place] = nil
	load.release()
}

// split is alone without what the columns hold.
func (s *columnSet) split(c *column) *columnSet {
	place, load := c.place, c.load
	own := s.apart(c)
	s.leave(place, load)
	return own
}

// resetColumns empties the sets that a break of the query's batches concerns.
func (q *queryState) resetColumns(breaks func(acrossRuns, acrossPauses bool) bool) {
	for _, s := range q.columns {
		if breaks(s.reach.acrossRuns, s.reach.acrossPauses) {
			s.cols.Reset()
			for _, c := range s.list {
				if c != nil {
					c.born = s.cols.Pushes()
				}
			}
		}
	}
}
