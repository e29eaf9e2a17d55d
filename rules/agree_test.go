package rules

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/expr-lang/expr"

	"github.com/stategauge/stategauge/event"
)

// generator writes random expressions over names that all have a value.
type generator struct{ r *rand.Rand }

var generatedNames = map[string]event.MetricID{
	"rocksdbGetCount": event.RocksDBGetCount, "rocksdbPutCount": event.RocksDBPutCount,
	"rocksdbBytesCopied": event.RocksDBBytesCopied, "numRowsUpdated": event.NumRowsUpdated,
}

func (g generator) number(depth int) string {
	if depth == 0 {
		return g.leaf()
	}
	a, b := g.number(depth-1), g.number(depth-1)
	switch g.r.IntN(9) {
	case 0:
		return fmt.Sprintf("(%s ? %s : %s)", g.truth(depth-1), a, b)
	case 1:
		return fmt.Sprintf("min(%s, %s, %s)", a, b, g.leaf())
	case 2:
		return fmt.Sprintf("max(%s, %s)", a, b)
	case 3:
		return fmt.Sprintf("(-%s)", a)
	case 4:
		return fmt.Sprintf("(%s / %s)", a, b)
	case 5:
		return fmt.Sprintf("(%s ?? %s)", a, b)
	}
	return fmt.Sprintf("(%s %s %s)", a, []string{"+", "-", "*"}[g.r.IntN(3)], b)
}

func (g generator) leaf() string {
	if g.r.IntN(2) == 0 {
		return fmt.Sprintf("%d.5", g.r.IntN(20))
	}
	names := []string{"rocksdbGetCount", "rocksdbPutCount", "rocksdbBytesCopied", "numRowsUpdated"}
	return names[g.r.IntN(len(names))]
}

func (g generator) truth(depth int) string {
	if depth <= 0 || g.r.IntN(2) == 0 {
		op := []string{"<", "<=", ">", ">=", "==", "!="}[g.r.IntN(6)]
		return fmt.Sprintf("%s %s %s", g.leaf(), op, g.leaf())
	}
	a, b := g.truth(depth-1), g.truth(depth-1)
	switch g.r.IntN(3) {
	case 0:
		return fmt.Sprintf("not (%s)", a)
	case 1:
		return fmt.Sprintf("(%s and %s)", a, b)
	}
	return fmt.Sprintf("(%s or %s)", a, b)
}

// TestClosuresAgreeWithTheLibrary evaluates random expressions by closure and by
// the library's own machine. They differ by design where something is infinite or
// no number: there a signal is absent.
func TestClosuresAgreeWithTheLibrary(t *testing.T) {
	compared := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		b := &event.Batch{}
		b.Reset()
		o := b.AddOperator()
		env := map[string]any{}
		for name, id := range generatedNames {
			o.Values[id] = float64(r.IntN(100))
			env[name] = o.Values[id]
		}
		text := generator{r}.number(4)
		want, err := eval(text, env)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		x, err := compileExpression(text, aNumber, noSignals(OfOperator))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, _ := x.at(b, o, &unknownFacts)
		if math.IsNaN(got) {
			continue // a division by zero somewhere
		}
		compared++
		if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s\n with %v: got %v, want %v", text, env, got, want)
		}
	}
	if compared < 250 {
		t.Errorf("only %d expressions were compared", compared)
	}
}

func eval(text string, env map[string]any) (float64, error) {
	program, err := expr.Compile(text, expr.Env(env), expr.AsFloat64())
	if err != nil {
		return 0, err
	}
	x, err := expr.Run(program, env)
	if err != nil {
		return 0, err
	}
	return x.(float64), nil
}
