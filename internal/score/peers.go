package score

import (
	"cmp"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// peerNames are the rules that users write today, in the order of the table: on
// what a store waits for its upload and on the duration of batches, each.
var peerNames = []string{"fixed threshold", "deriv over 1h", "predict_linear 1h", "avg ratio"}

const (
	peerWindowMs  = 3600 * 1000
	peerLearn     = 60 // batches that somebody looked at before setting a threshold
	peerThreshold = 1.5
	peerRise      = 0.25
	peerAheadSecs = 4 * 3600
	peerHold      = 5 // batches that it must be true for
	peerClear     = 5
	peerShort     = 10
	peerLong      = 100
)

// peerAlert is one firing of a peer.
type peerAlert struct {
	query   event.QueryID
	symptom string
	batch   int64
}

// peerSeries is one series as the peers see it. They are PromQL rules at their
// usual windows, evaluated once per batch.
type peerSeries struct {
	at, v     []float64 // seconds and values, as far back as any of them looks
	learnt    []float64
	threshold float64
	held      [4]int
	clear     [4]int
	firing    [4]bool
}

// push takes a value and returns which of the rules begin to fire.
func (s *peerSeries) push(atMs int64, v float64) (began [4]bool) {
	s.at, s.v = append(s.at, float64(atMs)/1000), append(s.v, v)
	keep := len(s.at) - peerLong
	for keep > 0 && s.at[keep] > float64(atMs-peerWindowMs)/1000 {
		keep--
	}
	if keep > peerLong { // seldom, so that it costs little
		s.at, s.v = slices.Delete(s.at, 0, keep), slices.Delete(s.v, 0, keep)
	}
	for i, is := range [4]bool{s.over(v), s.deriv(), s.predicted(), s.ratio()} {
		began[i] = s.hold(i, is)
	}
	return began
}

// hold is `for` and `keep_firing_for`.
func (s *peerSeries) hold(i int, is bool) (began bool) {
	if !is {
		s.held[i] = 0
		if s.clear[i]++; s.clear[i] >= peerClear {
			s.firing[i] = false
		}
		return false
	}
	s.clear[i] = 0
	s.held[i]++
	if s.held[i] < peerHold || s.firing[i] {
		return false
	}
	s.firing[i] = true
	return true
}

// over compares with a threshold that was set by looking at the first batches.
func (s *peerSeries) over(v float64) bool {
	if len(s.learnt) < peerLearn {
		s.learnt = append(s.learnt, v)
		if len(s.learnt) == peerLearn {
			sorted := slices.Clone(s.learnt)
			slices.Sort(sorted)
			s.threshold = peerThreshold * sorted[peerLearn*95/100]
		}
		return false
	}
	return v > s.threshold
}

// window is the newest hour.
func (s *peerSeries) window() (at, v []float64) {
	newest := s.at[len(s.at)-1]
	from, _ := slices.BinarySearchFunc(s.at, newest-peerWindowMs/1000, cmp.Compare[float64])
	return s.at[from:], s.v[from:]
}

// line fits by least squares, as deriv and predict_linear do.
func (s *peerSeries) line() (mean, slope float64, ok bool) {
	at, v := s.window()
	n := float64(len(v))
	var sx, sy, sxx, sxy float64
	for i := range v {
		x := at[i] - at[0]
		sx, sy, sxx, sxy = sx+x, sy+v[i], sxx+x*x, sxy+x*v[i]
	}
	d := n*sxx - sx*sx
	return sy / n, (n*sxy - sx*sy) / d, n >= 4 && d > 0
}

func (s *peerSeries) deriv() bool {
	mean, slope, ok := s.line()
	return ok && slope*peerWindowMs/1000 > peerRise*mean
}

func (s *peerSeries) predicted() bool {
	mean, slope, ok := s.line()
	return ok && mean+slope*peerAheadSecs > 2*mean
}

func (s *peerSeries) ratio() bool {
	if len(s.v) < peerLong {
		return false
	}
	return mean(s.v[len(s.v)-peerShort:]) > (1+peerRise)*mean(s.v[len(s.v)-peerLong:])
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// peers judges the series of every query.
type peers struct {
	series map[event.QueryID][]*peerSeries // the duration first, then each operator's uploads
	fired  [4][]peerAlert
}

func newPeers() *peers { return &peers{series: map[event.QueryID][]*peerSeries{}} }

// push takes an executed batch.
func (p *peers) push(b *event.Batch) {
	if b.StartMs == event.Absent || b.NoData {
		return
	}
	list := p.series[b.Query.ID]
	for len(list) < 1+len(b.Operators) {
		list = append(list, &peerSeries{})
	}
	p.series[b.Query.ID] = list
	ms, _ := b.DurationMs()
	p.take(list[0], b, ms, "duration-rising")
	for i := range b.Operators {
		o := &b.Operators[i]
		if o.Stores > 0 {
			p.take(list[1+i], b, o.Values[event.RocksDBCommitFileSyncLatency]/float64(o.Stores), "commit-sync-rising")
		}
	}
}

func (p *peers) take(s *peerSeries, b *event.Batch, v float64, symptom string) {
	if math.IsNaN(v) {
		return
	}
	for i, began := range s.push(b.StartMs, v) {
		if began {
			p.fired[i] = append(p.fired[i], peerAlert{b.Query.ID, symptom, b.ID})
		}
	}
}

// peerResult is how one peer fared in a play.
type peerResult struct {
	Expected int // faults that the rules are to find
	Found    int // something fired after the fault began
	Named    int // and it was the series of the expected symptom
	Wrong    int // fired before, or where nothing is wrong
	Delay    []int64
}

// peers holds the peers against the truth, generously: whatever fires on the right
// query once the fault is there counts as found.
func (t *truth) peers(p *peers) []peerResult {
	out := make([]peerResult, len(peerNames))
	for i := range out {
		t.peer(&out[i], p.fired[i])
	}
	return out
}

func (t *truth) peer(r *peerResult, fired []peerAlert) {
	from := int64(math.MaxInt64)
	for k := range t.sc.Expect {
		x := &t.sc.Expect[k]
		if !x.CannotTell {
			from = min(from, x.FromBatch)
		}
		if x.CannotTell || x.Optional {
			continue
		}
		r.Expected++
		i := slices.IndexFunc(fired, func(a peerAlert) bool { return t.peerMeets(x.Query, a) && a.batch >= x.FromBatch })
		if i < 0 {
			continue
		}
		r.Found++
		r.Delay = append(r.Delay, fired[i].batch-x.FromBatch)
		if slices.ContainsFunc(fired, func(a peerAlert) bool {
			return a.symptom == x.Symptom && a.batch >= x.FromBatch && t.peerMeets(x.Query, a)
		}) {
			r.Named++
		}
	}
	for _, a := range fired {
		if a.batch < from {
			r.Wrong++
		}
	}
}

func (t *truth) peerMeets(query int, a peerAlert) bool {
	return query == 0 || t.queries[string(a.query)] == query
}
