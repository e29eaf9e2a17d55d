package rules

import (
	"fmt"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules/trend"
)

// restartingSpec is the detector `restarting`: a query that is started over and
// over.
type restartingSpec struct {
	Starts int                 `yaml:"starts"` // so many; default 3
	Within strictyaml.Duration `yaml:"within"` // by the sender's clock; default 15m
}

// restarting counts the starts of runs since the query was last stopped, or last
// got going: the run before each of them ended by an exception or without a word.
// Found stays found, also when nobody starts the query any more, until a run
// executes three batches, and more than twice as many as those before it did.
type restarting struct {
	spec     restartingSpec
	withinMs int64
}

func (s *restartingSpec) valueUnit() string { return "count" }

func (s *restartingSpec) compile(c *ruleCompiler, key string) detector {
	d := &restarting{spec: *s, withinMs: s.Within.Std().Milliseconds()}
	if s.Starts == 0 {
		d.spec.Starts = 3
	}
	if s.Within == 0 {
		d.spec.Within = strictyaml.Duration(15 * 60e9)
		d.withinMs = d.spec.Within.Std().Milliseconds()
	}
	if d.spec.Starts < 2 || d.spec.Starts > maxStarts {
		c.faultf([]any{key, "starts"}, "starts (%d) must lie between 2 and %d", s.Starts, maxStarts)
	}
	return d
}

func (d *restarting) name() string                      { return "restarting" }
func (d *restarting) inputs() []*expression             { return nil }
func (d *restarting) span() Extent                      { return Extent{} }
func (d *restarting) newWatcher() watcher               { return view(d.judge) }
func (d *restarting) newTracker(*trend.Scratch) tracker { return nil }
func (d *restarting) lasts() bool                       { return true }

func (d *restarting) describe() string {
	return fmt.Sprintf("%d starts within %s, and no run that got going", d.spec.Starts, shortDuration(d.spec.Within.Std()))
}

func (d *restarting) judge(q *queryState, _ int64) Judgement {
	s := &q.story.starts
	n, took := s.within(d.withinMs)
	j := noted(SaidClear, "a run got going, or was stopped")
	j.Value, j.Limit, j.Count = float64(n), float64(d.spec.Starts), n
	if n < d.spec.Starts {
		return j
	}
	j.Said, j.How, j.Since, j.Text = SaidFound, "starts", q.nextBatch(), s.last.class
	j.Why = fmt.Sprintf("%d starts within %s", n, spell(float64(took)))
	switch {
	case s.last.text != "":
		j.Why += ", the newest exception: " + s.last.text
	case s.last.class == "":
		j.Text = "no word"
		j.Why += "; no run before them said why it ended: the driver was killed"
	}
	return j
}
