package app

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
	"github.com/stategauge/stategauge/rules"
)

// rerun puts recorded events through everything that the daemon puts them through,
// in one goroutine and with a clock that goes by the events: decoder, tracker,
// exporter, the shipped rules.
type rerun struct {
	tracker  *track.Tracker
	export   *exporter.Exporter
	engine   *rules.Engine
	registry *prometheus.Registry // of the rules' own metrics
	times    int                  // deliveries of each event in a row
	stretch  int64                // how many times as long the time between events becomes
	// before, if set, is called before a batch is applied for the first time, and
	// after when it has been.
	before, after func(b *event.Batch)

	firstMs         int64 // time of the first event
	nowMs, tickedMs int64
	sum             filesource.Summary
	outcomes        map[event.Outcome]int
	batches         []played
	noData          int
	runs            map[event.RunID]bool
	operators       map[string]bool
	unknown         map[string]bool
	spark           event.Version
	fired           []string
	updates         []event.Update
	verdicts        []rules.Verdict
}

// played is a batch that was counted.
type played struct {
	run     event.RunID
	id      int64
	startMs int64
	noData  bool
}

// rerunTickMs is how often the rules and the tracker look at the clock.
const rerunTickMs = 5000

func newRerun(t testing.TB) *rerun {
	t.Helper()
	pack, err := LoadRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &rerun{
		tracker: track.New(track.DefaultConfig(), nil), export: exporter.New(exporter.Options{}), times: 1, stretch: 1,
		outcomes: map[event.Outcome]int{}, runs: map[event.RunID]bool{},
		operators: map[string]bool{}, unknown: map[string]bool{},
	}
	p.judgeBy(pack)
	return p
}

// judgeBy exchanges the rules.
func (p *rerun) judgeBy(pack *rules.Pack) {
	p.registry = prometheus.NewRegistry()
	p.engine = rules.New(pack, rules.Options{TickMs: rerunTickMs, Metrics: rules.NewMetrics(p.registry)})
}

// evaluated is how many values the rules have taken into their windows.
func (p *rerun) evaluated(t testing.TB) (n float64) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "stategauge_rule_evaluations_total" {
			for _, m := range f.Metric {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// read plays a file or folder. Whatever is not an event must not be there.
func (p *rerun) read(t testing.TB, path string) {
	t.Helper()
	src := filesource.New(filesource.Config{Paths: []string{path}, ByTime: true, NowMs: func() int64 { return p.nowMs }})
	sum, err := src.Run(t.Context(), p.step, func(r filesource.Rejected) {
		t.Errorf("%s:%d rejected, %s: %v", r.File, r.Index, r.Reason, r.Err)
	})
	if err != nil {
		t.Fatal(err)
	}
	p.sum = sum
}

func (p *rerun) step(_ context.Context, step *collector.Step) error {
	for i := range step.Items {
		p.stretchTime(step.Items[i].Event)
		for range p.times {
			p.take(step.Items[i].Event)
		}
	}
	return nil
}

// stretchTime moves an event away from the first one.
func (p *rerun) stretchTime(e *event.Event) {
	if p.firstMs == 0 {
		p.firstMs = e.AtMs
	}
	moments := []*int64{&e.AtMs}
	if b := e.Batch; b != nil {
		moments = append(moments, &b.StartMs, &b.WatermarkMs, &b.EventTimeMaxMs)
	}
	for _, at := range moments {
		if *at != event.Absent {
			*at = p.firstMs + (*at-p.firstMs)*p.stretch
		}
	}
}

// take applies one event, and before it the time that has passed.
func (p *rerun) take(e *event.Event) {
	p.advance(e)
	p.updates = p.tracker.Apply(e, p.nowMs, p.updates[:0])
	counts := e.Batch != nil && p.outcomeOf(e) == event.OutcomeExecuted
	if counts && p.before != nil {
		p.before(e.Batch)
	}
	p.publish()
	p.outcomes[p.outcomeOf(e)]++
	if !counts {
		return
	}
	p.note(e.Batch)
	if p.after != nil {
		p.after(e.Batch)
	}
}

// told is how many batches were heard of, those of an older run included.
func (p *rerun) told() int {
	return p.outcomes[event.OutcomeExecuted] + p.outcomes[event.OutcomeLate]
}

func (p *rerun) outcomeOf(e *event.Event) event.Outcome { return outcomeOf(e, p.updates) }

// advance moves the clock to the end of what the event reports, in ticks.
func (p *rerun) advance(e *event.Event) {
	at := e.AtMs
	if e.Batch != nil {
		at = max(at, e.Batch.EndMs())
	}
	if p.tickedMs == 0 {
		p.tickedMs = at
	}
	for p.tickedMs+rerunTickMs <= at {
		p.tickedMs += rerunTickMs
		p.nowMs = max(p.nowMs, p.tickedMs)
		p.updates = p.tracker.Tick(p.nowMs, p.updates[:0])
		p.publish()
		p.verdicts = p.engine.Tick(p.nowMs, p.verdicts[:0])
		p.heed()
	}
	p.nowMs = max(p.nowMs, at)
}

func (p *rerun) publish() {
	for i := range p.updates {
		u := &p.updates[i]
		p.export.Apply(u)
		if rules.Judgeable(u.Outcome) {
			p.verdicts = p.engine.Apply(u, p.verdicts[:0])
			p.heed()
		}
	}
}

// heed notes alerts that began to fire.
func (p *rerun) heed() {
	for i := range p.verdicts {
		v := &p.verdicts[i]
		if v.Alert != nil && v.Alert.State == rules.Firing && v.Was != rules.Firing {
			p.fired = append(p.fired, fmt.Sprintf("%s at batch %d", v.Rule, v.Alert.FiringBatch))
		}
	}
}

func (p *rerun) note(b *event.Batch) {
	p.batches = append(p.batches, played{b.Run, b.ID, b.StartMs, b.NoData})
	p.runs[b.Run] = true
	if b.NoData {
		p.noData++
	}
	if p.spark.Less(b.Spark) {
		p.spark = b.Spark
	}
	for i := range b.Operators {
		o := &b.Operators[i]
		p.operators[fmt.Sprintf("%d %s (%s, %d stores, %d reporting)", o.Index, o.Name, o.Provider, o.Instances, o.Stores)] = true
		for _, kv := range o.Unknown {
			p.unknown[kv.Key] = true
		}
	}
	for _, kv := range b.UnknownPhases {
		p.unknown["durationMs."+kv.Key] = true
	}
}

// page returns the exporter's page, parsed.
func (p *rerun) page(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	var b bytes.Buffer
	if err := p.export.Write(&b, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	f, err := parser.TextToMetricFamilies(&b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// counters returns every counter that is not 0, without the labels that name the
// query, in order.
func (p *rerun) counters() []string {
	var b bytes.Buffer
	if err := p.export.Write(&b, expfmt.NewFormat(expfmt.TypeTextPlain)); err != nil {
		return []string{err.Error()}
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&b)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for name, f := range families {
		for _, m := range f.Metric {
			if v := m.GetCounter().GetValue(); v != 0 {
				out = append(out, seriesName(name, m)+" "+strconv.FormatFloat(v, 'g', 12, 64))
			}
		}
	}
	slices.Sort(out)
	return out
}

// seriesName is a series without the prefix and labels that all of a query have.
func seriesName(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		switch l.GetName() {
		case "query_id", "query_name", "application", "spark_cluster":
		default:
			labels = append(labels, l.GetName()+"="+l.GetValue())
		}
	}
	slices.Sort(labels)
	return strings.TrimPrefix(name, "spark_streaming_") + "{" + strings.Join(labels, ",") + "}"
}
