package rules

import (
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// groupsNamed are the keys of the groups that the pack's second rule judges.
func groupsNamed(e *Engine) string {
	var out []string
	for _, j := range e.Status(true).Groups[0].Rules[1].Judgements {
		out = append(out, j.Group+" "+j.Said.String())
	}
	return strings.Join(out, ", ")
}

// TestAFleetHasTheClustersWhoseQueriesAreThere: a cluster is judged from its first query
// on, whatever is known of that, and until its last one is gone.
func TestAFleetHasTheClustersWhoseQueriesAreThere(t *testing.T) {
	e := New(scriptedPack(t, `      - {watch: Slow, signal: rows, rising: {}}
      - {alert: Fleet, fleet: {of: Slow, queries: 2, share: 30%, within: 1h}}
`), Options{})
	s := newStream(e)
	s.everyMs = 5 * minuteMs
	for _, step := range []struct {
		say  rune
		want string
	}{{'t', "east too few points"}, {'c', "east too few points"}} {
		s.play(figures{rows: letters[step.say], updated: 1})
		e.Tick(s.nowMs, nil)
		if got := groupsNamed(e); got != step.want {
			t.Errorf("after %c the groups are %q, want %q", step.say, got, step.want)
		}
	}
	e.Forget(event.QueryID(s.id), s.nowMs, nil)
	e.Tick(s.nowMs+1, nil)
	if got := groupsNamed(e); got != "" {
		t.Errorf("without queries the groups are %q", got)
	}
}
