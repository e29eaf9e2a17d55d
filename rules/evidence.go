package rules

import (
	"maps"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// evidenceColumn is a figure that is watched beside the signal, so that an alert
// can say what else changed when the signal did.
type evidenceColumn struct {
	name  string
	expr  *expression
	unit  string // "count" where the rule file says none
	phase bool   // a part of the trigger: all phases together make its duration
}

// phaseColumns are the parts of a trigger's duration, in seconds, by Spark's names.
var phaseColumns = func() []evidenceColumn {
	var out []evidenceColumn
	add := func(name string, eval Signal) {
		out = append(out, evidenceColumn{name: name, unit: "seconds", phase: true, expr: &expression{text: name, eval: eval}})
	}
	for id := event.FirstPhase + 1; id <= event.LastPhase; id++ {
		add(event.Lookup(id).LabelValue, inSeconds(ofBatch(id)))
	}
	add("unaccounted", inSeconds(leaves["unaccounted_ms"].eval))
	return out
}()

// stateColumns are what the state stores took, in seconds per store: they lie
// inside addBatch and do not add up with the phases.
var stateColumns = func() []evidenceColumn {
	var out []evidenceColumn
	for _, name := range []string{"state_commit", "state_updates", "state_removals", "state_load"} {
		out = append(out, evidenceColumn{name: name, unit: "seconds", expr: &expression{text: name, eval: inSeconds(leaves[name+"_ms"].eval)}})
	}
	return out
}()

func inSeconds(ms Signal) Signal {
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return ms(v, b, o, f) / 1000
	}
}

// evidence compiles the rule's evidence. Where the signal is a duration of the
// trigger, its phases and what the state stores took come with it.
func (c *ruleCompiler) evidence(spec *ruleSpec) []evidenceColumn {
	var out []evidenceColumn
	if len(spec.Evidence) > maxEvidence {
		c.faultf([]any{"evidence"}, "%d pieces of evidence, more than the %d allowed", len(spec.Evidence), maxEvidence)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Evidence)) {
		if !signalName.MatchString(name) {
			c.faultf([]any{"evidence", name}, "evidence %q: a name has letters, digits and underscores only", name)
			continue
		}
		path := c.path + "." + strictyaml.Path("evidence", name)
		if x := c.expression(spec.Evidence[name], aNumber, c.signal.of, path); x != nil {
			out = append(out, evidenceColumn{name: name, unit: "count", expr: x})
		}
	}
	if c.signal.of == OfQuery && c.signal.expr != nil && c.signal.expr.duration {
		out = append(append(out, c.shared(phaseColumns)...), c.shared(stateColumns)...)
	}
	return out
}

// shared gives columns that come with many rules a place in the pack, so that a batch is
// asked for each of them once.
func (c *ruleCompiler) shared(columns []evidenceColumn) []evidenceColumn {
	out := slices.Clone(columns)
	for i := range out {
		x := *out[i].expr
		c.place(&x, "phase "+x.text)
		out[i].expr = &x
	}
	return out
}

// Change is how a figure stands before and after the batch where a finding began.
type Change struct {
	Name, Unit    string
	Before, After float64 // NaN where it was absent
	Phase         bool    // a phase of the trigger
	// Share is the part of the whole rise that this phase makes up: 1 is all of it.
	// 0 for figures that are no phase and for phases that did not grow.
	Share float64
}

// Rise is After - Before, NaN where either is absent.
func (c Change) Rise() float64 { return c.After - c.Before }

// Relative is the rise as a share of what was before, 0 where that is not above zero.
func (c Change) Relative() float64 {
	if !(c.Before > 0) || math.IsNaN(c.After) {
		return 0
	}
	return c.Rise() / c.Before
}

const (
	evidenceBlocks = 28 // blocks kept
	blocksPerSpan  = 12 // blocks in the detector's window
	beforeBlocks   = 12 // blocks that "before" is the median of
	afterBlocks    = 4  // and those of "after"
)

// evidenceRing keeps the means of the evidence over blocks of batches. Medians
// over blocks then say what was before and after, whatever single batches did.
// Memory: 4 bytes x 28 blocks a column, and 12 bytes a column.
type evidenceRing struct {
	sums    []float64 // of the open block
	counts  []int32
	blocks  []float32 // means by block, then column
	first   [evidenceBlocks]int64
	n, head int
	open    Extent // batches and time in the open block
	openMs  int64
	opened  int64 // first batch of the open block
	size    Extent
}

func newEvidenceRing(columns int, over Extent) *evidenceRing {
	return &evidenceRing{
		sums: make([]float64, columns), counts: make([]int32, columns),
		blocks: make([]float32, columns*evidenceBlocks),
		size:   Extent{Batches: max(1, over.Batches/blocksPerSpan), Ms: over.Ms / blocksPerSpan},
	}
}

// push adds one batch.
func (r *evidenceRing) push(columns []evidenceColumn, batch, atMs int64, b *event.Batch, o *event.Operator, f *Facts, m *memo) {
	if r.open.Batches == 0 {
		r.opened, r.openMs = batch, atMs
	}
	r.open.Batches++
	for i := range columns {
		if x, _ := m.at(columns[i].expr, b, o, f); !math.IsNaN(x) {
			r.sums[i] += x
			r.counts[i]++
		}
	}
	if r.size.Met(r.open.Batches, atMs-r.openMs) {
		r.closeBlock()
	}
}

func (r *evidenceRing) closeBlock() {
	at := (r.head + r.n) % evidenceBlocks
	if r.n == evidenceBlocks {
		r.head = (r.head + 1) % evidenceBlocks
	} else {
		r.n++
	}
	r.first[at] = r.opened
	row := r.blocks[at*len(r.sums):][:len(r.sums)]
	for i := range row {
		row[i] = float32(r.sums[i] / float64(r.counts[i])) // 0/0 is NaN: absent
		r.sums[i], r.counts[i] = 0, 0
	}
	r.open = Extent{}
}

func (r *evidenceRing) reset() {
	r.n, r.head, r.open = 0, 0, Extent{}
	clear(r.sums)
	clear(r.counts)
}

// split returns how many blocks ended before the batch.
func (r *evidenceRing) split(since int64) int {
	for k := 1; k < r.n; k++ {
		if r.first[(r.head+k)%evidenceBlocks] > since {
			return k - 1
		}
	}
	return max(0, r.n-1)
}

// median of a column over blocks [from, until), NaN where it was absent.
func (r *evidenceRing) median(column, from, until int) float64 {
	var buf [evidenceBlocks]float64
	n := 0
	for k := max(0, from); k < until; k++ {
		if x := r.blocks[((r.head+k)%evidenceBlocks)*len(r.sums)+column]; x == x {
			buf[n] = float64(x)
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(buf[:n])
	return (buf[n/2] + buf[(n-1)/2]) / 2
}

// before fills the medians of the blocks before the batch where a finding began;
// the oldest third stands in where that batch is out of reach.
func (r *evidenceRing) before(since int64, out []float64) []float64 {
	until := r.split(since)
	if until == 0 {
		until = max(1, r.n/3)
	}
	for c := range r.sums {
		out = append(out, r.median(c, until-beforeBlocks, min(until, r.n)))
	}
	return out
}

// after fills the medians of the newest blocks.
func (r *evidenceRing) after(out []float64) []float64 {
	for c := range r.sums {
		out = append(out, r.median(c, r.n-afterBlocks, r.n))
	}
	return out
}

// changes puts before and after side by side, with each phase's share of what
// the phases grew by together.
func changes(columns []evidenceColumn, before, after []float64) []Change {
	out := make([]Change, len(columns))
	grown := 0.0
	for i := range columns {
		out[i] = Change{Name: columns[i].name, Unit: columns[i].unit, Phase: columns[i].phase, Before: math.NaN(), After: math.NaN()}
		if i < len(before) && i < len(after) {
			out[i].Before, out[i].After = before[i], after[i]
		}
		if rise := out[i].Rise(); out[i].Phase && rise > 0 {
			grown += rise
		}
	}
	for i := range out {
		if rise := out[i].Rise(); out[i].Phase && rise > 0 && grown > 0 {
			out[i].Share = rise / grown
		}
	}
	return out
}
