package rules

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// bound is what values are held against: a number in the signal's unit, or an
// expression with a number of its own for each batch.
type bound struct {
	text     string
	constant float64 // NaN for an expression
	input    int     // place among the detector's inputs
}

// measure is how a number with a unit looks, so that a wrong unit is not taken for
// a wrong expression.
var measure = regexp.MustCompile(`^[0-9.]+ ?[A-Za-z%][A-Za-z0-9%]*$`)

// bound reads a number or an expression, which it adds to ins.
func (c *ruleCompiler) bound(text string, keys []any, ins *[]*expression) bound {
	x, err := c.inUnit(text)
	switch {
	case err == nil:
		return bound{text: text, constant: x}
	case measure.MatchString(text):
		c.faultf(keys, "%s: %v", keys[len(keys)-1], err)
		return bound{text: text, constant: math.NaN(), input: -1}
	}
	return bound{text: text, constant: math.NaN(), input: c.input(text, keys, ins)}
}

// input adds an expression to a detector's inputs and returns its place.
func (c *ruleCompiler) input(text string, keys []any, ins *[]*expression) int {
	if x := c.expression(text, aNumber, c.signal.of, c.path+"."+strictyaml.Path(keys...)); x != nil {
		*ins = append(*ins, x)
	}
	return len(*ins) - 1
}

// fixed reports whether the bound is the same for every batch.
func (b bound) fixed() bool { return !math.IsNaN(b.constant) }

// at is the bound for a batch with these inputs; NaN where it is not known.
func (b bound) at(in []float64) float64 {
	if b.fixed() {
		return b.constant
	}
	if b.input < 0 || b.input >= len(in) {
		return math.NaN()
	}
	return in[b.input]
}

// judgement is an empty one: no batch, no limit, no time.
func judgement(said Said, format string, args ...any) Judgement {
	nan := math.NaN()
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return Judgement{
		Said: said, Value: nan, Since: -1, Limit: nan, EtaMs: nan, EtaLowMs: nan, EtaHighMs: nan, Why: format,
	}
}

// tooFew says how far batches are from what is asked for.
func tooFew(batches int, ms int64, want Extent) Judgement {
	var parts []string
	if want.Batches > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d batches", min(batches, want.Batches), want.Batches))
	}
	if want.Ms > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s", Extent{Ms: min(ms, want.Ms) / 1000 * 1000}, Extent{Ms: want.Ms}))
	}
	return judgement(SaidTooFew, "too few points: %s", strings.Join(parts, ", "))
}

// tooRare says that batches come too seldom.
func tooRare(batches int) Judgement {
	return judgement(SaidTooFew, "too few points: fewer than %d batches in 7 days", batches)
}

// unknown says that something that the verdict hangs on was not told.
func unknown(what, text string) Judgement {
	return judgement(SaidCannotTell, "cannot tell: %s (%s) is not known", what, text)
}

// rise fills a judgement's move from start to end.
func (j *Judgement) rise(start, end float64) {
	j.Start, j.End, j.Rise, j.Relative = start, end, end-start, 0
	if start > 0 {
		j.Relative = j.Rise / start
	}
}
