package rules

import (
	"fmt"
	"testing"
)

// TestAReloadLeavesEachRuleItsOwnValues reloads packs whose expressions have other places:
// what stays from before must not read the values of another.
func TestAReloadLeavesEachRuleItsOwnValues(t *testing.T) {
	pack := func(signals, rules string) *Pack {
		return loaded(t, "signals:\n  took: {of: query, value: duration_ms / 1000, unit: seconds}\n"+signals+"groups:\n  - name: g\n    rules:\n"+rules+
			"      - {alert: Took, signal: took, evidence: {rows: input_rows}, rising: {over: 90 batches, min_points: 40, by: 10%, adjusted_for: input_rows}}\n")
	}
	const rows, other = "  a: {of: query, value: input_rows * 3}\n", "  a: {of: query, value: input_rows}\n  b: {of: query, value: input_rows + 1}\n"
	const more = "      - {alert: A, signal: a, when: input_rows > 0, rising: {over: 90 batches, min_points: 40, by: 10%}}\n"
	s := newStream(New(pack("", ""), Options{}))
	for i, p := range []*Pack{pack("", ""), pack(rows, more), pack(other, more), pack("", "")} {
		s.e.Reload(p, s.nowMs, nil)
		for range 100 {
			s.play(figures{duration: 2000, rows: 77})
		}
		q := s.e.ordered()[0]
		list := q.rules[len(q.rules)-1]
		evidence := fmt.Sprint(list[0].evidence.after())
		if took := list[0].judged.Value; took != 2 || evidence[:3] != "[77" {
			t.Errorf("after reload %d it took %v s, want 2; evidence %s", i, took, evidence)
		}
		for _, set := range q.columns {
			for _, c := range set.list {
				if c != nil && c.rule != nil && c.rule.signal.expr.places != s.e.memo.places {
					t.Errorf("after reload %d a column is evaluated apart from the others", i)
				}
			}
		}
	}
}
