package score

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/rules"
)

// TradeOffRow is a point of the curve from caution to speed: what the pack finds,
// how soon, and what it fires on healthy queries, with all thresholds and holds of its
// rules scaled.
type TradeOffRow struct {
	Threshold float64 `json:"threshold"` // what every `by` is multiplied with
	Hold      float64 `json:"hold"`      // what every `for` is multiplied with
	Expected  int     `json:"expected"`
	Found     int     `json:"found"`
	Right     int     `json:"right"`
	Delay     float64 `json:"delay_batches"`
	QueryDays float64 `json:"query_days"`
	// Pages and Tickets on healthy queries, and the bounds of their rates per 1,000
	// query-days.
	Pages       int     `json:"pages"`
	Tickets     int     `json:"tickets"`
	PageBound   float64 `json:"page_bound"`
	TicketBound float64 `json:"ticket_bound"`
}

// tradeOffPoints are thresholds and holds; the pack as it is stands among them.
var tradeOffPoints = [][2]float64{{0.6, 1}, {0.8, 1}, {1, 0.5}, {1, 1}, {1, 2}, {1.4, 1}}

// hardest are the plays that a curve is drawn of: those of the smallest faults, where
// thresholds decide, and of the first seed.
func (o *Options) hardest(plays []*play) (out []*play) {
	smallest := slices.Min(o.Sizes)
	for _, p := range plays {
		if !p.scenario.Healthy && p.seed == o.FirstSeed && (p.size == 0 || p.size == smallest) {
			out = append(out, p)
		}
	}
	return out
}

// tradeOff judges everything again under other thresholds and holds.
func (x *runner) tradeOff(ctx context.Context, plays []*play, sources []*donor) (out []TradeOffRow, err error) {
	plays = x.hardest(plays)
	for _, p := range tradeOffPoints {
		row, err := x.tradeOffRow(ctx, p[0], p[1], plays, sources)
		if err != nil {
			return out, fmt.Errorf("thresholds x%v, holds x%v: %w", p[0], p[1], err)
		}
		out = append(out, row)
	}
	return out, nil
}

// scaled is the runner with other thresholds and holds.
func (x *runner) scaled(by, hold float64) (*runner, error) {
	var scaled []rules.Source
	for _, s := range x.Rules {
		scaled = append(scaled, rules.Source{Name: s.Name, Data: scaleRules(s.Data, by, hold)})
	}
	return x.withRules(scaled)
}

// withRules is the runner with other rules, whose parts are kept apart from those of the
// runner's own.
func (x *runner) withRules(from []rules.Source) (*runner, error) {
	pack, err := rules.Load(from...)
	if err != nil {
		return nil, err
	}
	parts, err := newParts(x.Options, from)
	return &runner{Options: x.Options, pack: pack, cache: x.cache, parts: parts, progress: x.progress}, err
}

func (x *runner) tradeOffRow(ctx context.Context, by, hold float64, plays []*play, sources []*donor) (TradeOffRow, error) {
	row := TradeOffRow{Threshold: by, Hold: hold}
	x, err := x.scaled(by, hold)
	if err != nil {
		return row, err
	}
	results := make([]result, len(plays))
	err = each(ctx, x.Parallel, len(plays), func(i int) error {
		p := *plays[i]
		was, err := x.result(ctx, &p, false)
		if err != nil {
			return p.failed(err)
		}
		results[i] = p.result
		x.progress.step(judgeCost, was, "thresholds x%v, holds x%v: play %d of %d", by, hold, i+1, len(plays))
		return nil
	})
	if err != nil {
		return row, err
	}
	row.addFaults(results)
	e, err := x.healthy(ctx, HealthyRun{Every: time.Minute, Batches: x.TradeOff}, sources, 0)
	row.QueryDays, row.Pages, row.Tickets = e.QueryDays, e.By["page"], e.By["ticket"]
	_, row.PageBound = e.Rate("page")
	_, row.TicketBound = e.Rate("ticket")
	return row, err
}

func (row *TradeOffRow) addFaults(results []result) {
	var s SizeRow
	var all []int64
	for i := range results {
		s.add(&results[i])
		for _, e := range results[i].Expected {
			if e.Found && !e.CannotTell {
				all = append(all, e.Delay)
			}
		}
	}
	row.Expected, row.Found, row.Right, row.Delay = s.Expected, s.Found, s.Right, median(all)
}

var (
	ruleBy = regexp.MustCompile(`\bby: (\d+(?:\.\d+)?)%`)
	// A rise that is worth a word has a least size in the signal's unit too.
	ruleAtLeast = regexp.MustCompile(`\bat_least: (\d+(?:\.\d+)?)((?:ms|s|m|h|[KMG]iB)\b)`)
	ruleFor     = regexp.MustCompile(`(?m)(^\s+for: |[{,] for: )([^,}\n#]+)`)
	batches     = regexp.MustCompile(`(\d+)( batch)`)
	minutes     = regexp.MustCompile(`(\d+)(m|h|s)\b`)
)

// scaleRules multiplies every relative threshold, with the least rise beside it, and
// every hold in a rule file.
func scaleRules(data []byte, by, hold float64) []byte {
	text := ruleBy.ReplaceAllStringFunc(string(data), func(m string) string {
		return "by: " + scaleNumber(ruleBy.FindStringSubmatch(m)[1], by) + "%"
	})
	text = ruleAtLeast.ReplaceAllStringFunc(text, func(m string) string {
		p := ruleAtLeast.FindStringSubmatch(m)
		return "at_least: " + scaleNumber(p[1], by) + p[2]
	})
	return []byte(ruleFor.ReplaceAllStringFunc(text, func(m string) string {
		p := ruleFor.FindStringSubmatch(m)
		return p[1] + scaleExtent(p[2], hold)
	}))
}

// scaleNumber multiplies a number to four digits.
func scaleNumber(text string, by float64) string {
	v, _ := strconv.ParseFloat(text, 64)
	return strconv.FormatFloat(math.Round(1e4*v*by)/1e4, 'f', -1, 64)
}

// scaleExtent multiplies both parts of "20 batches and 30m".
func scaleExtent(text string, by float64) string {
	text = batches.ReplaceAllStringFunc(text, func(m string) string {
		p := batches.FindStringSubmatch(m)
		n, _ := strconv.Atoi(p[1])
		return strconv.Itoa(max(1, int(float64(n)*by+0.5))) + p[2]
	})
	return minutes.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(m)
		if err != nil {
			return m
		}
		return strconv.Itoa(max(1, int(d.Seconds()*by+0.5))) + "s"
	})
}
