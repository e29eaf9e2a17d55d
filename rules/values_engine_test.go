package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// valueStream plays a query to one rule about its rows, its took (seconds) or an
// operator's sync.
func valueStream(t *testing.T, rule string) *stream {
	t.Helper()
	p, err := Load(Source{Name: "r.yaml", Data: []byte(wrapRule(rule))})
	if err != nil {
		t.Fatal(err)
	}
	return newStream(New(p, Options{}))
}

// lines are the alerts among the verdicts, one a line.
func alertLines(vs []Verdict) string {
	var b strings.Builder
	for _, v := range vs {
		if v.Alert != nil {
			b.WriteString(line(v) + "\n")
		}
	}
	return b.String()
}

func TestALimitIsHeldAgainstEachBatch(t *testing.T) {
	s := valueStream(t, "alert: A\nsignal: took\nabove: {limit: 10s, batches: 2 of 3, recover: 8s}\nfor: 2 batches")
	for _, seconds := range []float64{2, 2, 2, 12, 12, 12, 9, 9, 9, 2, 2, 2} {
		s.play(figures{duration: 1000 * seconds})
	}
	want := `A: inactive -> pending since batch 103, value 12
A: pending -> firing since batch 103, value 12
A: firing -> resolved (it went back to 2s)
`
	if got := alertLines(s.verdicts); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestARuleMayJudgeTheWarmUp(t *testing.T) {
	for key, want := range map[string]int{"": 0, "\nin_warm_up: true": 1} {
		s := valueStream(t, "alert: A\nsignal: took\nabove: {limit: 10s}"+key)
		s.started, s.next = true, 0
		s.play(figures{duration: 20_000})
		s.play(figures{duration: 20_000})
		if got := len(changed(s.verdicts, Pending)); got != want {
			t.Errorf("%q: %d alerts, want %d", key, got, want)
		}
	}
}

func TestABaselineOutlivesARun(t *testing.T) {
	s := valueStream(t, "alert: A\nsignal: took\nshifted: {}\nfor: 5 batches")
	n := newNoise(2)
	for range 200 {
		s.play(figures{duration: 2000 * n.next()})
	}
	s.restart("run-2")
	for range 90 {
		s.play(figures{duration: 5000 * n.next()})
	}
	got := alertLines(changed(s.verdicts, Firing))
	if !strings.HasPrefix(got, "A: pending -> firing since batch 3") {
		t.Errorf("got %q, want a finding that began in the run of batches from 300 on", got)
	}
}

func TestOperatorsAreForecastEachByItself(t *testing.T) {
	s := valueStream(t, "alert: A\nsignal: sync\nreaches: {limit: 10s, within: 3h}\nfor: 5 batches")
	n := newNoise(4)
	for i := range 300 {
		s.newRun = false
		u := s.update(figures{operators: 2, sync: 3000 * (1 + 0.05*n.r.NormFloat64()), duration: 60_000})
		second := &u.Event.Batch.Operators[1]
		second.Values[event.RocksDBCommitFileSyncLatency] = stores * (2000 + 25*float64(i))
		s.verdicts = s.e.Apply(&u, s.verdicts)
	}
	fired := changed(s.verdicts, Firing)
	if len(fired) != 1 || fired[0].Alert.Labels.Get("operator_index") != "1" {
		for _, j := range s.e.Status(true).Groups[0].Rules[0].Judgements {
			t.Logf("operator %d: %s", j.OperatorIndex, told(j.Judgement))
		}
		t.Fatalf("got %s", alertLines(s.verdicts))
	}
}

func TestJudgementsSayWhyThereIsNone(t *testing.T) {
	s := valueStream(t, "alert: A\nsignal: took\nreaches: {limit: trigger_interval_ms / 1000}")
	for range 100 {
		s.play(figures{})
	}
	got := s.e.Status(true).Groups[0].Rules[0].Judgements[0]
	if got.Said != SaidCannotTell || got.Why != "cannot tell: limit (trigger_interval_ms / 1000) is not known" {
		t.Errorf("got %v: %s", got.Said, got.Why)
	}
}

func TestATimeWithoutALimitReadsAsNothingInTemplates(t *testing.T) {
	s := valueStream(t, "alert: A\nsignal: took\nabove: {limit: 1s}\nannotations: {x: 'limit {{ .Limit }}{{ if .Eta }}, in {{ .Eta }}{{ end }}{{ if .Period }}, each {{ .Period }}{{ end }}, {{ .Why }}'}")
	s.play(figures{})
	if got, want := s.verdicts[0].Alert.Annotations.Get("x"), "limit 1, 1 of 1 batches above the limit"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestValueDetectorsDescribeThemselves(t *testing.T) {
	for spec, want := range map[string]string{
		"above: {limit: 2}": "above 2 in 1 of 1 batches",
		"below: {limit: 2s, batches: 3 of 5, recover: 3s, pooled: {weight: input_rows}}": "below 2s in 3 of 5 batches, clear again at 3s, " +
			"pooled over at most 20 batches by input_rows, at least 1000",
		"stands: {}": "stands for 50 batches and 30m",
		"stands: {over: 5 batches, while: input_rows}":               "stands for 5 batches while input_rows moves",
		"stands: {over: 5 batches, beyond: 150%, while: input_rows}": "stands for 5 batches, and 150% of the longest before while input_rows moves",
		"shifted: {}": "shifted up by 25%, 20 batches and 20m against a baseline of 100 batches and 2h, confidence 99.9%",
		"shifted: {early: true, side: down, at_least: 50ms, adjusted_for: input_rows}": "shifted down by 25%, 20 batches and 20m against " +
			"a baseline of 100 batches and 2h, at least 50ms, early, adjusted for input_rows",
		"spiking: {}": "5 spikes of 3 times the median over 200 batches and 2h, from 60 batches on, at a rhythm",
		"spiking: {rhythm: none, at_least: 1s, beside: {b: input_rows, a: duration_ms}}": "5 spikes of 3 times the median over " +
			"200 batches and 2h, from 60 batches on, at least 1s above it, at no rhythm; beside them a, b",
		"spiking: {rhythm: clock}": "5 spikes of 3 times the median over 200 batches and 2h, from 60 batches on, at a rhythm of clock",
		"reaches: {limit: 1m}":     "reaches 1m within 24h, moving by 10% over 120 batches and 2h, from 60 batches on, confidence 99.9%",
		"reaches: {limit: 0, side: down, agree_over: 240 batches and 4h, detrend: daily, adjusted_for: input_rows, raw_above: 5s}": "reaches 0 within 24h from above, " +
			"moving by 10% over 120 batches and 2h, from 60 batches on, confidence 99.9%, agreeing over 240 batches and 4h, " +
			"adjusted for input_rows below 5s, without the daily cycle",
		"follows: {driver: rows_total, rival: input_rows}": "follows rows_total and not input_rows over 200 batches and 2h, from 60 batches on, " +
			"correlation 0.4, confidence 99.9%",
	} {
		if got := risingOf(t, spec).describe(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// episodesOf counts how often a detector begins to find something, 40 batches clear
// between, in healthy noise of one shape, judged at its stride.
func episodesOf(t *testing.T, spec string, batches int, value func(i int) float64, drives *noise) int {
	t.Helper()
	j := newJudgedSeries(risingOf(t, spec), &trend.Scratch{})
	episodes, until := 0, 0
	for i := range batches {
		for k := range j.in {
			if j.in[k] = 401; !j.even {
				j.in[k] = 1000 * drives.next()
			}
		}
		j.tr.push(trend.Point{Batch: int64(i), AtMs: startMs + int64(i)*minuteMs, Value: value(i)}, j.in)
		if i%j.stride != 0 || j.tr.judge(nil).Said != SaidFound {
			continue
		}
		if i > until {
			episodes++
		}
		until = i + 40
	}
	return episodes
}

// TestHealthyNoiseGivesFewFindings prints the episodes over healthy series of each
// shape, and bounds them: detectors are meant to be held by "for" beside this.
func TestHealthyNoiseGivesFewFindings(t *testing.T) {
	const batches = 6000
	for name, tc := range map[string]struct {
		spec string
		most int
	}{
		"shifted":           {"shifted: {}", 6},
		"shifted early":     {"shifted: {early: true}", 18},
		"a rhythm":          {"spiking: {}", 0},
		"reaches":           {"reaches: {limit: 2}", 12},
		"reaches, agreeing": {"reaches: {limit: 2, agree_over: 240 batches and 4h}", 3},
		"follows":           {"follows: {driver: input_rows}", 0},
	} {
		for shape, values := range healthy {
			if name == "a rhythm" && strings.Contains(shape, "spike") {
				continue // that one has a rhythm
			}
			got := episodesOf(t, tc.spec, batches, values(newNoise(77)), newNoise(78))
			t.Logf("%s, %s: %d episodes in %d batches", name, shape, got, batches)
			if got > tc.most {
				t.Errorf("%s, %s: %d episodes in %d batches, more than %d", name, shape, got, batches, tc.most)
			}
		}
	}
}

// faults are what a detector is to find: factors around 1 that begin at a batch.
var faults = map[string]func(since int) float64{
	"step of half":               func(int) float64 { return 1.5 },
	"step of three times":        func(int) float64 { return 3 },
	"climb of .5 percent":        func(since int) float64 { return 1 + 0.005*float64(since) },
	"climb of 2 percent a batch": func(since int) float64 { return 1 + 0.02*float64(since) },
}

// delayOf is how many batches after its beginning a fault is found, -1 where it is
// not within 400 batches. A finding counts once it has lasted for 5.
func delayOf(t *testing.T, spec string, shape func(int) float64, fault func(int) float64) int {
	t.Helper()
	const begins, held = 600, 5
	j := newJudgedSeries(risingOf(t, spec), &trend.Scratch{})
	found := 0
	for i := range begins + 400 {
		v := shape(i)
		if i >= begins {
			v *= fault(i - begins)
		}
		for k := range j.in {
			j.in[k] = 401
		}
		j.tr.push(trend.Point{Batch: int64(i), AtMs: startMs + int64(i)*minuteMs, Value: v}, j.in)
		if i < begins || i%4 != 0 {
			continue
		}
		if found++; j.tr.judge(nil).Said != SaidFound {
			found = 0
		}
		if 4*found > held {
			return i - begins
		}
	}
	return -1
}

// TestFaultsAreFoundSoonEnough prints how many of ten runs find a fault, and after
// how many batches at the median, and bounds what is to be relied on.
func TestFaultsAreFoundSoonEnough(t *testing.T) {
	for _, tc := range []struct {
		name, spec, fault string
		least, latest     int
	}{
		{"shifted", "shifted: {}", "step of half", 9, 40},
		{"shifted", "shifted: {}", "step of three times", 10, 30},
		{"shifted", "shifted: {}", "climb of 2 percent a batch", 9, 60},
		{"shifted early", "shifted: {early: true}", "step of half", 9, 30},
		{"shifted early", "shifted: {early: true}", "step of three times", 10, 20},
		{"reaches", "reaches: {limit: 4}", "climb of .5 percent", 9, 200},
		{"reaches", "reaches: {limit: 4}", "climb of 2 percent a batch", 9, 80},
		{"reaches, agreeing", "reaches: {limit: 4, agree_over: 240 batches and 4h}", "climb of .5 percent", 9, 250},
		{"reaches, agreeing", "reaches: {limit: 4, agree_over: 240 batches and 4h}", "climb of 2 percent a batch", 9, 120},
	} {
		var delays []int
		for seed := range uint64(10) {
			n := newNoise(seed)
			if d := delayOf(t, tc.spec, func(int) float64 { return n.next() }, faults[tc.fault]); d >= 0 {
				delays = append(delays, d)
			}
		}
		slices.Sort(delays)
		median := -1
		if len(delays) > 0 {
			median = delays[len(delays)/2]
		}
		t.Logf("%s, %s: %d of 10, after %d batches", tc.name, tc.fault, len(delays), median)
		if len(delays) < tc.least || median > tc.latest {
			t.Errorf("%s, %s: %d of 10 after %d batches, want %d after at most %d", tc.name, tc.fault, len(delays), median, tc.least, tc.latest)
		}
	}
}
