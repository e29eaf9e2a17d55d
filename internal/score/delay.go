package score

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// delayCase is a fault whose delay has a goal, and is measured over many plays: two
// or three say little of how late an alert may be.
type delayCase struct {
	scenario string // of those that come with stategauge
	fault    string
	size     float64
	every    time.Duration // trigger interval in place of the scenario's; 0: its own
	batches  int64         // of each play; 0: the scenario's own number
	unit     string
	goals    []delayGoal
}

// delayGoal is the most that the median delay may be of the first alert that is at
// least so severe, in the case's unit; 0: it is measured and has no goal.
type delayGoal struct {
	severity string
	most     float64
}

// Units of delays.
const (
	inBatches   = "batches"
	inIntervals = "usual intervals"
)

// At size 1.5 a ramp over 100 batches is half a percent a batch. What goes on behind a
// batch that hangs is of no interest.
var delayCases = []delayCase{
	{scenario: "commit-sync-rising-ramp", fault: "+0.5 % a batch, over 100 batches", size: 1.5, unit: inBatches, goals: []delayGoal{{"info", 70}, {"ticket", 120}}},
	{scenario: "commit-sync-rising", fault: "+50 % from one batch to the next", size: 1.5, unit: inBatches, goals: []delayGoal{{"info", 40}, {"ticket", 65}}},
	hungAt(10*time.Second, 0), hungAt(time.Minute, 5), hungAt(15*time.Minute, 0),
}

// hungAt is a batch that hangs at some interval. The goal is set at intervals of a minute:
// the least length of a silence that is judged is many intervals of ten seconds, and a part
// of one of 15 minutes, so that a number of intervals says nothing there.
func hungAt(every time.Duration, goal float64) delayCase {
	return delayCase{scenario: "stalled-with-envelope", fault: "a batch hangs, heartbeats go on", every: every, batches: 155, unit: inIntervals, goals: []delayGoal{{"page", goal}}}
}

// GoalRow is a delay beside its goal, over many plays of one fault.
type GoalRow struct {
	Symptom  string `json:"symptom"`
	Scenario string `json:"scenario"`
	Fault    string `json:"fault"`
	Trigger  string `json:"trigger"`
	Severity string `json:"severity"` // of the alert, or a graver one
	Unit     string `json:"unit"`     // of what follows: batches, or usual intervals
	Plays    int    `json:"plays"`
	Found    int    `json:"found"`
	// Median and P90 are over all plays, those that found nothing counting as endless;
	// -1 is endless.
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
	Goal   float64 `json:"goal,omitempty"` // of the median; 0: none
	// Rise is by what share the upload time per store went up, the median over plays; 0
	// for other faults.
	Rise float64 `json:"rise,omitempty"`
	// Early is in how many plays an alert with the symptom came before the fault.
	Early int `json:"early"`
}

// delayPlay is one play of a case, and what came of it.
type delayPlay struct {
	Outcome outcome
	Early   map[string]bool // severities of alerts with the symptom that came too soon
	Rise    float64
}

// delays measures every case.
func (x *runner) delays(ctx context.Context) (rows []GoalRow, err error) {
	if x.Delays <= 0 {
		return nil, nil
	}
	for i := range delayCases {
		c := &delayCases[i]
		sc, err := c.load()
		if err != nil {
			return rows, err
		}
		plays, err := x.delayPlays(ctx, c, sc, playCost, "delay of "+c.scenario)
		if err != nil {
			return rows, fmt.Errorf("delays of %s: %w", c.scenario, err)
		}
		rows = append(rows, c.rows(sc, plays)...)
	}
	return rows, nil
}

// load reads the case's scenario and gives it the case's interval. Batches get no larger
// by that: how large they are is not what is measured, and takes time to play.
func (c *delayCase) load() (*scenario.Scenario, error) {
	file := c.scenario + ".yml"
	data, err := fs.ReadFile(configs.Scenarios(), file)
	if err != nil {
		return nil, fmt.Errorf("scenario of a delay: %w", err)
	}
	sc, err := scenario.Load(file, data)
	if err != nil {
		return nil, err
	}
	if own := sc.Query.Trigger.Interval.Std(); c.every > own {
		for i := range sc.Query.Sources {
			sc.Query.Sources[i].RowsPerSecond *= own.Seconds() / c.every.Seconds()
		}
	}
	if c.every > 0 {
		sc.Query.Trigger.Interval = strictyaml.Duration(c.every)
	}
	return sc, nil
}

// delayPlays measures the plays of a case. It says what they are, and that each costs so
// much.
func (x *runner) delayPlays(ctx context.Context, c *delayCase, sc *scenario.Scenario, cost float64, what string) ([]delayPlay, error) {
	out := make([]delayPlay, x.Delays)
	err := each(ctx, x.Parallel, x.Delays, func(i int) error {
		p := &play{scenario: sc, size: c.size, seed: x.FirstSeed + uint64(i)}
		key, err := x.cache.file(sc, p.options(c.batches))
		if err != nil {
			return err
		}
		var was bool
		out[i], was, err = keep(x.parts, "delay", filepath.Base(key), func() (delayPlay, error) {
			s, err := x.cache.stream(ctx, p, c.batches)
			if err != nil {
				return delayPlay{}, fmt.Errorf("seed %d: %w", p.seed, err)
			}
			return delayOf(x.pack, s, sc)
		})
		if err == nil {
			x.progress.step(cost, was, "%s at %s: play %d of %d", what, sc.Query.Trigger.Interval.Std(), i+1, x.Delays)
		}
		return err
	})
	return out, err
}

// delayOf judges one play.
func delayOf(pack *rules.Pack, s *stream, sc *scenario.Scenario) (delayPlay, error) {
	r := riseMeter{full: wholeFrom(sc)}
	for i := range sc.Faults {
		r.from = sc.Faults[i].FromBatch
	}
	x, err := judgeBatches(pack, s, sc, r.push)
	if err != nil {
		return delayPlay{}, err
	}
	out := delayPlay{Early: map[string]bool{}, Rise: r.rise()}
	if len(x.Expected) > 0 {
		out.Outcome = x.Expected[0]
	}
	for _, w := range x.Wrong {
		if w.Early && w.Symptom == out.Outcome.Symptom {
			out.Early[w.Severity] = true
		}
	}
	return out, nil
}

// riseMeter compares what a store waits for its upload before a fault and once the
// fault has its full size.
type riseMeter struct {
	from, full    int64
	before, after []float64
}

func (r *riseMeter) push(b *event.Batch) {
	for i := range b.Operators {
		v := b.Operators[i].Values[event.RocksDBCommitFileSyncLatency] / float64(b.Operators[i].Stores)
		switch {
		case math.IsNaN(v) || b.Operators[i].Stores == 0:
		case b.ID >= donorWarmUp && b.ID < r.from:
			r.before = append(r.before, v)
		case b.ID >= r.full:
			r.after = append(r.after, v)
		}
	}
}

func (r *riseMeter) rise() float64 {
	before, after := quantile(r.before, 0.5), quantile(r.after, 0.5)
	if !(before > 0) || after < 0 {
		return 0
	}
	return after/before - 1
}

// rows are a case's delays, one row per goal.
func (c *delayCase) rows(sc *scenario.Scenario, plays []delayPlay) (rows []GoalRow) {
	var rises []float64
	for i := range plays {
		if c.unit == inBatches {
			rises = append(rises, plays[i].Rise)
		}
	}
	for _, g := range c.goals {
		row := GoalRow{
			Scenario: c.scenario, Fault: c.fault, Trigger: sc.Query.Trigger.Interval.Std().String(), Severity: g.severity,
			Unit: c.unit, Plays: len(plays), Goal: g.most, Rise: max(0, quantile(rises, 0.5)),
		}
		var all []float64
		for i := range plays {
			p := &plays[i]
			row.Symptom = p.Outcome.Symptom
			row.Early += one(p.early(g.severity))
			v := p.delay(g.severity, c.unit, sc)
			row.Found += one(!math.IsInf(v, 1))
			all = append(all, v)
		}
		row.Median, row.P90 = quantile(all, 0.5), quantile(all, 0.9)
		rows = append(rows, row)
	}
	return rows
}

// early reports whether an alert at least so severe came before the fault.
func (p *delayPlay) early(severity string) bool {
	for s := range p.Early {
		if severity == "info" || s != "info" {
			return true
		}
	}
	return false
}

// delay is how long the first alert took that is at least so severe, endless where
// there was none.
func (p *delayPlay) delay(severity, unit string, sc *scenario.Scenario) float64 {
	x := &p.Outcome
	v := float64(x.TicketDelay)
	switch {
	case unit == inIntervals:
		v = float64(x.AfterMs) / float64(sc.Query.Trigger.Interval.Std().Milliseconds())
	case severity == "info":
		v = float64(x.Delay)
	}
	if !x.Found || v < 0 {
		return math.Inf(1)
	}
	return v
}

// quantile is the value that a share of all values does not exceed, the middle of two
// where it lies between; -1 without a value and where it is endless.
func quantile(v []float64, share float64) float64 {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	at := share * float64(len(v)-1)
	low, high := v[int(at)], v[int(math.Ceil(at))]
	if math.IsInf(high, 1) {
		return -1
	}
	return low + (at-math.Floor(at))*(high-low)
}

// goals writes the delays that have a goal.
func (r *Report) goals(t *strings.Builder) {
	r.goalTable(t, "Delay of commit-sync-rising", "commit-sync-rising", "Over many plays at triggers of a minute, from the fault's first batch to the first alert of any severity (info) and to the first ticket. "+
		"Rise is by how much the upload time per store went up, the median over plays. Plays that found nothing count as endless (-). Early are plays in which such an alert came before the fault.")
	r.goalTable(t, "Delay of a hung batch", "stalled", "From when the trigger of the batch that hangs was due to the page, in usual intervals of the query, with heartbeats. The goal is set at triggers of a minute.")
	r.hungTable(t)
}

func (r *Report) goalTable(t *strings.Builder, title, symptom, about string) {
	rows := [][]string{{"seeds", "fault", "trigger", "rise", "alert", "plays", "found", "median", "90th percentile", "goal of the median", "early"}}
	for _, f := range r.families() {
		for i := range f.Goals {
			if g := &f.Goals[i]; g.Symptom == symptom {
				rows = append(rows, g.cells(f))
			}
		}
	}
	table(t, title, about, rows)
}

func (g *GoalRow) cells(f *Report) []string {
	rise := ""
	if g.Rise > 0 {
		rise = fmt.Sprintf("%.0f %%", 100*g.Rise)
	}
	seeds := fmt.Sprintf("%d to %d", f.FirstSeed, f.FirstSeed+uint64(g.Plays)-1)
	return []string{
		seeds, g.Fault, g.Trigger, rise, g.Severity, fmt.Sprint(g.Plays), fmt.Sprint(g.Found),
		goalNumber(g.Median), goalNumber(g.P90), g.goal(), fmt.Sprint(g.Early),
	}
}

func (g *GoalRow) goal() string {
	if g.Goal == 0 {
		return "-"
	}
	return fmt.Sprintf("%g", g.Goal)
}

// goalNumber writes a delay to a tenth.
func goalNumber(v float64) string { return number(math.Round(10*v) / 10) }
