package rules

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

// sample is a batch with figures of which every case knows the values.
func sample() *event.Batch {
	b := &event.Batch{}
	b.Reset()
	b.ID, b.StartMs, b.WatermarkMs, b.EventTimeMaxMs = 7, startMs, startMs-60_000, startMs-10_000
	b.Values[event.BatchDuration], b.Values[event.DurationTriggerExecution] = 3000, 3000
	b.Values[event.DurationAddBatch], b.Values[event.DurationWalCommit] = 2400, 200
	b.Values[event.NumInputRows] = 500
	for i := range 2 {
		o := b.AddOperator()
		o.Values[event.NumStateStoreInstances], o.Values[event.NumShufflePartitions] = 8, 2
		o.Values[event.RocksDBCommitFileSyncLatency] = 400
		o.Values[event.CommitTime] = 1600
		o.Values[event.NumRowsUpdated] = float64(100 * (i + 1))
		o.Values[event.RocksDBGetCount] = 0
	}
	b.Operators[0].Name = "symmetricHashJoin"
	src := b.AddSource()
	src.Backlog = 40
	b.AddSource()
	b.Settle()
	return b
}

// TestExpressions runs testdata: an expression in, its value over the sample
// batch or the place of its fault out.
func TestExpressions(t *testing.T) {
	datadriven.RunTest(t, "testdata/expressions", func(t *testing.T, d *datadriven.TestData) string {
		sc, want := noSignals(OfOperator), aNumber
		if d.Cmd == "query" {
			sc = noSignals(OfQuery)
		}
		if d.HasArg("condition") {
			want = aTruth
		}
		var b strings.Builder
		for _, text := range strings.Split(d.Input, "\n") {
			fmt.Fprintln(&b, outcome(text, want, sc))
		}
		return b.String()
	})
}

func outcome(text string, want sort, sc *scope) string {
	x, err := compileExpression(text, want, sc)
	var ee *exprError
	if errors.As(err, &ee) {
		return fmt.Sprintf("at %d: %v", ee.offset, err)
	}
	b := sample()
	var o *event.Operator
	if sc.of == OfOperator {
		o = &b.Operators[0]
	}
	v, plausible := x.at(b, o, &unknownFacts)
	switch {
	case !plausible:
		return "implausible"
	case math.IsNaN(v):
		return "absent"
	}
	return fmt.Sprint(v)
}

func TestExpressionsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"length": strings.Repeat("1 + ", 600) + "1",
		"nodes":  strings.Repeat("1+", 300) + "1",
		"depth":  strings.Repeat("-(", 40) + "1" + strings.Repeat(")", 40),
	} {
		if _, err := compileExpression(text, aNumber, noSignals(OfQuery)); err == nil {
			t.Errorf("%s: a text of %d bytes was accepted", name, len(text))
		}
	}
}

func TestTimesThatCannotBeTrueAreNoValue(t *testing.T) {
	b := sample()
	b.Operators[0].Values[event.RocksDBCommitFileSyncLatency] = 5.6e10
	x, err := compileExpression("rocksdbCommitFileSyncLatencyMs / 1000 / stores", aNumber, noSignals(OfOperator))
	if err != nil {
		t.Fatal(err)
	}
	if v, plausible := x.at(b, &b.Operators[0], &unknownFacts); plausible || !math.IsNaN(v) {
		t.Errorf("got %v, %v, want an implausible NaN", v, plausible)
	}
}

func TestNamesCoverSparksKeysAndDerivedOnes(t *testing.T) {
	has := func(list []string, name string) bool {
		for _, n := range list {
			if n == name {
				return true
			}
		}
		return false
	}
	op, q := Names(OfOperator), Names(OfQuery)
	for _, name := range []string{"rocksdbGetCount", "stores", "rows_updated", "numInputRows", "durationMs.addBatch"} {
		if !has(op, name) {
			t.Errorf("an operator does not know %s", name)
		}
	}
	if has(q, "rocksdbGetCount") || has(q, "stores") || !has(q, "duration_ms") || !has(q, "rows_updated") {
		t.Error("the names of a query are wrong")
	}
}

// FuzzExpression: no text panics, and what compiles evaluates.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"rocksdbGetCount / 0", "1 ?? 2", "min(1, max(2, 3))", "durationMs.addBatch > 1 ? 1 : 2", "not (1 < 2)",
		"a.b.c", "\"x\"", "[1, 2][0]", "let x = 1; x", "1 | min(2)", "map([1], #)", "((((", "1e999", "0x7fffffffffffffffff",
		"stores?.x", "durationMs[\"addBatch\"]", "é + 1", "1 // c", "-1 ** 2", "true and false or not true", "`x`", "1..2", "$env", "if true {1} else {2}",
	} {
		f.Add(seed)
	}
	b := sample()
	f.Fuzz(func(t *testing.T, text string) {
		for _, of := range []SignalOf{OfQuery, OfOperator} {
			for _, want := range []sort{aNumber, aTruth} {
				x, err := compileExpression(text, want, noSignals(of))
				var ee *exprError
				if err != nil && (!errors.As(err, &ee) || ee.offset < 0 || ee.offset > len(text) || ee.msg == "") {
					t.Fatalf("%q: bad error %#v", text, err)
				}
				if err != nil {
					continue
				}
				v, _ := x.at(b, operatorOf(b, of), &unknownFacts)
				if math.IsInf(v, 0) || want == aTruth && v != 0 && v != 1 && v == v {
					t.Fatalf("%q: got %v", text, v)
				}
			}
		}
	})
}

func operatorOf(b *event.Batch, of SignalOf) *event.Operator {
	if of == OfQuery {
		return nil
	}
	return &b.Operators[1]
}
