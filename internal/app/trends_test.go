package app

import (
	"errors"
	"fmt"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

var errNotYet = errors.New("not yet")

func hasAlert(page map[string]*dto.MetricFamily, name, state string) bool {
	for _, m := range page[alertFamily].GetMetric() {
		if hasLabels(m, []string{"alertname", name, "alertstate", state}) && m.GetGauge().GetValue() == 1 {
			return true
		}
	}
	return false
}

// judged is a judgement of a trend on the n-th query.
func judged(n int, said rules.Said, slope, etaMs float64) *rules.Judged {
	return &rules.Judged{
		Query: event.QueryRef{ID: event.QueryID(fmt.Sprint("id-", n)), Name: "orders"}, OperatorIndex: -1,
		Judgement: rules.Judgement{Said: said, SlopePerBatch: slope, EtaMs: etaMs, EtaLowMs: etaMs / 2, EtaHighMs: etaMs * 2},
	}
}

func TestOnlyTrendsThatWereFoundAreSeries(t *testing.T) {
	a := start(t, testOptions(t))
	round := func(js ...*rules.Judged) map[string]*dto.MetricFamily {
		a.judge.ask(func() {
			a.trends.round++
			for _, j := range js {
				a.trends.see("Rule", "sync", j)
			}
			sweep(a.exporter, a.trends.lines, a.trends.round)
		})
		return scrape(t, a)
	}
	page := round(judged(1, rules.SaidFound, 0.5, 7_200_000), judged(2, rules.SaidClear, 0, 0), judged(3, rules.SaidTooFew, 9, 9), judged(4, rules.SaidExplained, -2, 0))
	if n := len(page[slopeFamily].GetMetric()); n != 2 {
		t.Errorf("%d slopes, want those of a finding and of what load explains", n)
	}
	if got := value(t, page, slopeFamily, "query_id", "id-1", "alertname", "Rule", "signal", "sync", "query_name", "orders"); got != 0.5 {
		t.Errorf("slope %g", got)
	}
	for estimate, want := range map[string]float64{"earliest": 3600, "likely": 7200, "latest": 14400} {
		if got := value(t, page, etaFamily, "query_id", "id-1", "estimate", estimate); got != want {
			t.Errorf("forecast, %s: %g s, want %g", estimate, got, want)
		}
	}
	if page = round(); len(page[slopeFamily].GetMetric())+len(page[etaFamily].GetMetric()) != 0 {
		t.Error("a trend that is over is still shown")
	}
}

func TestSeriesOfTrendsAreBounded(t *testing.T) {
	a := start(t, testOptions(t))
	a.judge.ask(func() {
		for i := range maxTrends + 5 {
			a.trends.see("Rule", "sync", judged(i, rules.SaidFound, 1, 0))
		}
		if len(a.trends.lines) != maxTrends || a.trends.left != 5 {
			t.Errorf("%d series, %d left out", len(a.trends.lines), a.trends.left)
		}
	})
}
