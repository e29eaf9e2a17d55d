package notify

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// sender is the loop of one Alertmanager.
type sender struct {
	n       *Notifier
	o       *Options
	name    string // URL without password, as metrics and log show it
	url     string
	client  *http.Client
	metrics *metrics
	log     *slog.Logger

	mu    sync.Mutex
	queue *queue
	work  chan struct{} // of size 1: something may be due
	gone  chan struct{} // closed when it is dismissed

	// The rest belongs to the loop alone.
	failures  int
	notBefore time.Time
	lastError string
	skew      time.Duration // how far the Alertmanager's clock is ahead
	skewed    bool
}

// put files states, all or none of which a request can see. It never waits.
func (s *sender) put(records []*record, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dropped := 0
	for _, r := range records {
		dropped += s.queue.put(r, now)
	}
	s.metrics.dropped.WithLabelValues(s.name, reasonQueueFull).Add(float64(dropped))
	s.showQueue()
}

// letGo forgets the alerts that are picked.
func (s *sender) letGo(picked func(*record) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.dropWhere(picked)
	s.showQueue()
}

// nudge wakes the loop.
func (s *sender) nudge() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// run sends what is due until ctx ends, and then once more; or until it is
// dismissed. hard ends requests.
func (s *sender) run(ctx, hard context.Context) {
	timer := time.NewTimer(s.untilNext())
	defer timer.Stop()
	for {
		select {
		case <-s.gone:
			s.n.retire(s)
			return
		case <-ctx.Done():
			s.drain(hard)
			return
		case <-s.work:
		case <-timer.C:
		}
		// A nudge during a back-off changes nothing: the wait protects a sick
		// Alertmanager, and the newest states are in the queue anyway.
		if !s.o.Now().Before(s.notBefore) {
			s.flush(ctx, hard)
		}
		timer.Reset(s.untilNext())
	}
}

// untilNext returns how long the loop may sleep unless it is nudged.
func (s *sender) untilNext() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	due, ok := s.queue.nextDue()
	if !ok {
		return s.o.ResendDelay
	}
	if due.Before(s.notBefore) {
		due = s.notBefore
	}
	return max(due.Sub(now), 0)
}

// flush sends all that is due, batch by batch, until one fails or ctx ends.
func (s *sender) flush(ctx, hard context.Context) {
	for ctx.Err() == nil && !s.dismissed() {
		batch := s.take()
		if len(batch) == 0 {
			return
		}
		if err := s.deliver(hard, batch); err != nil {
			s.backOff(err)
			return
		}
		s.recovered()
	}
}

// dismissed reports whether the sender was replaced or its address is gone.
func (s *sender) dismissed() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// drain gives what is due a last chance and counts what is left.
func (s *sender) drain(hard context.Context) {
	for hard.Err() == nil {
		batch := s.take()
		if len(batch) == 0 || s.deliver(hard, batch) != nil {
			break
		}
	}
	// What was delivered before and is only due for a resend is not lost.
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := s.queue.waiting; left > 0 {
		s.metrics.dropped.WithLabelValues(s.name, reasonShutdown).Add(float64(left))
		s.log.Warn("alerts left undelivered at stop", "alerts", left)
	}
}

// take returns the next batch, after forgetting what is too old to matter: an alert
// that resolved a retention ago has long ended in the Alertmanager by its lease.
func (s *sender) take() []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.o.Now()
	s.queue.expire(now.Add(-s.o.ResolvedRetention))
	s.queue.lapse(now)
	s.showQueue()
	return s.queue.take(now, s.o.BatchAlerts)
}

// settle marks states as dealt with until so much later.
func (s *sender) settle(batch []*record, again time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.settle(batch, s.o.Now().Add(again))
	s.showQueue()
}

// showQueue brings the gauge up to date; the caller holds mu.
func (s *sender) showQueue() {
	s.metrics.queued.WithLabelValues(s.name).Set(float64(s.queue.waiting))
}

// deliver sends the batch. Where the Alertmanager finds fault with the content, it
// halves the batch until the bad alert stands alone, which is then given up until it
// changes or a retention has passed. An error means that all is to be tried again.
func (s *sender) deliver(ctx context.Context, batch []*record) error {
	err := s.post(ctx, batch)
	if err == nil {
		s.metrics.sent.WithLabelValues(s.name).Add(float64(len(batch)))
		s.settle(batch, s.o.ResendDelay)
		return nil
	}
	var fault *postError
	if !errors.As(err, &fault) || fault.reason != reasonBadAlert {
		return err
	}
	if len(batch) == 1 {
		s.metrics.dropped.WithLabelValues(s.name, reasonBadAlert).Inc()
		s.log.Error("alertmanager refuses an alert", "alertname", batch[0].labels["alertname"], "err", err)
		s.settle(batch, s.o.ResolvedRetention)
		return nil
	}
	half := len(batch) / 2
	if err := s.deliver(ctx, batch[:half]); err != nil {
		return err
	}
	return s.deliver(ctx, batch[half:])
}

// backOff plans the next attempt and says why, if that is news.
func (s *sender) backOff(err error) {
	// Doubling by shift, bounded so that the shift cannot overflow.
	wait := s.o.RetryMax
	if s.failures < 20 {
		wait = min(wait, s.o.RetryMin<<s.failures)
	}
	wait = wait/2 + time.Duration(s.o.Jitter()*float64(wait/2))
	s.failures++
	s.notBefore = s.o.Now().Add(wait)
	if text := err.Error(); text != s.lastError {
		s.lastError = text
		s.log.Warn("sending alerts failed, trying again", "err", err)
	}
}

// recovered ends a run of failures, and says so if there was one.
func (s *sender) recovered() {
	if s.failures > 0 {
		s.log.Info("sending alerts works again", "failures", s.failures)
	}
	s.failures, s.lastError, s.notBefore = 0, "", time.Time{}
}
