package rules

import (
	"testing"

	"github.com/stategauge/stategauge/event"
)

// counted is an expression that counts how often it is evaluated.
func counted(slot int, n *int) *expression {
	return &expression{slot: slot, eval: func(v *event.Vector, _ *event.Batch, _ *event.Operator, _ *Facts) float64 {
		*n++
		return v[event.NumRowsUpdated]
	}}
}

func TestAnExpressionIsEvaluatedOnceForEachOperatorOfABatch(t *testing.T) {
	n, b := 0, sample()
	x, again := counted(1, &n), counted(1, &n)
	var m memo
	m.forget(1)
	for batch := range 3 {
		m.next(len(b.Operators))
		for range 2 {
			for k := range b.Operators {
				m.of(k)
				o := &b.Operators[k]
				want := o.Values[event.NumRowsUpdated]
				for _, y := range []*expression{x, again} {
					if got, plausible := m.at(y, b, o, &unknownFacts); got != want && want == want || !plausible {
						t.Errorf("operator %d: got %v, want %v", k, got, want)
					}
				}
			}
		}
		if want := (batch + 1) * len(b.Operators); n != want {
			t.Fatalf("evaluated %d times after batch %d, want %d", n, batch, want)
		}
	}
}

func TestAnExpressionWithoutAPlaceIsEvaluatedEachTime(t *testing.T) {
	n, b := 0, sample()
	x := counted(0, &n)
	var m memo
	m.forget(0)
	m.next(0)
	for range 3 {
		m.at(x, b, nil, &unknownFacts)
	}
	if n != 3 {
		t.Errorf("evaluated %d times, want 3", n)
	}
}

func TestExpressionsOfOneTextShareAPlace(t *testing.T) {
	p := defaultPack(t)
	places := map[string]int{}
	for _, r := range p.rules {
		if r.ofEvents() {
			continue
		}
		x := r.signal.expr
		if x.slot < 1 || x.slot > p.expressions {
			t.Errorf("%s: place %d of %d", r.alert, x.slot, p.expressions)
		}
		if known, ok := places[x.key]; ok && known != x.slot {
			t.Errorf("%s: places %d and %d for %q", r.alert, known, x.slot, x.key)
		}
		places[x.key] = x.slot
	}
}
