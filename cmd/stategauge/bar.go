package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// longRun is how long a simulation runs before its progress is worth a line.
const longRun = 2 * time.Second

// bar shows how far a long simulation is. A nil bar shows nothing.
type bar struct {
	w      io.Writer
	total  int64 // batches of all queries
	seen   int64
	began  time.Time
	drawn  *progressbar.ProgressBar // nil: nothing shown yet
	newest map[int]int64            // batch by query
}

// bar returns the bar of a run whose standard error is a terminal, nil where it
// is none or where events go to the same screen.
func (c *simulateCommand) bar(s streams, sc *scenario.Scenario) *bar {
	if !isTerminal(s.err) || c.target == "-" && isTerminal(s.out) {
		return nil
	}
	batches := c.batches
	if batches == 0 {
		batches = sc.Batches
	}
	return newBar(s.err, batches*int64(max(1, sc.Queries)))
}

func newBar(w io.Writer, total int64) *bar {
	return &bar{w: w, total: total, began: time.Now(), newest: map[int]int64{}}
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// see counts a batch, once however often it is tried.
func (b *bar) see(m *simulator.Message) {
	if b == nil || m.Batch < 0 { // no progress
		return
	}
	if last, known := b.newest[m.Query]; known && m.Batch <= last {
		return
	}
	b.newest[m.Query] = m.Batch
	b.seen++
	if b.drawn == nil && time.Since(b.began) >= longRun {
		b.drawn = progressbar.NewOptions64(b.total,
			progressbar.OptionSetWriter(b.w), progressbar.OptionSetDescription("batches"), progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	if b.drawn != nil {
		_ = b.drawn.Set64(min(b.seen, b.total)) // a screen that cannot be drawn on is no reason to stop
	}
}

// close takes the bar off the screen.
func (b *bar) close() {
	if b != nil && b.drawn != nil {
		_ = b.drawn.Clear()
	}
}
