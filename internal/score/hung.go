package score

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/rules"
)

// HungRow is a point of the curve from caution to speed of the rule that finds a batch that
// hangs: the same plays under another least length of a silence.
type HungRow struct {
	Trigger string `json:"trigger"`
	AtLeast string `json:"at_least"`      // the least length, as rules write it
	Own     bool   `json:"own,omitempty"` // it is the one that the rules have
	Plays   int    `json:"plays"`
	Found   int    `json:"found"`
	// Median is the median delay of the page over all plays, in usual intervals, and
	// Seconds the same in seconds; -1 is endless.
	Median  float64 `json:"median"`
	Seconds float64 `json:"median_seconds"`
	// Pages is how often the rule fired on healthy queries with heartbeats, in Days
	// query-days; 0 days where that was not measured.
	Pages int     `json:"healthy_pages"`
	Days  float64 `json:"healthy_days"`
}

const (
	hungRule  = "QueryHung"
	hungEvery = 10 * time.Second // where the least length decides, and no multiple of batches does
	// hungShare is how many times the healthy batches of a trade-off each least length is
	// tried on: half of the clusters have no heartbeats, and pauses are rare.
	hungShare = 3
)

// hungLeast are the least lengths of a silence, as rules write them.
var hungLeast = []string{"1m", "2m", "4m"}

// hungRules are the rules with another least length of a silence.
type hungRules struct {
	atLeast string
	own     bool // it is the one that they have
	from    []rules.Source
}

// hungRules writes the rules anew for each least length; none where no delay is measured
// or the rules have no such rule. It is an error if they have it, and the place of its
// least length in their text is not found.
func (o *Options) hungRules(pack *rules.Pack) (out []hungRules, err error) {
	if o.Delays <= 0 || !slices.ContainsFunc(rulesOf(pack), func(r RuleRow) bool { return r.Alert == hungRule }) {
		return nil, nil
	}
	for _, least := range hungLeast {
		v := hungRules{atLeast: least, own: true}
		places := 0
		for _, s := range o.Rules {
			data, n := putAtLeast(s.Data, hungRule, least)
			places += n
			v.own = v.own && bytes.Equal(data, s.Data)
			v.from = append(v.from, rules.Source{Name: s.Name, Data: data})
		}
		if places != 1 {
			return nil, fmt.Errorf("rule %s: at_least was found %d times in the text of the rules, and must be there once to be varied", hungRule, places)
		}
		out = append(out, v)
	}
	return out, nil
}

var (
	ruleBegins = regexp.MustCompile(`(?m)^\s*- \{?\s*alert:\s*["']?(\w+)`)
	// The whole value, whatever it is.
	silenceAtLeast = regexp.MustCompile(`(?m)(\bat_least:[ \t]*)([^,}\s#]+)`)
)

// putAtLeast puts another at_least into the text of one rule, and returns in how many
// places.
func putAtLeast(data []byte, rule, least string) (out []byte, places int) {
	begins := ruleBegins.FindAllSubmatchIndex(data, -1)
	last := 0
	for i, b := range begins {
		if string(data[b[2]:b[3]]) != rule {
			continue
		}
		end := len(data)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		text := data[b[0]:end]
		places += len(silenceAtLeast.FindAll(text, -1))
		out = append(append(out, data[last:b[0]]...), silenceAtLeast.ReplaceAll(text, []byte("${1}"+least))...)
		last = end
	}
	return append(out, data[last:]...), places
}

// againCost is what judging a play again costs, in seconds of one processor: it has to be
// played again where no streams are kept.
func (o *Options) againCost() float64 {
	if o.CacheDir == "" {
		return playCost
	}
	return judgeCost
}

// hungTradeOff judges the plays of a batch that hangs under each least length of a silence.
func (x *runner) hungTradeOff(ctx context.Context) (rows []HungRow, err error) {
	if len(x.hung) == 0 {
		return nil, nil
	}
	c := hungAt(hungEvery, 0)
	sc, err := c.load()
	if err != nil {
		return nil, err
	}
	for _, v := range x.hung {
		with, err := x.withRules(v.from)
		if err != nil {
			return rows, fmt.Errorf("rule %s at least %s: %w", hungRule, v.atLeast, err)
		}
		plays, err := with.delayPlays(ctx, &c, sc, x.againCost(), "a silence of at least "+v.atLeast)
		if err != nil {
			return rows, fmt.Errorf("rule %s at least %s: %w", hungRule, v.atLeast, err)
		}
		d := c.rows(sc, plays)[0]
		row := HungRow{Trigger: d.Trigger, AtLeast: v.atLeast, Own: v.own, Plays: d.Plays, Found: d.Found, Median: d.Median, Seconds: -1}
		if d.Median >= 0 {
			row.Seconds = math.Round(1000*d.Median*hungEvery.Seconds()) / 1000
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// hungHealthy counts what each least length of a silence does on healthy queries.
func (x *runner) hungHealthy(ctx context.Context, rows []HungRow, sources []*donor) error {
	for i, v := range x.hung[:len(rows)] {
		with, err := x.withRules(v.from)
		if err != nil {
			return fmt.Errorf("rule %s at least %s: %w", hungRule, v.atLeast, err)
		}
		e, err := with.healthy(ctx, HealthyRun{Every: hungEvery, Batches: hungShare * x.TradeOff}, sources, 0)
		if err != nil {
			return fmt.Errorf("rule %s at least %s on healthy queries: %w", hungRule, v.atLeast, err)
		}
		rows[i].Pages, rows[i].Days = e.Rules[hungRule], e.ListenedDays
	}
	return nil
}

// healthyPages is the rate of the rule on healthy queries and its bound, per 1,000
// query-days; - where it was not measured.
func (h *HungRow) healthyPages() (rate, bound string) {
	if h.Days == 0 {
		return "-", "-"
	}
	e := Exposure{QueryDays: h.Days, By: map[string]int{"page": h.Pages}}
	r, b := e.Rate("page")
	return fmt.Sprintf("%.1f", r), fmt.Sprintf("%.1f", b)
}

// hungTable writes what another least length of a silence would do.
func (r *Report) hungTable(t *strings.Builder) {
	rows := [][]string{{"seeds", "trigger", "least length of a silence", "plays", "found", "median in usual intervals", "median in seconds", "healthy query-days", "pages in them", "per 1,000", "95 % bound"}}
	for _, f := range r.families() {
		for i := range f.Hung {
			h := &f.Hung[i]
			least := h.AtLeast
			if h.Own {
				least += " (as it is)"
			}
			seeds := fmt.Sprintf("%d to %d", f.FirstSeed, f.FirstSeed+uint64(h.Plays)-1)
			rate, bound := h.healthyPages()
			rows = append(rows, []string{
				seeds, h.Trigger, least, fmt.Sprint(h.Plays), fmt.Sprint(h.Found), goalNumber(h.Median), goalNumber(h.Seconds),
				fmt.Sprintf("%.0f", h.Days), fmt.Sprint(h.Pages), rate, bound,
			})
		}
	}
	table(t, "Delay of a hung batch and the least length of a silence", "The same plays, judged with another `at_least` of "+hungRule+". At short triggers it alone decides how soon the page comes. "+
		"Its price: each pause of a healthy trigger that is longer than it and than 5 times the 99th percentile of the query's batches pages somebody. "+
		"Healthy queries pause as is said above. How long those of your clusters do decides what is right there.", rows)
}
