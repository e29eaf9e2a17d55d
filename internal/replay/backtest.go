package replay

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// BacktestOptions say what to judge and by what.
type BacktestOptions struct {
	Inputs
	Rules *rules.Pack
	// All asks for episodes too that were inhibited when they began to fire.
	All bool
}

// Backtested is what a backtest found.
type Backtested struct {
	Intake
	Episodes  []*Episode // without those that were inhibited, unless asked for
	Inhibited int        // how many of all were
	Queries   int
	FromMs    int64 // first and newest time that any event told, Unix milliseconds; 0 without events
	ToMs      int64
}

// Backtest plays the inputs as the daemon would have heard them and returns what
// it would have fired, up to the newest event: silence after it is no finding.
// Events that could be read are judged even if some path could not; err then says
// which.
func Backtest(ctx context.Context, o BacktestOptions) (*Backtested, error) {
	out := &Backtested{}
	rec := NewRecorder()
	p := NewPlayer(PlayerOptions{Rules: o.Rules, Update: rec.Update, Verdict: rec.Verdict})
	in, err := Merge(ctx, o.Inputs, func(it *collector.Item) {
		p.Play(it.Event, it.Origin)
		if out.FromMs == 0 {
			out.FromMs = p.NowMs()
		}
	})
	out.Intake, out.ToMs, out.Queries = in, p.NowMs(), len(rec.newest)
	for _, e := range rec.Episodes(p.Engine()) {
		if e.InhibitedBy != nil {
			out.Inhibited++
			if !o.All {
				continue
			}
		}
		out.Episodes = append(out.Episodes, e)
	}
	return out, err
}

// Write writes the backtest in the given format: one JSON object per episode and
// line, or a timeline for people.
func (b *Backtested) Write(w io.Writer, format string) error {
	switch format {
	case FormatJSON:
		return b.writeLines(w)
	case FormatText:
		return b.writeTimeline(w)
	}
	return fmt.Errorf("output %q must be %s or %s", format, FormatText, FormatJSON)
}

func (b *Backtested) writeLines(w io.Writer) error {
	for _, e := range b.Episodes {
		line, err := e.line()
		if err != nil {
			return fmt.Errorf("alert %s: %w", e.Alert, err)
		}
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("write alerts: %w", err)
		}
	}
	return nil
}

// lasted is how long the episode fired, or has been firing at nowMs.
func (e *Episode) lasted(nowMs int64) time.Duration {
	if e.ResolvedMs != event.Absent {
		nowMs = e.ResolvedMs
	}
	return time.Duration(nowMs-e.FiringMs) * time.Millisecond
}
