package rules

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// change is a kind of thing that happens to a query.
type change uint8

// The changes.
const (
	changeShared     change = iota // two runs work on one checkpoint
	changeRewound                  // batches run again under their old ids
	changeReset                    // the history began anew under a new id
	changePartitions               // a run has another number of partitions than the one before
	changeInstances                // state is evaluated several times a batch
	changeMissed                   // batches of a run whose events never came
	changeAcross                   // the same between runs, or while nobody listened
	changeRepaired                 // a damaged snapshot was passed over
	changeReloaded                 // state stores were rebuilt from the checkpoint
	numChanges
)

// changeNames are the words that rule files use.
var changeNames = map[string]change{
	"shared_runs": changeShared, "rewound": changeRewound, "checkpoint_reset": changeReset, "partitions": changePartitions,
	"instances": changeInstances, "missed": changeMissed, "missed_across_runs": changeAcross, "repaired": changeRepaired,
	"reloaded": changeReloaded,
}

// occurrencesKept is how many occurrences of a kind are kept.
const occurrencesKept = 16

// occurrence is one thing that happened.
type occurrence struct {
	atMs  int64   // by the sender's clock
	batch int64   // position, -1 where it belongs to none
	count float64 // of what was counted: batches missed, snapshots passed over
	text  string  // one word
	why   string  // what was seen
}

// happened are the newest occurrences of one kind, oldest first.
type happened []occurrence

// happenings are what happened to a query, and what still stands.
type happenings struct {
	of       [numChanges]happened
	standing [numChanges]bool // it is so still, however long ago it began
}

// note adds an occurrence.
func (s *story) note(kind change, o occurrence) {
	list := s.changes.of[kind]
	if len(list) == occurrencesKept {
		list = slices.Delete(list, 0, 1)
	}
	s.changes.of[kind] = append(list, o)
}

// timeOf dates an update by the sender's clock, as far as that is known.
func (s *story) timeOf(u *event.Update) int64 {
	at := u.Event.AtMs
	if b := u.Event.Batch; b != nil {
		at = b.StartMs
	}
	if at == event.Absent {
		at = s.lastMs
	}
	return at
}

// missed notes batches that never came.
func (s *story) missed(u *event.Update) {
	kind, word := changeMissed, u.MissedReason.String()
	switch {
	case u.MissedReason == event.MissedAcrossRuns:
		kind, word = changeAcross, "between runs"
	case u.MissedReason == event.MissedSender || s.wasOut(u):
		word = "lost on the way"
	}
	s.note(kind, occurrence{
		atMs: s.timeOf(u), batch: s.place, count: float64(u.Missed), text: word,
		why: fmt.Sprintf("%s never came", several(u.Missed, "batch", "batches")),
	})
}

// outMs is how long after a silence batches that never came are put down to it.
const outMs = 3600 * 1000

// wasOut reports whether nothing came of the query for too long a while ago: what
// is missing was lost then, and not by a full queue of the listener.
func (s *story) wasOut(u *event.Update) bool {
	at := wordAt(u)
	if s.outMs > 0 && at-s.outMs < outMs {
		return true
	}
	limit, known := s.limitMs(longSilence, usualFloorMs, math.NaN())
	return known && s.wordMs != event.Absent && float64(at-s.wordMs) > limit
}

// several writes a count with its noun.
func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// changedSpec is the detector `changed`: something that happened to a query.
type changedSpec struct {
	What   string              `yaml:"what"`
	Times  int                 `yaml:"times"`  // so often, default 1
	Within strictyaml.Duration `yaml:"within"` // default 1h
	// Critical: only queries that the configuration marks as critical, or only the
	// others; both by default.
	Critical *bool `yaml:"critical"`
}

// changedDetector finds what happened at least so often within a stretch of the sender's
// time. It is over once the query has lived on for that long: while the query is
// silent nothing is.
type changedDetector struct {
	spec     changedSpec
	kind     change
	withinMs int64
}

func (s *changedSpec) valueUnit() string { return "count" }

func (s *changedSpec) compile(c *ruleCompiler, key string) detector {
	d := &changedDetector{spec: *s}
	known := slices.Sorted(maps.Keys(changeNames))
	if err := oneOf("what", s.What, known); err != nil {
		c.faultf([]any{key, "what"}, "%w", err)
	}
	d.kind = changeNames[s.What]
	if s.Times == 0 {
		d.spec.Times = 1
	}
	if s.Within == 0 {
		d.spec.Within = strictyaml.Duration(time.Hour)
	}
	d.withinMs = d.spec.Within.Std().Milliseconds()
	if d.spec.Times < 1 || d.spec.Times > occurrencesKept {
		c.faultf([]any{key, "times"}, "times (%d) must lie between 1 and %d", s.Times, occurrencesKept)
	}
	return d
}

func (d *changedDetector) name() string                      { return "changed" }
func (d *changedDetector) inputs() []*expression             { return nil }
func (d *changedDetector) span() Extent                      { return Extent{} }
func (d *changedDetector) newWatcher() watcher               { return changedView{view(d.judge), d} }
func (d *changedDetector) newTracker(*trend.Scratch) tracker { return nil }

func (d *changedDetector) describe() string {
	text := fmt.Sprintf("%s %d times within %s", d.spec.What, d.spec.Times, shortDuration(d.spec.Within.Std()))
	switch {
	case d.spec.Critical == nil:
	case *d.spec.Critical:
		text += ", of critical queries"
	default:
		text += ", of queries that are not critical"
	}
	return text
}

func (d *changedDetector) judge(q *queryState, _ int64) Judgement {
	if d.spec.Critical != nil && *d.spec.Critical != (q.facts[FactCritical] == 1) {
		return noted(SaidClear, "the rule is about other queries: see critical")
	}
	c := &q.story.changes
	list := c.of[d.kind]
	n := len(list)
	for n > 0 && q.story.lastMs-list[len(list)-n].atMs >= d.withinMs {
		n--
	}
	if n < d.spec.Times && !c.standing[d.kind] || len(list) == 0 {
		return d.otherwise(q, n)
	}
	list = list[len(list)-max(1, n):]
	newest := &list[len(list)-1]
	j := noted(SaidFound, newest.why)
	j.Value, j.How, j.Text, j.Count, j.Since = 0, "event", newest.text, n, list[0].batch
	for i := range list {
		j.Value += list[i].count
	}
	if n > 1 {
		j.Why = fmt.Sprintf("%d times within %s, at last: %s", n, spell(float64(newest.atMs-list[0].atMs)), newest.why)
	}
	return j
}

// changedView is a watcher that knows without a look that nothing has happened.
type changedView struct {
	view
	d *changedDetector
}

// neverAgain is why nothing is found where nothing happened.
const neverAgain = "it did not happen again"

// stays reports whether judge would say the same as before: most queries never have what
// a rule is about.
func (v changedView) stays(q *queryState, before *Judgement) bool {
	c := &q.story.changes
	return len(c.of[v.d.kind]) == 0 && before.Said == SaidClear && before.Count == 0 && before.Why == neverAgain &&
		v.d.spec.Critical == nil && !c.standing[v.d.kind] && q.story.reload.doubt == ""
}

// otherwise says why nothing is found.
func (d *changedDetector) otherwise(q *queryState, n int) Judgement {
	if r := &q.story.reload; d.kind == changeReloaded && r.doubt != "" {
		return noted(SaidCannotTell, r.doubt)
	}
	j := noted(SaidClear, neverAgain)
	j.Value, j.Count = float64(n), n
	return j
}
