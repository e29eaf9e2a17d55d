package output

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stategauge/stategauge/simulator"
)

// batch is events that are delivered together, each with a line end of its own.
type batch struct {
	data []byte
	ends []int    // in data, behind the line end
	keys []string // query ids
}

func (b *batch) add(m *simulator.Message) {
	b.data = append(append(b.data, m.Data...), '\n')
	b.ends = append(b.ends, len(b.data))
	b.keys = append(b.keys, m.QueryID)
}

func (b *batch) reset() { b.data, b.ends, b.keys = b.data[:0], b.ends[:0], b.keys[:0] }

// event returns the i-th event without its line end.
func (b *batch) event(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.data[start : b.ends[i]-1]
}

// courier delivers batches in order from a goroutine of its own, so that the
// simulation goes on meanwhile: at most one batch is on its way, one is full and
// one fills.
type courier struct {
	deliver func(ctx context.Context, b *batch) error
	options Options
	full    chan *batch
	closing chan struct{}
	done    chan struct{} // closed when the goroutine has ended
	stop    context.CancelFunc

	mu      sync.Mutex
	filling *batch
	err     error // of the delivery that ended the goroutine
	spare   []*batch
}

func startCourier(o Options, deliver func(ctx context.Context, b *batch) error) *courier {
	ctx, stop := context.WithCancel(context.Background())
	c := &courier{
		deliver: deliver, options: o, full: make(chan *batch), closing: make(chan struct{}),
		done: make(chan struct{}), stop: stop, filling: &batch{},
	}
	go c.run(ctx)
	return c
}

func (c *courier) Write(ctx context.Context, m *simulator.Message) error {
	b := c.put(m)
	if b == nil {
		return nil
	}
	select {
	case c.full <- b:
		return nil
	case <-c.done:
		return c.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put adds an event and returns the batch if that made it full.
func (c *courier) put(m *simulator.Message) *batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.filling.add(m)
	if len(c.filling.ends) < c.options.BatchEvents && len(c.filling.data) < c.options.BatchBytes {
		return nil
	}
	return c.take()
}

// take returns the batch that fills and begins the next; mu is held.
func (c *courier) take() *batch {
	b := c.filling
	if n := len(c.spare); n > 0 {
		c.filling, c.spare = c.spare[n-1], c.spare[:n-1]
		return b
	}
	c.filling = &batch{}
	return b
}

func (c *courier) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// run delivers until Close or a failure. What waits for long goes out though it
// fills no batch.
func (c *courier) run(ctx context.Context) {
	defer close(c.done)
	tick := time.NewTicker(linger)
	defer tick.Stop()
	for {
		select {
		case b := <-c.full:
			if !c.pass(ctx, b) {
				return
			}
		case <-tick.C:
			if !c.passRest(ctx) {
				return
			}
		case <-c.closing:
			c.passRest(ctx)
			return
		}
	}
}

func (c *courier) passRest(ctx context.Context) bool {
	c.mu.Lock()
	b := c.take()
	c.mu.Unlock()
	return c.pass(ctx, b)
}

// pass delivers one batch and reports whether that went well.
func (c *courier) pass(ctx context.Context, b *batch) bool {
	var err error
	if len(b.ends) > 0 {
		err = c.deliver(ctx, b)
	}
	b.reset()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare = append(c.spare, b)
	c.err = err
	return err == nil
}

// Close waits for what is on its way, at most for the patience of a delivery and
// once more for what was still waiting.
func (c *courier) Close() error {
	close(c.closing)
	limit := time.NewTimer(2 * c.options.Patience)
	defer limit.Stop()
	select {
	case <-c.done:
	case <-limit.C:
	}
	c.stop()
	<-c.done
	return c.failure()
}

// passing is a failure that may pass.
type passing struct {
	err   error
	after time.Duration // the other end asks to be left alone for so long; 0: it does not say
}

func (p *passing) Error() string { return p.err.Error() }

func (p *passing) Unwrap() error { return p.err }

// First and longest pause between two attempts, and the longest that the other
// end can ask for.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
	longestAsked = time.Minute
)

// persist repeats an attempt while its failures may pass, for no longer than
// patience in all.
func persist(ctx context.Context, patience time.Duration, attempt func(ctx context.Context) error) error {
	began, pause := time.Now(), firstPause
	for {
		err := attempt(ctx)
		var p *passing
		if err == nil || !errors.As(err, &p) {
			return err
		}
		wait := max(pause, min(p.after, longestAsked))
		if time.Since(began)+wait > patience {
			return fmt.Errorf("gave up after %s: %w", patience, err)
		}
		if sleep(ctx, wait) != nil {
			return fmt.Errorf("interrupted: %w", err)
		}
		pause = min(2*pause, longestPause)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
