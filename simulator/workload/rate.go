package workload

import (
	"fmt"
	"math"
	"sort"
	"strconv"
)

// keptMarks is how many seconds, or batches of files, a source remembers to go
// back to, at least; it forgets as many again at a time.
const keptMarks = 1 << 18

// marks is how many rows of a source lie before each of its offsets. Old ones
// that were read are forgotten; one that waits takes 8 bytes.
type marks struct {
	first int64 // offset of rows[0]
	rows  []int64
}

func (m *marks) last() int64         { return m.first + int64(len(m.rows)) - 1 }
func (m *marks) at(at int64) int64   { return m.rows[at-m.first] }
func (m *marks) holds(at int64) bool { return at >= m.first && at <= m.last() }

// add appends an offset; that of read, and what follows, is kept.
func (m *marks) add(rows, read int64) {
	if len(m.rows) >= 2*keptMarks && read >= m.first+keptMarks {
		m.first += keptMarks
		m.rows = append(m.rows[:0], m.rows[keptMarks:]...)
	}
	m.rows = append(m.rows, rows)
}

// restart makes an offset the only one known.
func (m *marks) restart(at, rows int64) {
	m.first, m.rows = at, append(m.rows[:0], rows)
}

// upTo is the last offset before which at most so many rows lie.
func (m *marks) upTo(rows int64) int64 {
	i := sort.Search(len(m.rows), func(i int) bool { return m.rows[i] > rows })
	return m.first + int64(i) - 1
}

// rate is Spark's rate source: its offset is how many whole seconds have passed
// since it was created.
type rate struct {
	input
	createdMs int64
	marks     marks
	read      int64 // seconds
}

// NewRate returns a rate source, created at StartMs. Rows of a second bear
// times spread evenly over it.
func NewRate(cfg Config) (Source, error) {
	r := &rate{createdMs: cfg.StartMs}
	if err := r.init(cfg, 1); err != nil {
		return nil, fmt.Errorf("rate source: %w", err)
	}
	r.maker.early = true
	r.marks.restart(0, r.arrivals.total) // a backlog is none of its own
	return r, nil
}

// Description is the text that the progress shows, without the bracket that
// Spark forgets.
func (r *rate) Description() string {
	return fmt.Sprintf("RateStreamV2[rowsPerSecond=%d, rampUpTimeSeconds=0, numPartitions=%d",
		r.perSecond(), r.cfg.Partitions)
}

// Advance lets rows arrive until nowMs.
func (r *rate) Advance(nowMs int64, c Conditions) {
	for next := r.nextMs(); next <= nowMs; next = r.nextMs() {
		r.input.Advance(next, c)
		c.FutureMs = r.arrivals.futureMs // once a call, not once a second
		r.marks.add(r.arrivals.total, r.read)
	}
	r.input.Advance(nowMs, c)
}

// nextMs is when the next second is whole.
func (r *rate) nextMs() int64 { return r.createdMs + (r.marks.last()+1)*1000 }

// Poll asks nobody: the offset is a matter of the clock.
func (r *rate) Poll() Poll {
	return Poll{Available: r.marks.at(r.marks.last()) - r.marks.at(r.read)}
}

// Take reads all whole seconds, or those that MaxRows allows, one at least.
func (r *rate) Take() Take {
	end := r.marks.upTo(r.marks.at(r.read) + r.cfg.MaxRows)
	return r.readTo(max(end, min(r.read+1, r.marks.last())))
}

// TakeTo reads up to a second.
func (r *rate) TakeTo(end string) (Take, error) {
	second, err := r.parse(end)
	if err != nil {
		return Take{}, err
	}
	if second < r.read {
		return Take{}, fmt.Errorf("rate source: offset %d lies before what was read", second)
	}
	ahead := max(second-r.marks.last(), 0)
	have := r.marks.at(min(second, r.marks.last())) - r.marks.at(r.read)
	if ahead <= r.cfg.MaxRows { // or its rows might not fit 64 bits
		have += ahead * r.perSecond()
	}
	if err := r.bounded(max(have, ahead)); err != nil {
		return Take{}, fmt.Errorf("rate source: offset %d %w", second, err)
	}
	r.reach(ahead)
	return planned(r.readTo(second)), nil
}

// perSecond is the rate as Spark has it, in whole rows.
func (r *rate) perSecond() int64 { return int64(math.Round(r.cfg.RowsPerSecond)) }

// reach lets so many seconds more have passed before now.
func (r *rate) reach(seconds int64) {
	from := r.arrivals.total
	r.arrivals.already(seconds * r.perSecond())
	for i := range seconds {
		r.marks.add(from+(i+1)*r.perSecond(), r.read)
	}
	if seconds > 0 {
		r.createdMs = r.arrivals.nowMs - r.marks.last()*1000
	}
}

// readTo makes up the rows of the seconds between what was read and the end.
func (r *rate) readTo(end int64) Take {
	start := none
	if r.started {
		start = strconv.FormatInt(r.read, 10)
	}
	from, to := r.marks.at(r.read), r.marks.at(end)
	rows := r.maker.fill(r.fresh(to-from), from, to, 1)
	r.read, r.started = end, true
	text := strconv.FormatInt(end, 10)
	return r.take(rows, start, text, text)
}

// Seek goes to a second. One beyond what has passed belongs to an earlier life
// of the query: the source then counts as created so much earlier.
func (r *rate) Seek(end string) error {
	if atStart(end) {
		r.read, r.started = r.marks.first, false
		return nil
	}
	second, err := r.parse(end)
	if err != nil {
		return err
	}
	if !r.marks.holds(second) {
		r.createdMs = r.arrivals.nowMs - second*1000
		r.marks.restart(second, r.arrivals.total)
	}
	r.read, r.started = second, true
	return nil
}

func (r *rate) parse(text string) (int64, error) {
	var second *int64
	if err := decode(text, &second); err != nil {
		return 0, fmt.Errorf("rate source: offset %.100s %w", text, err)
	}
	if second == nil || *second < r.marks.first || *second > maxOffset/1000 {
		return 0, fmt.Errorf("rate source: offset %.100s is not one of seconds %d and later", text, r.marks.first)
	}
	return *second, nil
}

// Skip creates the source anew: seconds count from now.
func (r *rate) Skip() {
	r.createdMs = r.arrivals.nowMs
	r.marks.restart(0, r.arrivals.total)
	r.read, r.started = 0, false
}
