package score

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Report is what a score says.
type Report struct {
	Rules     int       `json:"rules"` // in the pack
	Pack      []RuleRow `json:"pack"`
	Seeds     int       `json:"seeds"`
	FirstSeed uint64    `json:"first_seed"`
	Batches   int64     `json:"batches"` // of each query; 0: the scenario's own number
	Seconds   float64   `json:"seconds"` // that scoring took
	// Donors is how many runs of healthy queries healthy batches are made of, Recorded
	// how many of them were recorded.
	Donors   int `json:"donors"`
	Recorded int `json:"recorded_donors"`
	// Scenarios has a row for each scenario and size, Sizes the totals of a size.
	Scenarios []ScenarioRow `json:"scenarios"`
	Sizes     []SizeRow     `json:"sizes"`
	Delays    []DelayRow    `json:"delays"`
	Goals     []GoalRow     `json:"delay_goals,omitempty"` // delays that have a goal
	Hung      []HungRow     `json:"hung_trade_off,omitempty"`
	Healthy   []Exposure    `json:"healthy"`
	Peers     []PeerRow     `json:"peers"`
	TradeOff  []TradeOffRow `json:"trade_off,omitempty"`
	// Beside is the score on the seeds that rules were tuned on.
	Beside *Report `json:"beside,omitempty"`
}

// ScenarioRow is one scenario at one size, over all seeds.
type ScenarioRow struct {
	Scenario string  `json:"scenario"`
	Healthy  bool    `json:"healthy"`
	Size     float64 `json:"size"` // 0: the scenario's own
	Seeds    int     `json:"seeds"`
	Expected int     `json:"expected"` // findings, over all seeds
	Found    int     `json:"found"`    // of them: right symptom, right query, not before the fault
	Clean    int     `json:"clean"`    // seeds in which nothing wrong was sent beside
	// Undecidable are findings whose right answer is that it cannot be told, Undecided how
	// often that was said.
	Undecidable int `json:"undecidable"`
	Undecided   int `json:"undecided"`
	// Wrong counts alerts that nobody ordered by "severity symptom", "early" behind
	// those that only came too soon.
	Wrong map[string]int `json:"wrong"`
	Delay float64        `json:"delay_batches"` // median, -1 without one
}

// SizeRow is what was found of all faults of one size.
type SizeRow struct {
	Size     float64 `json:"size"`
	Expected int     `json:"expected"`
	Found    int     `json:"found"`
	// Right are those found in a play in which no page and no ticket was wrong.
	Right      int     `json:"right"`
	FoundShare float64 `json:"found_share"`
	RightShare float64 `json:"right_share"`
	// Visible are those that are not hidden in the noise of their figures, VisibleFound
	// what was found of them.
	Visible      int     `json:"visible"`
	VisibleFound int     `json:"visible_found"`
	VisibleShare float64 `json:"visible_share"`
}

// DelayRow is how long a symptom takes to be found, in batches from the fault's
// first, the median over what was found; -1 where nothing was.
type DelayRow struct {
	Scenario string  `json:"scenario"`
	Symptom  string  `json:"symptom"`
	Size     float64 `json:"size"`
	Expected int     `json:"expected"` // over all seeds
	Found    int     `json:"found"`
	Any      float64 `json:"any"`    // first alert of any severity
	Ticket   float64 `json:"ticket"` // first ticket or page
}

// Exposure is what fired on healthy queries, and how much of them was watched.
type Exposure struct {
	Source    string         `json:"source"` // scenarios or made
	Trigger   string         `json:"trigger"`
	Asked     int64          `json:"asked,omitempty"` // batches that were asked for, where time may have cut them short
	Batches   int64          `json:"batches"`
	QueryDays float64        `json:"query_days"`
	By        map[string]int `json:"by_severity"`
	Rules     map[string]int `json:"by_rule"`
	Seconds   float64        `json:"seconds,omitempty"` // that making and judging took, of one processor
	// ListenedDays are the query-days of them in which a listener sent heartbeats, and
	// LongestSeconds is how long the longest batch of those took: what runs shorter than a
	// rule with heartbeats waits in any case is no test of it.
	ListenedDays   float64 `json:"listened_days,omitempty"`
	LongestSeconds float64 `json:"longest_listened_batch_seconds,omitempty"`
	// Peers counts what the rules of today fired, over PeerDays.
	Peers    map[string]int `json:"peers,omitempty"`
	PeerDays float64        `json:"peer_days,omitempty"`
}

// PeerRow is how a rule that users would write today fared on the same events.
// Rates are alerts per 1,000 query-days.
type PeerRow struct {
	Rule         string  `json:"rule"`
	Expected     int     `json:"expected"`
	Found        int     `json:"found"`
	Named        int     `json:"named"` // the series says which symptom it is
	Delay        float64 `json:"delay_batches"`
	HealthyRate  float64 `json:"healthy_rate"`
	BeforeFaults int     `json:"before_faults"`

	delays []int64
	fired  int
	days   float64
}

// addPlays takes the plays of scenarios.
func (r *Report) addPlays(plays []*play) {
	type key struct {
		name string
		size float64
	}
	rows := map[key]*ScenarioRow{}
	delays := map[key]delays{}
	sizes := map[float64]*SizeRow{}
	healthy := Exposure{Source: "scenarios", Trigger: "all", By: map[string]int{}, Rules: map[string]int{}}
	r.Peers = newPeerRows()
	var order []key
	for _, p := range plays {
		if !p.done {
			continue
		}
		k := key{p.scenario.Name, p.size}
		row := rows[k]
		if row == nil {
			row = &ScenarioRow{Scenario: k.name, Healthy: p.scenario.Healthy, Size: k.size, Wrong: map[string]int{}}
			rows[k], delays[k] = row, newDelays()
			order = append(order, k)
		}
		row.add(&p.result)
		delays[k].add(&p.result)
		if p.scenario.Healthy {
			healthy.add(&p.result)
		} else {
			sizeRow(sizes, p.size).add(&p.result)
		}
		r.addPeerPlay(p)
	}
	for _, k := range order {
		rows[k].Delay = delays[k].median()
		r.Scenarios = append(r.Scenarios, *rows[k])
		r.Delays = append(r.Delays, delays[k].rows(k.name, k.size)...)
	}
	for _, size := range slices.Sorted(maps.Keys(sizes)) {
		r.Sizes = append(r.Sizes, *sizes[size])
	}
	if healthy.Batches > 0 {
		r.Healthy = append(r.Healthy, healthy)
	}
}

func sizeRow(sizes map[float64]*SizeRow, size float64) *SizeRow {
	if sizes[size] == nil {
		sizes[size] = &SizeRow{Size: size}
	}
	return sizes[size]
}

func (row *ScenarioRow) add(x *result) {
	row.Seeds++
	for _, e := range x.Expected {
		switch {
		case e.CannotTell:
			row.Undecidable++
			row.Undecided += one(e.Found)
		default:
			row.Expected++
			row.Found += one(e.Found)
		}
	}
	row.Clean += one(len(x.Wrong) == 0)
	for _, w := range x.Wrong {
		row.Wrong[w.name()]++
	}
}

func (w *wrong) name() string {
	name := cmp.Or(w.Severity, "no severity") + " " + cmp.Or(w.Symptom, w.Alert)
	if w.Early {
		name += " early"
	}
	return name
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

func (s *SizeRow) add(x *result) {
	clean := !slices.ContainsFunc(x.Wrong, func(w wrong) bool { return w.Severity != "info" })
	for _, e := range x.Expected {
		if e.CannotTell {
			continue
		}
		s.Expected++
		s.Found += one(e.Found)
		s.Right += one(e.Found && clean)
		s.Visible += one(!e.Hidden)
		s.VisibleFound += one(!e.Hidden && e.Found)
	}
}

func (e *Exposure) add(x *result) {
	e.Batches += x.Batches
	e.QueryDays += x.QueryDays
	for _, w := range x.Wrong {
		e.By[w.Severity]++
		e.Rules[w.Alert]++
	}
}

// Rate is alerts of a severity per 1,000 query-days, and the bound below which the
// true rate lies with 95 % confidence, as counts are Poisson's.
func (e *Exposure) Rate(severity string) (rate, bound float64) {
	n := float64(e.By[severity])
	return 1000 * n / e.QueryDays, 1000 * poissonBound(e.By[severity]) / e.QueryDays
}

// poissonBound is the mean of which n or fewer are counted in 5 % of all cases.
func poissonBound(n int) float64 { return mathext.GammaIncRegInv(float64(n)+1, 0.95) }

// delays are the delays of one scenario, by symptom.
type delays map[string]*symptomDelays

// symptomDelays are those of one symptom, out of how many faults.
type symptomDelays struct {
	expected    int
	any, ticket []int64
}

func newDelays() delays { return delays{} }

func (d delays) add(x *result) {
	for _, e := range x.Expected {
		if e.CannotTell {
			continue
		}
		s := d[e.Symptom]
		if s == nil {
			s = &symptomDelays{}
			d[e.Symptom] = s
		}
		s.expected++
		if e.Found {
			s.any = append(s.any, e.Delay)
		}
		if e.TicketDelay >= 0 {
			s.ticket = append(s.ticket, e.TicketDelay)
		}
	}
}

func (d delays) median() float64 {
	var all []int64
	for _, s := range d {
		all = append(all, s.any...)
	}
	return median(all)
}

func (d delays) rows(name string, size float64) (out []DelayRow) {
	for _, symptom := range slices.Sorted(maps.Keys(d)) {
		s := d[symptom]
		out = append(out, DelayRow{Scenario: name, Symptom: symptom, Size: size, Expected: s.expected, Found: len(s.any), Any: median(s.any), Ticket: median(s.ticket)})
	}
	return out
}

// median is the middle value, -1 without any.
func median(v []int64) float64 {
	if len(v) == 0 {
		return -1
	}
	slices.Sort(v)
	return float64(v[(len(v)-1)/2]+v[len(v)/2]) / 2
}

func newPeerRows() (out []PeerRow) {
	for _, name := range peerNames {
		out = append(out, PeerRow{Rule: name})
	}
	return out
}

func (r *Report) addPeerPlay(p *play) {
	for i := range p.result.Peers {
		x, row := &p.result.Peers[i], &r.Peers[i]
		if p.scenario.Healthy {
			row.fired += x.Wrong
			row.days += p.result.QueryDays
			continue
		}
		row.Expected += x.Expected
		row.Found += x.Found
		row.Named += x.Named
		row.BeforeFaults += x.Wrong
		row.delays = append(row.delays, x.Delay...)
	}
}

// addPeers takes what the peers fired on healthy batches that were made.
func (r *Report) addPeers(e Exposure) {
	for i, name := range peerNames {
		r.Peers[i].fired += e.Peers[name]
		r.Peers[i].days += e.PeerDays
	}
}

// finish works out shares and rates.
func (r *Report) finish() {
	for i := range r.Sizes {
		s := &r.Sizes[i]
		s.FoundShare, s.RightShare, s.VisibleShare = share(s.Found, s.Expected), share(s.Right, s.Expected), share(s.VisibleFound, s.Visible)
	}
	for i := range r.Peers {
		p := &r.Peers[i]
		p.Delay, p.HealthyRate = median(p.delays), 0
		if p.days > 0 {
			p.HealthyRate = 1000 * float64(p.fired) / p.days
		}
	}
}

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return math.Round(1000*float64(n)/float64(of)) / 1000
}
