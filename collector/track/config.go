package track

import (
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
)

// Time spans of the defaults, in milliseconds.
const (
	second = int64(1000)
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Config says how a Tracker judges. Times are milliseconds. The zero Config is
// not usable; begin with DefaultConfig.
type Config struct {
	// Queries is how many queries one Tracker keeps; events of further ones are refused.
	Queries int
	// WindowBatches is how many of a run's newest batch ids are remembered exactly;
	// a multiple of 64.
	WindowBatches int
	// RunsKept is how many earlier runs of a query keep their window, so that what
	// comes late from them is told from a repeat.
	RunsKept int
	// MaxJump is the largest step of the batch id within a run that is believed.
	// One absurd id must not make all later batches look old.
	MaxJump int64

	// A hole in the batch ids becomes missed batches once the run is more than
	// ReorderBatches ids further or ReorderMs (at most twice that) have passed. What
	// arrives later still is counted, and set off against the next hole, because a
	// count of missed batches cannot be taken back.
	ReorderBatches int
	ReorderMs      int64

	// A query is overdue after OverdueFactor times its usual distance between
	// events, but not before OverdueFloorMs, and FirstBatchMs while its run has no
	// batch yet. A query made of short runs is overdue after RunFactor times the
	// usual distance between runs.
	OverdueFactor  float64
	OverdueFloorMs int64
	FirstBatchMs   int64
	RunFactor      float64

	// A query is retired this long after its last sign of life: RetireEndedMs where
	// it ended cleanly and was no job of short runs, RetireTroubledMs where it
	// failed or is overdue, RetireSilentMs otherwise.
	RetireEndedMs, RetireSilentMs, RetireTroubledMs int64

	// TickGapMs is the distance between two ticks from which on the process itself
	// is taken to have stood still, so that nobody's silence counts. 0 turns it off,
	// as a replay needs that ticks in large steps.
	TickGapMs int64

	// TriggerFor returns the trigger that the configuration sets for a query, and
	// its interval in milliseconds (NaN or 0: none). TriggerUnknown or a nil func: not set.
	TriggerFor func(q event.QueryRef) (event.TriggerKind, float64)

	// Senders counts what senders lost, Names who goes by which name. Shards share one of
	// each; nil means one of its own.
	Senders *Senders
	Names   *Names
}

// DefaultConfig returns the limits that suit a daemon without configuration.
func DefaultConfig() Config {
	return Config{
		Queries: 20000, WindowBatches: 1024, RunsKept: 3, MaxJump: 1 << 20,
		ReorderBatches: 8, ReorderMs: 5 * second,
		OverdueFactor: 5, OverdueFloorMs: minute, FirstBatchMs: 30 * minute, RunFactor: 2,
		// Just over a day keeps a job that runs once a day.
		RetireEndedMs: hour, RetireSilentMs: 25 * hour, RetireTroubledMs: 7 * day,
		TickGapMs: 2 * minute,
	}
}

// maxWindow is the largest window of batch ids.
const maxWindow = 1 << 16

// Validate returns every fault of c, joined.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.Queries > 0, "queries (%d) must be positive", c.Queries)
	need(c.WindowBatches >= 64 && c.WindowBatches <= maxWindow && c.WindowBatches%64 == 0,
		"window batches (%d) must be a multiple of 64 between 64 and 65536", c.WindowBatches)
	need(c.RunsKept >= 1 && c.RunsKept <= 16, "runs kept (%d) must be between 1 and 16", c.RunsKept)
	need(c.MaxJump > 0, "max jump (%d) must be positive", c.MaxJump)
	need(c.ReorderBatches >= 0 && c.ReorderBatches < c.WindowBatches,
		"reorder batches (%d) must be at least 0 and less than window batches (%d)", c.ReorderBatches, c.WindowBatches)
	need(c.ReorderMs >= 0, "reorder time (%d ms) must not be negative", c.ReorderMs)
	need(c.OverdueFactor > 1, "overdue factor (%g) must be more than 1", c.OverdueFactor)
	need(c.RunFactor > 1, "run factor (%g) must be more than 1", c.RunFactor)
	need(c.OverdueFloorMs > 0, "overdue floor (%d ms) must be positive", c.OverdueFloorMs)
	need(c.FirstBatchMs > 0, "first batch time (%d ms) must be positive", c.FirstBatchMs)
	need(c.RetireEndedMs > 0, "retirement after a clean end (%d ms) must be positive", c.RetireEndedMs)
	need(c.RetireSilentMs > 0, "retirement after silence (%d ms) must be positive", c.RetireSilentMs)
	need(c.RetireTroubledMs > 0, "retirement after failure (%d ms) must be positive", c.RetireTroubledMs)
	need(c.TickGapMs >= 0, "tick gap (%d ms) must not be negative", c.TickGapMs)
	return errors.Join(errs...)
}
