package score

import (
	"fmt"
	"sync"
	"time"
)

// What parts of a score cost, in seconds of one processor, roughly: for telling how far
// it is, and nothing else.
const (
	playCost  = 2.0
	judgeCost = 0.2 // of a stream that is there
	batchCost = 25e-6
)

// progress tells how far a score is and how long the rest will take.
type progress struct {
	say func(format string, args ...any)
	now func() time.Time

	mu                 sync.Mutex
	began              time.Time
	total, done, fresh float64 // costs; fresh is what was measured and not found
}

func newProgress(say func(format string, args ...any), total float64) *progress {
	p := &progress{say: say, now: time.Now, total: total}
	p.began = p.now()
	return p
}

// step says that something is done which costs so much, unless it was there already.
func (p *progress) step(cost float64, was bool, format string, args ...any) {
	p.mu.Lock()
	p.done += cost
	if !was {
		p.fresh += cost
	}
	how := fmt.Sprintf("%.0f %%", 100*min(1, p.done/p.total))
	if left, ok := p.left(); ok {
		how += ", about " + left.String() + " left"
	}
	p.mu.Unlock()
	if was {
		how += ", was there"
	}
	p.say("%s (%s)", fmt.Sprintf(format, args...), how)
}

// left is how long the rest will take if it goes on as it went; not known before
// something was measured.
func (p *progress) left() (time.Duration, bool) {
	if p.fresh <= 0 {
		return 0, false
	}
	left := time.Duration(float64(p.now().Sub(p.began)) * max(0, p.total-p.done) / p.fresh)
	if left > time.Minute {
		return left.Round(time.Minute), true
	}
	return left.Round(time.Second), true
}
