package rules

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/rules/trend"
)

// aboveSpec is the detector `above`, and `below` as its mirror.
type aboveSpec struct {
	Limit   string      `yaml:"limit"`
	Batches countOf     `yaml:"batches"`
	Recover string      `yaml:"recover"`
	Pooled  *pooledSpec `yaml:"pooled"`
}

// pooledSpec makes a ratio of few events one of many: the mean over batches,
// weighted, as far back as the weight needs.
type pooledSpec struct {
	Weight  string `yaml:"weight"`
	AtLeast int    `yaml:"at_least"` // default 1000
	Over    Extent `yaml:"over"`     // how far back at most, in batches; default 20
}

const (
	// mostWatched is how many batches `above` looks at: a bit for each.
	mostWatched = 64
	// mostPooled bounds what a batch of a pooled ratio costs.
	mostPooled    = 240
	defaultWeight = 1000
	defaultPool   = 20
)

// countOf is "3 of 5": so many batches of the newest so many.
type countOf struct{ k, n int }

// DecodeScalar reads "3 of 5", or "3" for 3 of 3.
func (s *countOf) DecodeScalar(text string) error {
	few, many, both := strings.Cut(text, " of ")
	if !both {
		many = few
	}
	k, errK := strconv.Atoi(strings.TrimSpace(few))
	n, errN := strconv.Atoi(strings.TrimSpace(many))
	if errK != nil || errN != nil || k < 1 || k > n || n > mostWatched {
		return fmt.Errorf("%q is no count of batches; write 3 of 5, at most of %d", text, mostWatched)
	}
	*s = countOf{k, n}
	return nil
}

// String returns the count as it is written.
func (s countOf) String() string { return fmt.Sprintf("%d of %d batches", s.k, s.n) }

// above finds k of the newest n batches beyond a limit, and stays until fewer than
// k of them are beyond the level of recovery. O(1) a batch, no statistics: what a
// limit means is for the rule to know.
type above struct {
	spec           aboveSpec
	ins            []*expression
	limit, recover bound
	weight         int    // place of the weight among the inputs
	blind          string // what is said where the limit is not known
	falling        bool
}

func (s *aboveSpec) compile(c *ruleCompiler, key string) detector {
	d := &above{spec: *s, falling: key == "below"}
	if d.spec.Batches.n == 0 {
		d.spec.Batches = countOf{1, 1}
	}
	if s.Limit == "" {
		c.faultf([]any{key}, "%s needs limit", key)
		return d
	}
	d.limit = c.bound(s.Limit, []any{key, "limit"}, &d.ins)
	d.blind = unknown("limit", s.Limit).Why
	d.recover = d.limit
	if s.Recover != "" {
		d.recover = c.bound(s.Recover, []any{key, "recover"}, &d.ins)
	}
	if d.limit.fixed() && d.recover.fixed() && d.beyond(d.recover.constant, d.limit.constant) {
		c.faultf([]any{key, "recover"}, "recover (%s) must not be %s limit (%s)", s.Recover, key, s.Limit)
	}
	d.pool(c, key)
	return d
}

func (d *above) pool(c *ruleCompiler, key string) {
	p := d.spec.Pooled
	if p == nil {
		return
	}
	filled := *p
	if filled.AtLeast == 0 {
		filled.AtLeast = defaultWeight
	}
	if filled.Over.IsZero() {
		filled.Over.Batches = defaultPool
	}
	d.spec.Pooled = &filled
	if p.Weight == "" {
		c.faultf([]any{key, "pooled"}, "pooled needs weight, an expression for how much a batch counts")
	} else {
		d.weight = c.input(p.Weight, []any{key, "pooled", "weight"}, &d.ins)
	}
	if p.AtLeast < 0 {
		c.faultf([]any{key, "pooled", "at_least"}, "at_least (%d) must not be below 0", p.AtLeast)
	}
	if o := filled.Over; o.Ms > 0 || o.Batches > mostPooled {
		c.faultf([]any{key, "pooled", "over"}, "over (%s) must be batches, at most %d", o, mostPooled)
	}
}

// beyond reports whether v lies past the level.
func (d *above) beyond(v, level float64) bool { return further(v, level, d.falling) }

// further reports whether v lies above the level, or below it where that is meant.
func further(v, level float64, falling bool) bool {
	if falling {
		return v < level
	}
	return v > level
}

func (d *above) name() string {
	if d.falling {
		return "below"
	}
	return "above"
}

func (d *above) inputs() []*expression { return d.ins }

// span is for evidence: an hour is enough to tell before from after.
func (d *above) span() Extent { return Extent{Batches: 60, Ms: 3600_000} }

// stride is 1: each batch is judged.
func (d *above) stride() int { return 1 }

func (d *above) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s in %s", d.name(), d.limit.text, d.spec.Batches)
	if d.spec.Recover != "" {
		fmt.Fprintf(&b, ", clear again at %s", d.recover.text)
	}
	if p := d.spec.Pooled; p != nil {
		fmt.Fprintf(&b, ", pooled over at most %s by %s, at least %d", p.Over, p.Weight, p.AtLeast)
	}
	return b.String()
}

func (d *above) newTracker(*trend.Scratch) tracker {
	t := &aboveTracker{d: d, newest: make([]looked, d.spec.Batches.n)}
	if p := d.spec.Pooled; p != nil {
		t.pool = &pool{spec: p, ring: make([]weighed, p.Over.Batches)}
	}
	return t
}

// looked is one batch that was held against the limit.
type looked struct {
	batch int64
	value float64
}

// aboveTracker is the state of `above` for one series. Memory: 16 bytes a batch
// watched, 8 a batch pooled.
type aboveTracker struct {
	d            *above
	clock        steadyClock
	newest       []looked // a ring
	seen         int
	over, beyond uint64 // newest batch in the lowest bit: past the limit, past recovery
	limit        float64
	usual        float64 // slow mean of what was not beyond
	anyUsual     bool
	high         bool
	since        int64
	pool         *pool
	blind, thin  bool // the newest batch had no limit, or not enough weight
	// words are the last ones of a finding: most batches say them again.
	words   string
	wordsOf int // over, below 0 for beyond
}

// usualFollows is how fast the usual level follows.
const usualFollows = 0.1

func (t *aboveTracker) push(p trend.Point, in []float64) {
	if !t.clock.step(p) {
		return
	}
	v := p.Value
	if t.pool != nil {
		t.pool.push(v, in[t.d.weight])
		mean, enough := t.pool.mean()
		if t.thin = !enough; t.thin {
			return
		}
		v = mean
	}
	limit, recovery := t.d.limit.at(in), t.d.recover.at(in)
	if t.blind = limit != limit; t.blind {
		return
	}
	if recovery != recovery {
		recovery = limit
	}
	t.take(looked{p.Batch, v}, t.d.beyond(v, limit), t.d.beyond(v, recovery) || t.d.beyond(v, limit))
	t.limit = limit
}

func (t *aboveTracker) take(w looked, over, beyond bool) {
	some := t.d.spec.Batches
	t.newest[t.seen%some.n] = w
	t.seen++
	mask := uint64(1)<<(some.n-1)<<1 - 1
	t.over = (t.over<<1 | uint64(truth(over))) & mask
	t.beyond = (t.beyond<<1 | uint64(truth(beyond))) & mask
	if !beyond {
		if !t.anyUsual {
			t.usual, t.anyUsual = w.value, true
		}
		t.usual += usualFollows * (w.value - t.usual)
	}
	switch {
	case !t.high && bits.OnesCount64(t.over) >= some.k:
		t.high, t.since = true, t.first()
	case t.high && bits.OnesCount64(t.beyond) < some.k:
		t.high = false
	}
}

// first is the oldest watched batch past the limit.
func (t *aboveTracker) first() int64 {
	back := bits.Len64(t.over)
	return t.newest[(t.seen-back)%len(t.newest)].batch
}

// level is the k-th furthest of the newest batches: it lies past a limit exactly
// where k of them do, whatever the newest one says.
func (t *aboveTracker) level() float64 {
	newest := t.newest[:min(t.seen, len(t.newest))]
	k, falling := min(t.d.spec.Batches.k, len(newest)), t.d.falling
	if other := len(newest) + 1 - k; other < k { // sooner counted from the other side
		k, falling = other, !falling
	}
	var room [mostWatched]float64
	v := room[:0]
	for _, w := range newest {
		at := len(v)
		switch {
		case at < k:
			v = append(v, 0)
		case !further(w.value, v[k-1], falling):
			continue
		default:
			at--
		}
		for ; at > 0 && further(w.value, v[at-1], falling); at-- {
			v[at] = v[at-1]
		}
		v[at] = w.value
	}
	return v[k-1]
}

func (t *aboveTracker) judge(hold *Judgement) Judgement {
	some := t.d.spec.Batches
	switch {
	case t.thin:
		return judgement(SaidTooFew, "too few points: %s weighs %d of %d over %s", t.pool.spec.Weight, int(t.pool.weight()), t.pool.spec.AtLeast, t.pool.spec.Over)
	case t.blind:
		return judgement(SaidCannotTell, t.d.blind)
	case t.seen == 0:
		return tooFew(0, 0, Extent{Batches: some.n})
	}
	over, beyond := bits.OnesCount64(t.over), bits.OnesCount64(t.beyond)
	held := hold != nil && beyond >= some.k
	if !t.high && !held {
		j := judgement(SaidClear, "")
		if t.seen < some.n {
			j = tooFew(t.seen, 0, Extent{Batches: some.n})
		}
		j.Value, j.Limit, j.Points, j.Count = t.level(), t.limit, min(t.seen, some.n), over
		return j
	}
	j := judgement(SaidFound, "")
	j.Value, j.Limit, j.Points, j.Count, j.Since, j.How = t.level(), t.limit, min(t.seen, some.n), over, t.since, t.d.name()
	if over < some.k {
		j.How, over = "held", -beyond
	}
	j.Why = t.why(over)
	if !t.high {
		j.Since = hold.Since
	}
	j.rise(t.before(), j.Value)
	return j
}

// why says how many batches are beyond what.
func (t *aboveTracker) why(n int) string {
	if t.words != "" && t.wordsOf == n {
		return t.words
	}
	t.wordsOf, t.words = n, fmt.Sprintf("%d of %d batches %s the limit", n, t.d.spec.Batches.n, t.d.name())
	if n <= 0 {
		t.words = fmt.Sprintf("%d of %d batches not back at %s", -n, t.d.spec.Batches.n, t.d.recover.text)
	}
	return t.words
}

// before is the level as long as nothing was beyond, or the limit where it always was.
func (t *aboveTracker) before() float64 {
	if t.anyUsual {
		return t.usual
	}
	return t.limit
}

func (t *aboveTracker) points() int { return t.seen }

func (t *aboveTracker) reset() {
	*t = aboveTracker{d: t.d, newest: t.newest, pool: t.pool}
	if t.pool != nil {
		t.pool.seen = 0
	}
}
