// Package httpsource takes events over HTTP: a handler for POST of one JSON
// event, an array of them, or one per line, plain or compressed with gzip or
// zstd.
//
// A request is answered 200 once its events are durable, with
// {"accepted","duplicates","rejected":[{"index","error"}]}. A broken element is
// named there and costs nothing else. 400 has the same body and says that nothing
// was usable; repeats are usable. 413 is over a limit, 415 an unknown encoding,
// 405 another method, 408 a body that came too slowly. 429 and 503 with
// Retry-After ask for the same body again: part of it may have been taken, which
// is harmless because repeats are recognised.
//
// Nothing that arrives makes a Source panic, block or grow without bound: bodies
// are read into buffers that count against one budget, decompression stops at its
// limit, and events are handed on in steps.
package httpsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
)

// Source is the http.Handler of the intake. It is safe for concurrent use.
type Source struct {
	o       Options
	pool    *decode.Pool
	next    collector.Handler
	enrich  *collector.Enrich
	metrics *Metrics
	log     *slog.Logger
	rejects map[collector.Reason]prometheus.Counter
	codes   map[int]prometheus.Counter
	up      prometheus.Gauge

	stopping atomic.Bool
	requests atomic.Int64 // under way
	bytes    atomic.Int64 // taken by their bodies
	stalled  atomic.Bool  // a step took too long, and none has come through since
	loggedMs atomic.Int64 // Unix milliseconds of the newest complaint in the log
	buffers  sync.Pool    // *[]byte
	steps    sync.Pool    // *batch
	unzip    unpackers
	now      func() time.Time
}

// Parts is what a Source works with. Enrich and Log may be nil. Counting what
// became of the events is Handler's business; Intake counts the rejects only, and
// says whether the source is up.
type Parts struct {
	Pool    *decode.Pool
	Handler collector.Handler
	Intake  *collector.Metrics
	Metrics *Metrics
	Enrich  *collector.Enrich
	Log     *slog.Logger
	Now     func() time.Time // when a body is received; nil is time.Now
}

// New returns a Source that is ready to serve. The error names every fault of o.
func New(o Options, p Parts) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("http intake: %w", err)
	}
	s := &Source{
		o: o, pool: p.Pool, next: p.Handler, enrich: p.Enrich, metrics: p.Metrics, log: p.Log,
		rejects: map[collector.Reason]prometheus.Counter{}, codes: map[int]prometheus.Counter{},
		up: p.Intake.SourceUp.WithLabelValues(SourceName),
	}
	if s.now = p.Now; s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, r := range collector.Reasons() {
		s.rejects[r] = p.Intake.Rejected.WithLabelValues(SourceName, string(r))
	}
	for _, code := range answers {
		s.codes[code] = p.Metrics.Requests.WithLabelValues(strconv.Itoa(code))
	}
	s.buffers.New = func() any { return new([]byte) }
	s.steps.New = func() any { return &batch{broken: map[collector.Reason]int{}} }
	s.up.Set(1)
	return s, nil
}

// Stop makes the Source answer 503 from now on. Requests under way go on; the
// server that owns their connections waits for them.
func (s *Source) Stop() {
	s.stopping.Store(true)
	s.up.Set(0)
}

// ServeHTTP answers one request.
func (s *Source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from := time.Now()
	a := s.serve(w, r)
	a.write(w, &s.o)
	s.codes[a.code].Inc()
	s.metrics.Duration.Observe(time.Since(from).Seconds())
}

func (s *Source) serve(w http.ResponseWriter, r *http.Request) *answer {
	if a := s.refuse(r); a != nil {
		return a
	}
	if !s.admit() {
		return fault(http.StatusTooManyRequests, "the intake is full")
	}
	defer s.requests.Add(-1)
	var l lease
	defer s.giveBack(&l)
	if err := s.read(w, r, &l); err != nil {
		return s.unreadable(err)
	}
	s.metrics.Size.Add(float64(len(l.buf)))
	return s.take(r, l.buf)
}

// refuse answers what need not be read.
func (s *Source) refuse(r *http.Request) *answer {
	switch {
	case r.Method != http.MethodPost:
		return fault(http.StatusMethodNotAllowed, "events are posted")
	case s.stopping.Load():
		return fault(http.StatusServiceUnavailable, "the daemon is stopping")
	case encodingOf(r) == unknown:
		return fault(http.StatusUnsupportedMediaType, "content encoding must be gzip, zstd or identity")
	case r.ContentLength > s.o.BodyBytes:
		return fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("body of %d bytes exceeds the limit of %d", r.ContentLength, s.o.BodyBytes))
	}
	return nil
}

// admit lets a request in. While the intake is stuck only one request at a time
// may wait for it, so that the others are told at once.
func (s *Source) admit() bool {
	limit := int64(s.o.Requests)
	if s.stalled.Load() {
		limit = 1
	}
	if s.requests.Add(1) > limit {
		s.requests.Add(-1)
		return false
	}
	return true
}

// hand gives a step to the handler and waits until it is durable.
func (s *Source) hand(ctx context.Context, step *collector.Step) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Wait)
	defer cancel()
	err := s.next(ctx, step)
	switch {
	case err == nil:
		s.stalled.Store(false)
	case ctx.Err() == context.DeadlineExceeded:
		s.stalled.Store(true)
		return errors.Join(collector.ErrFull, err)
	}
	return err
}

// complain logs what went wrong on our side, at most every few seconds.
func (s *Source) complain(err error) {
	now := time.Now().UnixMilli()
	last := s.loggedMs.Load()
	if now-last < 10_000 || !s.loggedMs.CompareAndSwap(last, now) {
		return
	}
	s.log.Error("cannot take events over HTTP", "err", err)
}
