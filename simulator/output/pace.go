package output

import (
	"context"
	"time"
)

// Pacer holds events back: to real time, to a rate, or not at all.
type Pacer struct {
	rate float64 // events per second; 0: no limit
	live bool

	began time.Time // zero: nothing sent yet
	first int64     // virtual time of the first event, Unix milliseconds
	sent  float64
}

// NewPacer makes a pacer for at most rate events per second, 0 for no limit.
// live also keeps the distances between the events' own times.
func NewPacer(rate float64, live bool) *Pacer { return &Pacer{rate: rate, live: live} }

// shortest is a pause that is worth it: below it events go out in bunches.
const shortest = time.Millisecond

// Wait returns when an event of the virtual time atMs, Unix milliseconds, may go
// out, or when ctx ends.
func (p *Pacer) Wait(ctx context.Context, atMs int64) error {
	if p.rate <= 0 && !p.live {
		return ctx.Err()
	}
	if p.began.IsZero() {
		p.began, p.first = time.Now(), atMs
	}
	var due time.Duration
	if p.live {
		due = time.Duration(atMs-p.first) * time.Millisecond
	}
	if p.rate > 0 {
		due = max(due, time.Duration(p.sent/p.rate*float64(time.Second)))
		p.sent++
	}
	if ahead := due - time.Since(p.began); ahead >= shortest {
		return sleep(ctx, ahead)
	}
	return ctx.Err()
}
