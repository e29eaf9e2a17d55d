package score

import (
	"math"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/trend"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// What somebody would see who knew a fault's first batch: as many batches on either
// side as a short window holds, told apart with the confidence that rules ask for.
const (
	seenBatches    = 60
	seenConfidence = 0.999
	seenShare      = 0.1 // least difference of the medians, as a share of the level before
)

// eyes tell which faults are hidden: so small that their figures do not move beyond
// their own noise. Nobody can be asked to find those.
type eyes struct {
	watched []watchedFault
	scratch trend.Scratch
}

// watchedFault are the figures that one expectation is about.
type watchedFault struct {
	query    int // 0: any
	from     int64
	full     int64 // first batch of the whole fault
	measures []rules.Measure
	series   map[figureOf]*sides
}

// figureOf names a figure: a measure of a query or of one of its operators.
type figureOf struct {
	measure  string
	query    event.QueryID
	operator int
}

// sides are a figure's values before a fault, the newest last, and behind it.
type sides struct{ before, after []float64 }

func newEyes(pack *rules.Pack, sc *scenario.Scenario) *eyes {
	e := &eyes{watched: make([]watchedFault, len(sc.Expect))}
	signals := signalsOf(pack)
	for i := range sc.Expect {
		x := &sc.Expect[i]
		w := watchedFault{query: x.Query, from: x.FromBatch, full: max(x.FromBatch, wholeFrom(sc)), series: map[figureOf]*sides{}}
		for _, m := range pack.Measures() {
			if signals[x.Symptom][m.Name] {
				w.measures = append(w.measures, m)
			}
		}
		e.watched[i] = w
	}
	return e
}

// wholeFrom is the first batch in which every fault of a scenario has its full size.
func wholeFrom(sc *scenario.Scenario) (batch int64) {
	for i := range sc.Faults {
		batch = max(batch, sc.Faults[i].FromBatch+sc.Faults[i].Ramp)
	}
	return batch
}

// signalsOf tells the signals that the rules of each symptom judge.
func signalsOf(pack *rules.Pack) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, g := range rules.New(pack, rules.Options{}).Status(false).Groups {
		for i := range g.Rules {
			symptom := g.Rules[i].Labels.Get("symptom")
			if out[symptom] == nil {
				out[symptom] = map[string]bool{}
			}
			out[symptom][g.Rules[i].Signal] = true
		}
	}
	return out
}

// push takes in a batch that ran. query is its number in the scenario.
func (e *eyes) push(u *event.Update, query int) {
	b := u.Event.Batch
	for i := range e.watched {
		w := &e.watched[i]
		if b.ID < donorWarmUp || w.query != 0 && w.query != query {
			continue
		}
		for k := range w.measures {
			m := &w.measures[k]
			m.Visit(u, func(operator int, v float64) {
				w.side(figureOf{m.Name, b.Query.ID, operator}).add(w, b.ID, v)
			})
		}
	}
}

func (w *watchedFault) side(f figureOf) *sides {
	s := w.series[f]
	if s == nil {
		s = &sides{}
		w.series[f] = s
	}
	return s
}

func (s *sides) add(w *watchedFault, batch int64, v float64) {
	switch {
	case batch < w.from:
		if len(s.before) == seenBatches {
			s.before = s.before[:copy(s.before, s.before[1:])]
		}
		s.before = append(s.before, v)
	case batch >= w.full && len(s.after) < seenBatches:
		s.after = append(s.after, v)
	}
}

// hidden reports whether no figure of an expectation moved visibly. What has no figure,
// or none with batches enough on both sides, is not excused.
func (e *eyes) hidden(i int) bool {
	compared := false
	for _, s := range e.watched[i].series {
		if len(s.before) < seenBatches/2 || len(s.after) < seenBatches/2 {
			return false
		}
		compared = true
		r := e.scratch.RankSum(s.before, s.after, trend.RankSumOptions{})
		if math.Abs(r.Z) >= trend.ConfidenceZ(seenConfidence) && math.Abs(r.Shift) >= seenShare*math.Abs(r.Before) {
			return false
		}
	}
	return compared
}
