package kafkasource

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/stategauge/stategauge/event"
)

// committer commits the offsets that workers reach, all partitions in one request,
// and at most one request at a time: what is reached meanwhile goes with the next.
type committer struct {
	gen      generation
	metrics  *Metrics
	interval time.Duration
	failed   func(error)               // told of every commit that failed
	done     func(map[partition]int64) // told of every commit that succeeded
	wake     chan struct{}

	mu      sync.Mutex
	pending map[partition]int64
}

func newCommitter(gen generation, m *Metrics, interval time.Duration) *committer {
	return &committer{
		gen: gen, metrics: m, interval: interval,
		wake: make(chan struct{}, 1), pending: map[partition]int64{},
	}
}

// mark notes that everything of p before offset is handled.
func (c *committer) mark(p partition, offset int64) {
	c.mu.Lock()
	c.pending[p] = offset
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run commits until ctx ends. The owner calls flush after the last mark.
func (c *committer) run(ctx context.Context) {
	wait := backoff{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		rest := c.interval
		if c.flush() {
			wait.reset()
		} else {
			rest = max(rest, wait.next())
		}
		if !pause(ctx, rest) {
			return
		}
	}
}

// flush commits what is pending; what fails stays pending, unless something newer
// was marked meanwhile. It reports whether nothing failed.
func (c *committer) flush() bool {
	c.mu.Lock()
	offsets := c.pending
	c.pending = map[partition]int64{}
	c.mu.Unlock()
	if len(offsets) == 0 {
		return true
	}
	if err := c.gen.commit(offsets); err != nil {
		c.metrics.CommitErrors.Inc()
		c.putBack(offsets)
		c.failed(err)
		return false
	}
	c.metrics.Commits.Inc()
	c.done(offsets)
	return true
}

func (c *committer) putBack(offsets map[partition]int64) {
	c.mu.Lock()
	maps.Copy(offsets, c.pending)
	c.pending = offsets
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// backoff grows from 100 ms to 5 s.
type backoff struct{ last time.Duration }

const backoffFirst, backoffMost = 100 * time.Millisecond, 5 * time.Second

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, backoffFirst), backoffMost)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }

// pause waits and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// known reports whether an offset is one, rather than event.Absent.
func known(offset int64) bool { return offset != event.Absent }
