package rules

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

func TestAFailingTemplateDoesNotHoldUpItsAlert(t *testing.T) {
	// Each passes the trial at load, and fails on what the alert really says.
	for name, text := range map[string]string{
		"an index out of range": "{{ if gt .LastBatch 50 }}{{ index .Phases 99 }}{{ end }}",
		"a key that is not":     "{{ if gt .LastBatch 50 }}{{ .Labels.nosuch }}{{ end }}",
		"a call of no function": "{{ if gt .LastBatch 50 }}{{ call .Alert }}{{ end }}",
	} {
		t.Run(name, func(t *testing.T) {
			p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, annotations: {summary: '"+text+"', fix: do this}}\n")
			s := lifeStream(p)
			fired := changed(s.play(figures{rows: 2}), Firing)
			if len(fired) != 1 {
				t.Fatal("the alert did not fire")
			}
			a := fired[0].Alert.Annotations
			if got := a.Get("summary"); got != "A on orders: rows is 2 rows, 1 rows at the beginning of the window (template error, see template_error)" {
				t.Errorf("summary: %q", got)
			}
			if !strings.HasPrefix(a.Get("template_error"), "summary: template: ") || a.Get("fix") != "do this" {
				t.Errorf("template_error: %q, fix: %q", a.Get("template_error"), a.Get("fix"))
			}
			s.e.Alerts(nil)
			if got := counterValue(t, s.e.rules[0].metrics.templateErrors); got != 2 {
				t.Errorf("%v errors were counted, want one for pending and one for firing", got)
			}
			if st := s.e.Status(false).Groups[0].Rules[0]; st.Health != "err" || !strings.Contains(st.LastError, "summary") {
				t.Errorf("status: %s, %q", st.Health, st.LastError)
			}
		})
	}
}

func TestAHugeAnnotationIsCut(t *testing.T) {
	p := scriptedPack(t, "      - {alert: A, signal: rows, rising: {}, annotations: {summary: '"+strings.Repeat("long ", 5000)+"'}}\n")
	fired := changed(lifeStream(p).play(figures{rows: 2}), Firing)
	if got := fired[0].Alert.Annotations.Get("summary"); len(got) > maxAnnotationBytes || !strings.HasSuffix(got, "...") {
		t.Errorf("%d bytes were delivered", len(got))
	}
}

// TestTheDefaultPackExplainsItself runs testdata: what changed at batch 700 in,
// the annotations of the alert out.
func TestTheDefaultPackExplainsItself(t *testing.T) {
	datadriven.RunTest(t, "testdata/explain", func(t *testing.T, d *datadriven.TestData) string {
		s := newStream(New(defaultPack(t), Options{}))
		n := newNoise(9)
		for i := range 900 {
			s.play(faulty(d, i >= 600, n))
		}
		var b strings.Builder
		for _, a := range s.e.Alerts(nil) {
			if a.State != Firing {
				continue
			}
			b.WriteString(a.Labels.Get("alertname") + "\n")
			for _, x := range a.Annotations {
				if x.Name != "runbook_url" && x.Name != "description" {
					b.WriteString("  " + x.Name + ": " + x.Value + "\n")
				}
			}
		}
		return b.String()
	})
}

// faulty makes a batch of which the figures named in the case are larger once the
// fault is on: sync=2 doubles.
func faulty(d *datadriven.TestData, on bool, n *noise) figures {
	factor := func(name string) float64 {
		f := 1.0
		if on && d.HasArg(name) {
			d.ScanArgs(panicker{}, name, &f)
		}
		return f
	}
	jitter := func() float64 { return math.Exp(0.08 * n.r.NormFloat64()) }
	phases := map[event.MetricID]float64{
		event.DurationAddBatch:     2000 * factor("addBatch") * jitter(),
		event.DurationLatestOffset: 200 * factor("latestOffset") * jitter(),
		event.DurationWalCommit:    100 * factor("walCommit") * jitter(),
		event.DurationGetBatch:     10, event.DurationQueryPlanning: 50,
	}
	total := 0.0
	for _, ms := range phases {
		total += ms
	}
	phases[event.DurationTriggerExecution] = math.Round(total + 40)
	phases[event.BatchDuration] = math.Round(total + 40)
	return figures{
		duration: phases[event.BatchDuration], phases: phases, sync: 100 * factor("sync") * jitter(),
		copied: 1e6 * factor("copied") * jitter(), commit: 300 * factor("commit") * jitter(),
	}
}

// panicker is what ScanArgs wants for a testing.TB outside of a test.
type panicker struct{ testing.TB }

func (panicker) Helper()                        {}
func (panicker) Fatal(args ...any)              { panic(args) }
func (panicker) Fatalf(format string, a ...any) { panic(format) }

func TestCauseOfASlowerTrigger(t *testing.T) {
	phase := func(name string, before, after, share float64) Change {
		return Change{Name: name, Before: before, After: after, Phase: true, Share: share}
	}
	state := func(before, after float64) map[string]Change {
		return map[string]Change{"state_commit": {Before: before, After: after}}
	}
	for _, c := range []struct {
		name     string
		phases   []Change
		evidence map[string]Change
		want     string
	}{
		{"nothing watched", nil, nil, ""},
		{"another phase", []Change{phase("latestOffset", 1, 3, 0.9)}, nil, "latestOffset"},
		{"commit alone makes it up", []Change{phase("addBatch", 2, 4, 1)}, state(0.5, 2.3), "commit"},
		{"commit grew by the same factor, tasks queueing for cores", []Change{phase("addBatch", 10, 20, 1)}, state(1.2, 2.3), "commit"},
		{"commit is too small to matter", []Change{phase("addBatch", 10, 20, 1)}, state(0.01, 0.03), "own code or load"},
		{"commit did not grow", []Change{phase("addBatch", 2, 4, 1)}, state(0.5, 0.5), "own code or load"},
		{"state unknown", []Change{phase("addBatch", 2, 4, 1)}, state(math.NaN(), math.NaN()), "own code or load"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cause(c.phases, c.evidence); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLabelsStaySortedWithoutRepeatsOrEmptyValues(t *testing.T) {
	var l Labels
	for _, x := range []Label{{"c", "3"}, {"a", "1"}, {"b", ""}, {"c", "4"}, {"d", "x"}, {"d", ""}, {"b", "2"}} {
		l = l.with(x.Name, x.Value)
	}
	if got := labelText(l); got != "a=1 b=2 c=4" {
		t.Errorf("got %q", got)
	}
}

func TestStampsAreReadable(t *testing.T) {
	if got := stamp(startMs); got != time.UnixMilli(startMs).UTC().Format(time.RFC3339) {
		t.Errorf("got %q", got)
	}
	if got := stamp(event.Absent); got != "an unknown time" {
		t.Errorf("got %q", got)
	}
}
