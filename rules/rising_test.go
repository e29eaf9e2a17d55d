package rules

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/rules/trend"
)

// risingOf compiles a detector of seconds.
func risingOf(t testing.TB, spec string) detector {
	t.Helper()
	p, err := Load(Source{Name: "r.yaml", Data: []byte(wrapRule("alert: A\nsignal: took\n" + spec))})
	if err != nil {
		t.Fatal(err)
	}
	return p.rules[0].detector
}

// TestRising runs testdata: a detector and a series in, each change of what it
// says out. A series is a list of stretches: "200x1" is 200 batches around 1,
// "100x1~2" a ramp; load=, every= and noise= change what follows.
func TestRising(t *testing.T) {
	datadriven.RunTest(t, "testdata/rising", func(t *testing.T, d *datadriven.TestData) string {
		spec, series, _ := strings.Cut(d.Input, "\n")
		tr := risingOf(t, spec).newTracker(&trend.Scratch{})
		p := &seriesPlayer{everyMs: minuteMs, load: math.NaN(), noise: newNoise(5), spread: 0.05}
		var b strings.Builder
		for _, stretch := range strings.Split(series, "\n") {
			p.play(t, stretch, func(pt trend.Point) {
				tr.push(pt, nil)
				j := tr.judge(p.hold)
				if j.Said == SaidFound && p.holding {
					p.hold = &j
				}
				if now := fmt.Sprint(j.Said, " ", j.How); now != p.said {
					p.said = now
					fmt.Fprintf(&b, "batch %d: %s\n", pt.Batch, describeJudgement(j))
				}
			})
		}
		return b.String()
	})
}

func describeJudgement(j Judgement) string {
	if j.How == "" {
		return j.Said.String()
	}
	return fmt.Sprintf("%s by %s, %s -> %s, since %d", j.Said, j.How, digits(j.Start), digits(j.End), j.Since)
}

// seriesPlayer turns stretches into points.
type seriesPlayer struct {
	batch, nowMs, everyMs int64
	load, spread          float64
	noise                 *noise
	said                  string
	holding               bool
	hold                  *Judgement
}

func (p *seriesPlayer) play(t *testing.T, stretch string, push func(trend.Point)) {
	for _, word := range strings.Fields(stretch) {
		var n, minutes int
		var from, to float64
		switch {
		case word == "holding":
			p.holding = true
		case scan(word, "load=%g", &p.load), scan(word, "noise=%g", &p.spread):
		case scan(word, "every=%dm", &minutes):
			p.everyMs = int64(minutes) * minuteMs
		case scan(word, "gap=%dm", &minutes):
			p.nowMs += int64(minutes) * minuteMs
		case scan(word, "%dx%g~%g", &n, &from, &to):
			p.stretch(n, from, to, push)
		case scan(word, "%dx%g", &n, &from):
			p.stretch(n, from, from, push)
		default:
			t.Fatalf("%q is no stretch", word)
		}
	}
}

func scan(word, format string, into ...any) bool {
	n, err := fmt.Sscanf(word+"\n", format+"\n", into...)
	return err == nil && n == len(into)
}

func (p *seriesPlayer) stretch(n int, from, to float64, push func(trend.Point)) {
	for i := range n {
		level := from + (to-from)*float64(i)/float64(n)
		p.batch++
		p.nowMs += p.everyMs
		push(trend.Point{Batch: p.batch, AtMs: p.nowMs, Value: level * math.Exp(p.spread*p.noise.r.NormFloat64()), Load: p.load})
	}
}

func TestADetectorDescribesItself(t *testing.T) {
	for spec, want := range map[string]string{
		"rising: {}": "rising by 25% over 120 batches and 2h, from 60 batches on, confidence 99.9%",
		"falling: {over: 100 batches, min_points: 30, by: 10%, at_least: 50ms, confidence: 99%, adjusted_for: input_rows, agree_over: 200 batches, agree_at: 95%, " +
			"level: {recent: 60 batches, before: 500 batches, by: 35%}}": "falling by 10% over 100 batches, from 30 batches on, at least 50ms, " +
			"confidence 99%, adjusted for input_rows, agreeing over 200 batches at 95%; or the level of 60 batches by 35% against 500 batches before",
	} {
		if got := risingOf(t, spec).describe(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestAStreamTooRareForATrendHasTooFewPoints(t *testing.T) {
	tr := risingOf(t, "rising: {over: 60 batches}").newTracker(&trend.Scratch{})
	at := int64(0)
	push := func(n int, everyMs int64) {
		for range n {
			at += everyMs
			tr.push(trend.Point{Batch: at / minuteMs, AtMs: at, Value: 1, Load: math.NaN()}, nil)
		}
	}
	push(100, 3*hourMs) // 60 in 7.4 days
	if got := tr.judge(nil).Said; got != SaidTooFew {
		t.Errorf("one batch in three hours: %v", got)
	}
	push(60, 2*hourMs) // 60 in 4.9 days
	if got := tr.judge(nil).Said; got != SaidClear {
		t.Errorf("one batch in two hours: %v", got)
	}
}

func TestMinPointsIsABoundary(t *testing.T) {
	tr := risingOf(t, "rising: {over: 200 batches, min_points: 60}").newTracker(&trend.Scratch{})
	for i := range int64(60) {
		if got := tr.judge(nil).Said; got != SaidTooFew {
			t.Fatalf("%d batches: %v", i, got)
		}
		tr.push(trend.Point{Batch: i, AtMs: i * minuteMs, Value: 1, Load: math.NaN()}, nil)
	}
	if got := tr.judge(nil); got.Said != SaidClear || got.Value != 1 || got.Points != 60 {
		t.Errorf("60 equal values: %+v", got)
	}
	tr.reset()
	if got := tr.judge(nil); got.Said != SaidTooFew || tr.points() != 0 || !math.IsNaN(got.Value) {
		t.Errorf("after a reset: %+v", got)
	}
}
