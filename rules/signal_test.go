package rules

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

// TestSignalsOfARuleFile runs testdata: signals in, and what those that are used
// are worth over the sample batch and each of its operators out.
func TestSignalsOfARuleFile(t *testing.T) {
	datadriven.RunTest(t, "testdata/signals", func(t *testing.T, d *datadriven.TestData) string {
		text := "signals:\n" + indent(d.Input) + "groups:\n  - name: g\n    rules:\n"
		for _, use := range d.CmdArgs {
			text += fmt.Sprintf("      - {alert: %s, signal: %s, rising: {}}\n", use.Key, use.Key)
		}
		p, err := Load(Source{Name: "s.yaml", Data: []byte(text)})
		if err != nil {
			return err.Error() + "\n"
		}
		return worth(p)
	})
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

// worth evaluates the signals of a pack's rules as the engine does.
func worth(p *Pack) string {
	e, q := New(p, Options{}), newQueryState(len(p.rules))
	b := sample()
	var out strings.Builder
	e.memo.next(len(b.Operators))
	for i, r := range p.rules {
		e.memo.of(-1)
		fmt.Fprintf(&out, "%s:", r.signal.name)
		if r.signal.of == OfQuery {
			fmt.Fprintf(&out, " %s", shown(e.value(q, i, b, nil)))
		} else {
			for k := range b.Operators {
				e.memo.of(k)
				fmt.Fprintf(&out, " %s", shown(e.value(q, i, b, &b.Operators[k])))
			}
		}
		if r.signal.expr.duration {
			out.WriteString(" (a duration of the trigger)")
		}
		out.WriteString("\n")
	}
	return out.String()
}

func shown(x float64) string {
	if math.IsNaN(x) {
		return "absent"
	}
	return fmt.Sprint(x)
}

func TestDerivedNamesAreAbsentWhereTheirPartsAre(t *testing.T) {
	b := &event.Batch{}
	b.Reset()
	b.AddOperator()
	b.AddSource()
	b.Values[event.BatchDuration] = 1000
	b.Settle()
	for _, name := range Names(OfOperator) {
		x, err := compileExpression(name, aNumber, noSignals(OfOperator))
		if err != nil {
			t.Fatal(err)
		}
		known := slices.Contains([]string{"batchDuration", "duration_ms", "enveloped", "operators", "sources"}, name)
		if v, _ := x.at(b, &b.Operators[0], &unknownFacts); math.IsNaN(v) == known {
			t.Errorf("%s is %v", name, v)
		}
	}
}

func TestEveryNameCanBeUsedWhereItIsListed(t *testing.T) {
	for _, of := range []SignalOf{OfQuery, OfOperator} {
		for _, name := range Names(of) {
			if _, err := compileExpression(name+" + 0", aNumber, noSignals(of)); err != nil {
				t.Errorf("%s of a %s: %v", name, of, err)
			}
		}
	}
}

func TestImplausibleTimesStayOutOfSums(t *testing.T) {
	b := sample()
	b.Operators[1].Values[event.CommitTime] = 1e12
	b.Operators[1].Values[event.RocksDBCommitFileSyncLatency] = 1e12
	for name, want := range map[string]float64{"state_commit_ms": 200, "state_file_sync_ms": 100} {
		x, err := compileExpression(name, aNumber, noSignals(OfQuery))
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := x.at(b, nil, &unknownFacts); v != want {
			t.Errorf("%s is %v, want the %v of the other operator", name, v, want)
		}
	}
}
