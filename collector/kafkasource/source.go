package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
)

// SourceName is the source label of collector.Metrics and of event.Origin.
const SourceName = "kafka"

// How long a stop may take: handlers get drainTimeout to finish, or a third of the
// session timeout if that is less, the hook gets hookTimeout, and after cutTimeout every connection is closed, so that no broker
// can hold the stop up. All of it stays below 10 s.
const (
	drainTimeout = 3 * time.Second
	hookTimeout  = 2 * time.Second
	cutTimeout   = 5 * time.Second
)

// Options is what a Source is made of. Config, Handler, Pool, Intake and Metrics
// are required.
type Options struct {
	Config  Config
	Handler collector.Handler
	Hooks   collector.PartitionHooks // either may be nil
	Pool    *decode.Pool
	Intake  *collector.Metrics // rejects and stategauge_source_up; events are the handler's to count
	Metrics *Metrics
	Enrich  *collector.Enrich // nil adds no labels
	Logger  *slog.Logger      // nil logs nothing
	Now     func() time.Time  // nil is time.Now
}

// Source reads events from Kafka. It is made by New and does its work in Run.
type Source struct {
	cfg      Config
	opt      Options
	cluster  cluster
	metrics  *Metrics
	log      *slog.Logger
	warnings *limitedLog
	faults   *faults
	now      func() time.Time
	ran      atomic.Bool

	mu       sync.Mutex
	topology *topology
	changed  chan struct{} // closed when the topology changes
	workers  map[partition]*worker
	left     map[partition]leftover
	keyless  map[string]bool // topics whose messages without a key were told of
	reading  bool            // partitions are taken on
	began    bool            // they were before

	replays replays
}

// New checks the options and makes a Source. It talks to no broker yet.
func New(o Options) (*Source, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("kafka source: %w", err)
	}
	o.fill()
	s := newSource(o)
	s.cluster = newClient(&s.cfg, s.limited(clientLines))
	return s, nil
}

func (o *Options) check() error {
	faults := []error{o.Config.Validate()}
	for _, need := range []struct {
		name string
		gone bool
	}{
		{"handler", o.Handler == nil},
		{"decoder pool", o.Pool == nil},
		{"intake metrics", o.Intake == nil},
		{"metrics", o.Metrics == nil},
	} {
		if need.gone {
			faults = append(faults, errors.New(need.name+" must be given"))
		}
	}
	return errors.Join(faults...)
}

func (o *Options) fill() {
	if o.Logger == nil {
		o.Logger = discard
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func newSource(o Options) *Source {
	s := &Source{
		cfg: o.Config, opt: o, metrics: o.Metrics, now: o.Now,
		log:      o.Logger.With("source", SourceName, "group", o.Config.GroupID),
		topology: newTopology(o.Config.Topics),
		changed:  make(chan struct{}),
		workers:  map[partition]*worker{},
		left:     map[partition]leftover{},
		keyless:  map[string]bool{},
	}
	s.replays.source = s
	s.faults = newFaults(s.log, s.now)
	s.warnings = s.limited(warningLines)
	s.metrics.start(o.Config.Topics)
	s.faults.expect(faultMember, "the consumer group is not joined yet")
	return s
}

func (s *Source) limited(perMinute int) *limitedLog {
	return &limitedLog{log: s.log, now: s.now, suppressed: s.metrics.LogSuppressed, limit: limiter{perMinute: perMinute}}
}

// Run reads until ctx ends, whatever the brokers do, and returns within 10 s then.
// Brokers that cannot be reached, topics that do not exist and the like are no
// error: they are waited for, and Health tells. The error is for a second Run.
func (s *Source) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("kafka source: it ran before; make a new one")
	}
	s.setUp()
	stopped := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.cutAfter(ctx, stopped) })
	var work sync.WaitGroup
	work.Go(func() { s.watch(ctx) })
	work.Go(func() { s.belong(ctx) })
	work.Wait()
	close(stopped)
	wg.Wait()
	s.cluster.cut()
	s.faults.expect(faultMember, "the source is stopped")
	s.opt.Intake.SourceUp.WithLabelValues(SourceName).Set(0)
	return nil
}

// cutAfter cuts the connections if the stop takes too long.
func (s *Source) cutAfter(ctx context.Context, stopped <-chan struct{}) {
	select {
	case <-stopped:
		return
	case <-ctx.Done():
	}
	t := time.NewTimer(cutTimeout)
	defer t.Stop()
	select {
	case <-stopped:
	case <-t.C:
		s.cluster.cut()
	}
}

// Health returns nil while everything configured is being read, or an error that
// says what is wrong and since when. It does not depend on messages arriving: an
// empty topic is healthy.
func (s *Source) Health() error {
	_, err := s.faults.check()
	return err
}

// drain is the grace of handlers. It leaves time to join again before the group
// gives up on this member.
func (s *Source) drain() time.Duration { return min(drainTimeout, s.cfg.SessionTimeout/3) }

// setUp shows health as stategauge_source_up.
func (s *Source) setUp() {
	up := 0.0
	if readable, _ := s.faults.check(); readable {
		up = 1
	}
	s.opt.Intake.SourceUp.WithLabelValues(SourceName).Set(up)
}
