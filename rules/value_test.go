package rules

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules/trend"
)

// tape feeds a detector with batches that a script describes, and writes down each
// change of what it says. Columns are the value and then the detector's inputs, in
// the order in which it evaluates them; each is one of
//
//	3           constant
//	1~2         from the first to the second over the stretch
//	1|9@10      1, and 9 in each tenth batch (1|9@10m: in each that starts 10 minutes on)
//	1?9@0.05    1, and 9 in one batch of twenty at random
//	2*c1        twice column 1 (the first input)
//	~4/50       4 with a saw tooth of 50 batches up to twice as much
//	sin(2,1,1d) 2 with a daily cycle of 1
//	nan, +inf, -inf, 1e300
type tape struct {
	t              *testing.T
	d              detector
	tr             tracker
	batch, nowMs   int64
	everyMs        int64
	jitter, spread float64
	n              *noise
	holding        bool
	hold           *Judgement
	said           string
	every          int // judge each so many batches
	out            strings.Builder
}

func newTape(t *testing.T, spec string) *tape {
	d := risingOf(t, spec)
	return &tape{
		t: t, d: d, tr: d.newTracker(&trend.Scratch{}), nowMs: startMs, everyMs: minuteMs, spread: 0.05, n: newNoise(11), every: 1,
	}
}

// TestValueDetectors runs testdata/values: a rule in the first line, then one
// stretch a line, with what the detector said at each change.
func TestValueDetectors(t *testing.T) {
	datadriven.Walk(t, "testdata/values", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec, script, _ := strings.Cut(d.Input, "\n")
			p := newTape(t, spec)
			for _, line := range strings.Split(script, "\n") {
				p.line(line)
			}
			return p.out.String()
		})
	})
}

func (p *tape) line(line string) {
	words := strings.Fields(line)
	for len(words) > 0 {
		var n int
		var minutes float64
		switch w := words[0]; {
		case w == "holding":
			p.holding = true
		case w == "reset":
			p.tr.reset()
			p.said = ""
		case w == "again":
			p.batch--
		case scan(w, "noise=%g", &p.spread), scan(w, "jitter=%g", &p.jitter), scan(w, "judge=%d", &p.every):
		case scan(w, "every=%gs", &minutes):
			p.everyMs = int64(minutes * 1000)
		case scan(w, "every=%gm", &minutes):
			p.everyMs = int64(minutes * minuteMs)
		case scan(w, "jump=%gh", &minutes):
			p.nowMs += int64(minutes * hourMs)
		case scan(w, "back=%d", &n):
			p.batch -= int64(n)
		case scan(w, "skip=%d", &n):
			p.batch += int64(n)
		case scan(w, "x%d", &n):
			p.stretch(n, words[1:])
			return
		default:
			p.t.Fatalf("%q is nothing that a tape knows", w)
		}
		words = words[1:]
	}
}

func (p *tape) stretch(n int, columns []string) {
	in := make([]float64, len(p.d.inputs()))
	for k := range in {
		in[k] = math.NaN() // a column that the script leaves out
	}
	for i := range n {
		p.batch++
		p.nowMs += p.everyMs + int64(p.jitter*p.n.r.NormFloat64()*float64(p.everyMs))
		for c := 1; c < len(columns); c++ {
			in[c-1] = p.cell(columns[c], i, n, in)
		}
		pt := trend.Point{Batch: p.batch, AtMs: p.nowMs, Value: p.cell(columns[0], i, n, in), Load: math.NaN()}
		if len(in) > 0 {
			pt.Load = in[0]
		}
		p.tr.push(pt, in)
		if p.batch%int64(p.every) == 0 {
			p.judge()
		}
	}
}

func (p *tape) judge() {
	j := p.tr.judge(p.hold)
	if j.Said == SaidFound && p.holding {
		p.hold = &j
	}
	if now := fmt.Sprint(j.Said, " ", j.How, wordsOf(j.Why)); now != p.said {
		p.said = now
		fmt.Fprintf(&p.out, "batch %d: %s\n", p.batch, told(j))
	}
}

// wordsOf drops the numbers of a text, which change with every batch.
func wordsOf(text string) string { return numbers.ReplaceAllString(text, "") }

var numbers = regexp.MustCompile(`-?([0-9.]+[a-z]*)+`)

// told shows a judgement in one line.
func told(j Judgement) string {
	var b strings.Builder
	b.WriteString(j.Said.String())
	if j.How != "" {
		fmt.Fprintf(&b, " by %s", j.How)
	}
	if j.Said == SaidFound {
		fmt.Fprintf(&b, ", %s -> %s, since %d", digits(j.Start), digits(j.End), j.Since)
	}
	if j.EtaMs == j.EtaMs {
		fmt.Fprintf(&b, ", in %s (%s to %s)", hours(j.EtaMs), hours(j.EtaLowMs), hours(j.EtaHighMs))
	}
	if p := j.period(); p != "" {
		fmt.Fprintf(&b, ", each %s", p)
	}
	if j.Text != "" {
		fmt.Fprintf(&b, ", with %s", j.Text)
	}
	if j.Why != "" && j.Why != j.Said.String() {
		fmt.Fprintf(&b, " (%s)", j.Why)
	}
	return b.String()
}

func hours(ms float64) string {
	if ms != ms {
		return "?"
	}
	return fmt.Sprintf("%.1fh", ms/hourMs)
}

// cell works out one figure of batch i of n.
func (p *tape) cell(text string, i, n int, in []float64) float64 {
	noisy := func(x float64) float64 { return x * math.Exp(p.spread*p.n.r.NormFloat64()) }
	var a, b, c float64
	var k int
	switch {
	case text == "nan":
		return math.NaN()
	case text == "+inf":
		return math.Inf(1)
	case text == "-inf":
		return math.Inf(-1)
	case scan(text, "%g*c%d", &a, &k):
		return noisy(a * in[k-1])
	case scan(text, "%g|%g@%dm", &a, &b, &k):
		if p.nowMs/(int64(k)*minuteMs) != (p.nowMs-p.everyMs)/(int64(k)*minuteMs) {
			a = b
		}
	case scan(text, "%g|%g@%d", &a, &b, &k):
		if p.batch%int64(k) == 0 {
			a = b
		}
	case scan(text, "%g?%g@%g", &a, &b, &c):
		if p.n.r.Float64() < c {
			a = b
		}
	case scan(text, "~%g/%d", &a, &k):
		a += a * float64(p.batch%int64(k)) / float64(k)
	case scan(text, "sin(%g,%g,1d)", &a, &b):
		a += b * math.Sin(2*math.Pi*float64(p.nowMs)/(24*hourMs))
	case scan(text, "%g~%g", &a, &b):
		a += (b - a) * float64(i) / float64(n)
	case scan(text, "=%g", &a):
		return a
	case scan(text, "%g", &a):
	default:
		p.t.Fatalf("%q is no figure", text)
	}
	return noisy(a)
}

// specs are one of each value detector.
var specs = map[string]string{
	"above":   "above: {limit: 2, batches: 3 of 5, recover: 1.5}",
	"below":   "below: {limit: 0.5, batches: 2 of 3}",
	"pooled":  "above: {limit: 2, pooled: {weight: input_rows, at_least: 100}}",
	"shifted": "shifted: {adjusted_for: input_rows}",
	"early":   "shifted: {early: true}",
	"spiking": "spiking: {beside: {rows: input_rows}}",
	"reaches": "reaches: {limit: 100, agree_over: 240 batches and 4h}",
	"limits":  "reaches: {limit: trigger_interval_ms, detrend: daily}",
	"follows": "follows: {driver: input_rows, rival: duration_ms}",
	"stands":  "stands: {over: 20 batches and 10m, while: input_rows}",
}

// TestNothingStrangeIsAFinding plays what clocks and senders get wrong, over a
// level that does not move (for stands: that does).
func TestNothingStrangeIsAFinding(t *testing.T) {
	for name, spec := range specs {
		for strange, change := range map[string]func(i int, p *trend.Point){
			"not finite": func(i int, p *trend.Point) {
				p.Value = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, p.Value}[i%6]
			},
			"repeated":       func(i int, p *trend.Point) { p.Batch = int64(i / 3) },
			"unordered":      func(i int, p *trend.Point) { p.Batch += int64(i*7%13) - 6 },
			"backwards":      func(i int, p *trend.Point) { p.Batch = int64(1000 - i) },
			"below zero":     func(_ int, p *trend.Point) { p.Batch = -p.Batch },
			"undated":        func(_ int, p *trend.Point) { p.AtMs = event.Absent },
			"clock jumps":    func(i int, p *trend.Point) { p.AtMs += int64(i%50/49) * 400 * 24 * hourMs },
			"clock runs off": func(i int, p *trend.Point) { p.AtMs += int64(i/200) * 30 * 365 * 24 * hourMs },
			"clock back":     func(i int, p *trend.Point) { p.AtMs -= int64(i) * 2 * minuteMs },
			"ids leap":       func(i int, p *trend.Point) { p.Batch += int64(i/100) << 40 },
			"extremes":       func(i int, p *trend.Point) { p.AtMs = []int64{math.MaxInt64, math.MinInt64 + 1, p.AtMs}[i%3] },
		} {
			d := risingOf(t, spec)
			tr := d.newTracker(&trend.Scratch{})
			in := make([]float64, len(d.inputs()))
			for i := range 700 {
				p := trend.Point{Batch: int64(i), AtMs: startMs + int64(i)*minuteMs, Value: 1 + float64(i%7)/100, Load: 1000}
				for k := range in {
					in[k] = 1000 + float64((i+k)%5)
				}
				change(i, &p)
				tr.push(p, in)
				if j := tr.judge(nil); j.Said == SaidFound {
					t.Errorf("%s, %s: batch %d: %s", name, strange, i, told(j))
					break
				}
			}
		}
	}
}

func TestInputsThatAreNoNumbersNeverPanicOrFind(t *testing.T) {
	for name, spec := range specs {
		d := risingOf(t, spec)
		tr := d.newTracker(&trend.Scratch{})
		in := make([]float64, len(d.inputs()))
		for i := range 400 {
			for k := range in {
				in[k] = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1, 0}[(i+k)%6]
			}
			tr.push(trend.Point{Batch: int64(i), AtMs: startMs + int64(i)*minuteMs, Value: 1 + float64(i%7)/100}, in)
			if j := tr.judge(nil); j.Said == SaidFound && name != "pooled" {
				t.Errorf("%s: batch %d: %s", name, i, told(j))
				break
			}
		}
	}
}

func TestOnePointOrNoneIsTooFew(t *testing.T) {
	for name, spec := range specs {
		d := risingOf(t, spec)
		tr := d.newTracker(&trend.Scratch{})
		for n := range 2 {
			if j := tr.judge(nil); j.Said != SaidTooFew && j.Said != SaidCannotTell || !strings.HasPrefix(j.Why, j.Said.String()) {
				t.Errorf("%s, %d points: %s", name, n, told(j))
			}
			tr.push(trend.Point{Batch: 1, AtMs: startMs, Value: 1}, make([]float64, len(d.inputs())))
		}
	}
}

func TestAResetForgetsEverythingButBaselines(t *testing.T) {
	for name, spec := range specs {
		d := risingOf(t, spec)
		tr := d.newTracker(&trend.Scratch{})
		in := make([]float64, len(d.inputs()))
		for i := range 300 {
			for k := range in {
				in[k] = 1000
			}
			tr.push(trend.Point{Batch: int64(i), AtMs: startMs + int64(i)*minuteMs, Value: float64(1 + i%3)}, in)
		}
		if tr.points() == 0 {
			t.Errorf("%s: no points before the reset", name)
		}
		tr.reset()
		if j := tr.judge(nil); tr.points() != 0 || j.Said != SaidTooFew && j.Said != SaidCannotTell {
			t.Errorf("%s: %d points after the reset, %s", name, tr.points(), told(j))
		}
	}
}
