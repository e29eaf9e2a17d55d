package app

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// TestTheDaemonExportsWhatWasSimulated posts simulated events and holds the page
// against what the simulation says that it did: every counter is the sum over all
// batches, every gauge the last batch's.
func TestTheDaemonExportsWhatWasSimulated(t *testing.T) {
	for _, c := range []struct {
		scenario string
		batches  int64
	}{
		{"steady", 60},
		{"steady-join", 25},
		{"steady-transform-with-state", 25},
		{"idle-spells", 60},
		{"provider-hdfs", 40},
		{"redeploys", 40},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			data, err := fs.ReadFile(configs.Scenarios(), c.scenario+".yml")
			if err != nil {
				t.Fatal(err)
			}
			sc, err := scenario.Load(c.scenario, data)
			if err != nil {
				t.Fatal(err)
			}
			a := start(t, testOptions(t))
			account := deliver(t, a, sc, simulator.Options{Seed: 11, Batches: c.batches})
			if account.Delivered < c.batches {
				t.Errorf("only %d batches were sent", account.Delivered)
			}
			page := scrape(t, a)
			compareWithAccount(t, page, &account)
			for i := range account.Operators {
				compareOperatorWithAccount(t, page, &account, i)
			}
		})
	}
}

// deliver plays a scenario into the daemon, as many events a request as a sender
// would put there, and returns the account of the simulation's only query.
func deliver(t *testing.T, a *App, sc *scenario.Scenario, o simulator.Options) simulator.Account {
	t.Helper()
	s, err := simulator.New(sc, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var body []byte
	held := 0
	flush := func() {
		if held == 0 {
			return
		}
		if code, got := post(t, a, body); code != http.StatusOK || got.Accepted != held {
			t.Fatalf("status %d, accepted %d of %d: %v", code, got.Accepted, held, got.Rejected)
		}
		body, held = body[:0], 0
	}
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, held = append(append(body, m.Data...), '\n'), held+1
		if held == 50 {
			flush()
		}
	}
	flush()
	return s.Accounts()[0]
}

// total adds up the series of a family, those with the labels; 0 where none is.
func total(page map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	for _, m := range page[name].GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}

func compareWithAccount(t *testing.T, page map[string]*dto.MetricFamily, a *simulator.Account) {
	t.Helper()
	const prefix = "spark_streaming_"
	same(t, "batches with rows", total(page, prefix+"batches_total", "kind", "data"), float64(a.Batches-a.NoData))
	same(t, "batches without", total(page, prefix+"batches_total", "kind", "no_data"), float64(a.NoData))
	same(t, "input rows", total(page, prefix+"input_rows_total"), float64(a.InputRows))
	for id, ms := range a.PhaseMs {
		m := event.Lookup(id)
		var labels []string
		if m.LabelName != "" {
			labels = []string{m.LabelName, m.LabelValue}
		}
		same(t, m.JSON, total(page, m.Series, labels...), float64(ms)/1e3)
	}
}

// compareOperatorWithAccount compares all that the catalog knows of an operator.
func compareOperatorWithAccount(t *testing.T, page map[string]*dto.MetricFamily, a *simulator.Account, i int) {
	t.Helper()
	sums, last, compared := a.Operators[i], a.Last(i), 0
	for id := range sums {
		m := event.Lookup(event.MetricID(id))
		if m.Scope != event.ScopeOperator || math.IsNaN(sums[id]) {
			continue
		}
		labels := []string{"operator_index", strconv.Itoa(i)}
		if m.LabelName != "" {
			labels = append(labels, m.LabelName, m.LabelValue)
		}
		got, scale := find(page, m.Series, labels...), m.Scale
		if m.Quirks&event.QuirkPerTask != 0 {
			scale /= last[event.NumShufflePartitions]
		}
		want := sums[id] * scale
		if m.Kind != event.KindWork { // a level, or a count that Spark goes on with
			want = last[id] * scale
		}
		if want == 0 && math.IsNaN(got) {
			continue // hidden on purpose, or nothing to count yet
		}
		compared++
		if m.Quirks&(event.QuirkStickyUpload|event.QuirkSticky40) != 0 {
			if !(got >= 0 && got <= want*(1+1e-9)) {
				t.Errorf("operator %d: %s is %v, and with all repeats %v", i, m.JSON, got, want)
			}
			continue
		}
		same(t, "operator "+strconv.Itoa(i)+": "+m.JSON, got, want)
	}
	if compared < 10 {
		t.Errorf("operator %d: only %d figures could be compared", i, compared)
	}
}
