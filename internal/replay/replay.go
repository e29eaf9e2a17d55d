// Package replay runs recorded events through the tracker and the rules as the
// daemon would, and says what they show. Diagnose is its first use: events from
// files, a report for people or programs. The clock of a replay is that of the
// events; silence after the newest one is no finding.
package replay

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/filesource"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// Formats of the report.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Options say what to diagnose.
type Options struct {
	// Paths are files and folders; "-" is standard input, and so are no paths at all.
	Paths []string
	// Stdin is read for the path "-"; nil means the process's own.
	Stdin io.Reader
	// Rules judges trends; nil leaves them out.
	Rules *rules.Pack
	// MaxRejected is how many rejects are listed one by one; 0 means 1,000. All are
	// counted.
	MaxRejected int
}

// Diagnose reads the events of o.Paths and writes the report to w in the given
// format. It returns how many events were read: none means that there was nothing
// to diagnose. The report is written even if some path could not be read; err
// then says which.
func Diagnose(ctx context.Context, o Options, w io.Writer, format string) (read int, err error) {
	if format != FormatText && format != FormatJSON {
		return 0, fmt.Errorf("output %q must be %s or %s", format, FormatText, FormatJSON)
	}
	report, err := Examine(ctx, o)
	if ctx.Err() != nil {
		return report.Events, err
	}
	write := writeText
	if format == FormatJSON {
		write = writeJSON
	}
	if werr := write(w, report); werr != nil {
		return report.Events, fmt.Errorf("write the report: %w", werr)
	}
	return report.Events, err
}

// Examine reads the events of o.Paths and returns what they show.
func Examine(ctx context.Context, o Options) (*Report, error) {
	r := newRunner(o)
	if len(o.Paths) == 0 {
		o.Paths = []string{filesource.Stdin}
	}
	src := filesource.New(filesource.Config{
		Paths: o.Paths, Stdin: o.Stdin, ByTime: true,
		NowMs: func() int64 { return r.nowMs },
	})
	sum, err := src.Run(ctx, r.step, r.reject)
	return r.report(sum), err
}

// runner takes the events of one replay. It belongs to one goroutine.
type runner struct {
	tracker *track.Tracker
	engine  *rules.Engine
	nowMs   int64 // newest time that any event told

	queries  map[event.QueryID]*facts
	order    []*facts // by first appearance
	alerts   map[string]*raised
	alertSeq []*raised
	kinds    [event.KindTick + 1]int
	rejected []Rejected
	hidden   int // rejects over the limit
	limit    int

	updates  []event.Update
	verdicts []rules.Verdict
}

func newRunner(o Options) *runner {
	c := track.DefaultConfig()
	c.TickGapMs = 0 // time passes in steps here
	limit := o.MaxRejected
	if limit <= 0 {
		limit = 1000
	}
	return &runner{
		tracker: track.New(c, nil), engine: rules.New(o.Rules, rules.Options{}),
		queries: map[event.QueryID]*facts{}, alerts: map[string]*raised{}, limit: limit,
	}
}

// step is the collector's handler.
func (r *runner) step(_ context.Context, step *collector.Step) error {
	for i := range step.Items {
		it := &step.Items[i]
		r.kinds[it.Event.Kind]++
		r.advance(it.Event)
		r.updates = r.tracker.Apply(it.Event, r.nowMs, r.updates[:0])
		for k := range r.updates {
			u := &r.updates[k]
			u.Origin = it.Origin
			if u.Event == it.Event {
				it.Outcome = u.Outcome
			}
			r.take(u)
		}
	}
	return nil
}

// advance moves the clock to the end of what the event reports.
func (r *runner) advance(e *event.Event) {
	at := e.AtMs
	if e.Batch != nil {
		at = max(at, e.Batch.EndMs())
	}
	r.nowMs = max(r.nowMs, at)
}

// take notes one update and lets the rules judge it.
func (r *runner) take(u *event.Update) {
	if u.Event.Query.ID == "" || u.Event.Kind == event.KindHeartbeat {
		return
	}
	f := r.queries[u.Event.Query.ID]
	if f == nil && (u.Outcome == event.OutcomeRefused || u.Outcome == event.OutcomeUnjudgeable) {
		return // the tracker does not keep it either
	}
	if f == nil {
		f = newFacts(u.Event.Query.ID)
		r.queries[u.Event.Query.ID] = f
		r.order = append(r.order, f)
	}
	f.add(u)
	r.verdicts = r.engine.Apply(u, r.verdicts[:0])
	for i := range r.verdicts {
		r.note(&r.verdicts[i])
	}
}

func (r *runner) reject(rej filesource.Rejected) {
	if len(r.rejected) >= r.limit {
		r.hidden++
		return
	}
	r.rejected = append(r.rejected, Rejected{
		File: rej.File, Line: rej.Index, Reason: fmt.Sprintf("%s: %v", rej.Reason, rej.Err),
	})
}

// report puts everything together.
func (r *runner) report(sum filesource.Summary) *Report {
	rep := &Report{
		Events: sum.Events, Progress: r.kinds[event.KindProgress], Started: r.kinds[event.KindStarted],
		Idle: r.kinds[event.KindIdle], Terminated: r.kinds[event.KindTerminated], Heartbeats: r.kinds[event.KindHeartbeat],
		Files: sum.Files, Skipped: sum.Skipped, Repaired: sum.Repaired,
		Rejected: r.rejected, RejectedHidden: r.hidden,
	}
	for _, st := range r.tracker.Queries(nil) {
		if f := r.queries[st.Query.ID]; f != nil {
			f.status = st
		}
	}
	for _, f := range r.order {
		rep.Queries = append(rep.Queries, f.query())
		rep.Findings = append(rep.Findings, f.findings()...)
	}
	rep.Findings = append(rep.Findings, r.raisedFindings()...)
	slices.SortStableFunc(rep.Findings, bySeverity)
	return rep
}
