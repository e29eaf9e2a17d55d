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
	in, err := Merge(ctx, Inputs{Paths: o.Paths, Stdin: o.Stdin, MaxRejected: o.MaxRejected}, r.play)
	return r.report(&in), err
}

// runner takes the events of one replay. It belongs to one goroutine.
type runner struct {
	player   *Player
	queries  map[event.QueryID]*facts
	order    []*facts // by first appearance
	alerts   map[string]*raised
	alertSeq []*raised
	kinds    [event.KindTick + 1]int
}

func newRunner(o Options) *runner {
	r := &runner{queries: map[event.QueryID]*facts{}, alerts: map[string]*raised{}}
	// The tracker has no ticks: a query that was retired would be gone from the report.
	r.player = NewPlayer(PlayerOptions{Rules: o.Rules, TrackEveryMs: -1, Update: r.take, Verdict: r.note})
	return r
}

// play takes one event.
func (r *runner) play(it *collector.Item) {
	r.kinds[it.Event.Kind]++
	r.player.Play(it.Event, it.Origin)
}

// take notes one update.
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
}

// report puts everything together.
func (r *runner) report(in *Intake) *Report {
	rep := &Report{
		Events: in.Events, Progress: r.kinds[event.KindProgress], Started: r.kinds[event.KindStarted],
		Idle: r.kinds[event.KindIdle], Terminated: r.kinds[event.KindTerminated], Heartbeats: r.kinds[event.KindHeartbeat],
		Files: in.Files, Skipped: in.Skipped, Repaired: in.Repaired,
		Rejected: in.Rejects, RejectedHidden: in.Hidden,
	}
	for _, st := range r.player.Queries() {
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
