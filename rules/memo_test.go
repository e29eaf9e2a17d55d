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
	m.forget(1, nil)
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
	m.forget(0, nil)
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
		if x.slot < 1 || x.slot > p.places.count() {
			t.Errorf("%s: place %d of %d", r.alert, x.slot, p.places.count())
		}
		if known, ok := places[x.key]; ok && known != x.slot {
			t.Errorf("%s: places %d and %d for %q", r.alert, known, x.slot, x.key)
		}
		places[x.key] = x.slot
	}
}

func TestWhatLooksAtNoOperatorIsEvaluatedOnceForAllOfThem(t *testing.T) {
	b := sample()
	for text, wide := range map[string]bool{
		"(interval_trigger ?? 0) == 1 and duration_ms > 0": true, "watermark_lag_ms ?? 7": true, "input_rows * 2": true,
		"numRowsUpdated": false, "duration_ms / stores": false, "rows_updated + input_rows": false, "late_share": false,
		"state_memory_bytes": false, "is_rocksdb == 1": false,
	} {
		x, err := compileExpression(text, aNumber, noSignals(OfOperator))
		if err != nil {
			if x, err = compileExpression(text, aTruth, noSignals(OfOperator)); err != nil {
				t.Fatal(err)
			}
		}
		if x.wide != wide {
			t.Errorf("%s: wide is %v, want %v", text, x.wide, wide)
		}
		x.slot = 1
		n, eval := 0, x.eval
		x.eval = func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
			n++
			return eval(v, b, o, f)
		}
		var m memo
		m.forget(1, nil)
		m.next(len(b.Operators))
		for k := range b.Operators {
			m.of(k)
			o := &b.Operators[k]
			want, _ := (&expression{eval: eval, times: x.times}).at(b, o, &unknownFacts)
			if got, _ := m.at(x, b, o, &unknownFacts); got != want && want == want {
				t.Errorf("%s of operator %d: got %v, want %v", text, k, got, want)
			}
		}
		if wide && n != 1 {
			t.Errorf("%s: evaluated %d times for %d operators", text, n, len(b.Operators))
		}
	}
}

func TestAQuerysExpressionIsNotWide(t *testing.T) {
	x, err := compileExpression("input_rows", aNumber, noSignals(OfQuery))
	if err != nil {
		t.Fatal(err)
	}
	if x.wide {
		t.Error("a query has no operators to look at nothing of")
	}
}
