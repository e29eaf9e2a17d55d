package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// rejoinPause keeps a group that refuses at once from being asked in a tight loop;
// hookPause does so for a hook that fails.
const (
	rejoinPause = 100 * time.Millisecond
	hookPause   = time.Second
)

// belong is a member of the group until ctx ends, anew whenever the topics change.
func (s *Source) belong(ctx context.Context) {
	for ctx.Err() == nil {
		s.mu.Lock()
		topics, changed := s.topology.existing(), s.changed
		s.mu.Unlock()
		epoch, end := context.WithCancel(ctx)
		stop := make(chan struct{})
		go func() { // ends the epoch when the topology changes
			select {
			case <-changed:
			case <-stop:
			}
			end()
		}()
		if len(topics) > 0 {
			s.member(epoch, topics)
		} else {
			<-epoch.Done()
		}
		close(stop)
		end()
	}
}

// member joins the group and lives through its generations until ctx ends.
func (s *Source) member(ctx context.Context, topics []string) {
	g, err := s.cluster.join(topics, s.claimed)
	if err != nil {
		s.faults.raise(faultMember, 0, err.Error())
		pause(ctx, hookPause)
		return
	}
	closed := make(chan error, 1)
	context.AfterFunc(ctx, func() { closed <- g.close() })
	for ctx.Err() == nil {
		gen, err := g.next(ctx)
		if err != nil {
			s.notJoined(ctx, err)
			continue
		}
		s.live(ctx, gen)
		s.faults.raise(faultMember, s.cfg.SessionTimeout, "the consumer group is not joined again")
	}
	if err := <-closed; err != nil {
		s.log.Warn("leaving the consumer group failed", "err", err)
	}
}

func (s *Source) notJoined(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if !errors.Is(err, errRebalancing) {
		s.faults.raise(faultMember, 0, fmt.Sprintf("the consumer group cannot be joined: %v", err))
		s.setUp()
	}
	pause(ctx, rejoinPause)
}

// live serves one generation and returns when it is over.
func (s *Source) live(ctx context.Context, gen generation) {
	over := make(chan struct{})
	gen.start(func(genCtx context.Context) {
		defer close(over)
		both, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(genCtx, cancel)()
		s.serve(both, gen)
		if ctx.Err() != nil {
			<-genCtx.Done() // a generation that ends before its group is closed is joined anew
		}
	})
	<-over
}

// serve takes the partitions of a generation on, reads them until ctx ends, and
// lets them go.
func (s *Source) serve(ctx context.Context, gen generation) {
	got := gen.assigned()
	slices.SortFunc(got, func(a, b collector.Assignment) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	s.metrics.Rebalances.Inc()
	s.log.Info("kafka partitions assigned", "partitions", len(got), "generation", gen.number())
	s.preparing()
	s.recall(gen.number(), got)
	looks := s.survey(ctx, got)
	starts, ok := s.prepare(ctx, got)
	if !ok {
		return
	}
	s.read(ctx, gen, s.takeOn(got, starts, looks), got)
}

// preparing makes health tell of a hook that takes too long.
func (s *Source) preparing() {
	const text = "the assigned partitions are being prepared"
	s.mu.Lock()
	first := !s.began
	s.mu.Unlock()
	if first {
		s.faults.expect(faultMember, text)
		return
	}
	s.faults.raise(faultMember, s.cfg.SessionTimeout, text)
}

// survey looks once for all partitions, so that the hook knows how long their logs
// are and many partitions do not make many connections at every rebalance. Where it
// fails, workers look for themselves.
func (s *Source) survey(ctx context.Context, got []collector.Assignment) map[string]topicLook {
	for i := range got {
		got[i].First, got[i].End = event.Absent, event.Absent
	}
	if len(got) == 0 {
		return nil
	}
	looks, err := s.cluster.look(ctx, s.cfg.Topics)
	if err != nil {
		return nil
	}
	for i := range got {
		if at, err := placeOf(looks, partitionOf(got[i])); err == nil {
			got[i].First, got[i].End = at.first, at.last
		}
	}
	return looks
}

// prepare asks the hook where to start, again and again while it fails: giving the
// generation up instead would interrupt every other member. It reports false if ctx
// ended first. An answer that comes late counts all the same: the hook believes to
// have the partitions, and has to be told that they are gone.
func (s *Source) prepare(ctx context.Context, got []collector.Assignment) ([]collector.Start, bool) {
	wait := backoff{}
	for {
		starts, err := s.hookAssigned(ctx, got)
		if err == nil {
			s.faults.clear(faultHooks)
			return starts, true
		}
		if ctx.Err() != nil {
			return nil, false
		}
		s.faults.raise(faultHooks, 0, fmt.Sprintf("assigned partitions cannot be prepared: %v", err))
		s.setUp()
		if !pause(ctx, wait.next()) {
			return nil, false
		}
	}
}

// hookAssigned asks where to start. Committed offsets of a topic that is a new one
// are not shown to the hook, and what it answers for it is not used.
func (s *Source) hookAssigned(ctx context.Context, got []collector.Assignment) ([]collector.Start, error) {
	fresh := s.freshOf(got)
	starts := make([]collector.Start, len(got))
	for i := range starts {
		starts[i] = anywhere
		if fresh[i] == reborn {
			got[i].Committed = event.Absent
		}
	}
	if s.opt.Hooks.Assigned != nil {
		answer, err := s.opt.Hooks.Assigned(ctx, slices.Clone(got))
		if err != nil {
			return nil, err
		}
		if len(answer) != len(got) {
			return nil, fmt.Errorf("hook gave %d starts for %d partitions", len(answer), len(got))
		}
		copy(starts, answer)
	}
	for i := range starts {
		if fresh[i] == reborn {
			starts[i] = anywhere
		}
	}
	return starts, nil
}

// anywhere is the start of those who have no wish.
var anywhere = collector.Start{Offset: event.Absent, Live: event.Absent}

func (s *Source) freshOf(got []collector.Assignment) []freshness {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := make([]freshness, len(got))
	for i := range got {
		fresh[i] = s.topology.fresh[partitionOf(got[i])]
	}
	return fresh
}

func (s *Source) hookRevoked(ctx context.Context, lost []collector.Assignment) {
	if s.opt.Hooks.Revoked == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTimeout)
	defer cancel()
	if err := s.opt.Hooks.Revoked(ctx, lost); err != nil {
		s.log.Error("giving up revoked partitions failed", "err", err)
	}
}

// read runs the workers until ctx ends and commits what they reach. The last commit
// and the hook follow the last worker, side by side: a broker that hangs must not
// keep the daemon from letting go.
func (s *Source) read(ctx context.Context, gen generation, workers []*worker, got []collector.Assignment) {
	handling, stopHandling := afterGrace(ctx, s.drain())
	defer stopHandling()
	c := s.committer(gen)
	var reading, committing sync.WaitGroup
	for _, w := range workers {
		w.commits = c
		reading.Go(func() { w.run(ctx, handling) })
	}
	committing.Go(func() { c.run(ctx) })
	<-ctx.Done()
	reading.Wait()
	var last sync.WaitGroup
	last.Go(func() {
		committing.Wait()
		c.flush()
	})
	s.letGo(gen.number())
	s.hookRevoked(ctx, got)
	last.Wait()
}

func (s *Source) committer(gen generation) *committer {
	c := newCommitter(gen, s.metrics, s.cfg.CommitInterval)
	c.failed = func(err error) {
		s.warnings.line().Warn("committing offsets failed", "err", err)
	}
	c.done = s.committed
	return c
}

// takeOn makes the workers and shows them to the watchdog. From here on it is the
// partitions that have faults, no longer the membership: at the start of the
// process until each is read, later only if that takes long.
func (s *Source) takeOn(got []collector.Assignment, starts []collector.Start, looks map[string]topicLook) []*worker {
	var out []*worker
	s.mu.Lock()
	for i := range got {
		w := newWorker(s, got[i], s.resumed(partitionOf(got[i]), starts[i]))
		w.fresh = s.topology.fresh[w.partition]
		if at, err := placeOf(looks, w.partition); err == nil {
			w.hint = &at
		}
		s.workers[w.partition] = w
		out = append(out, w)
	}
	first := !s.began
	s.began, s.reading = true, true
	s.mu.Unlock()
	for _, w := range out {
		key, text := faultPartition+w.partition.String(), fmt.Sprintf("partition %s is not read yet", w.partition)
		if first {
			s.faults.expect(key, text)
		} else {
			s.faults.raise(key, settling, text)
		}
	}
	s.faults.clear(faultMember)
	s.metrics.Assigned.Set(float64(len(got)))
	s.setUp()
	return out
}

// letGo forgets the partitions and everything that was shown of them, but for where
// they were: the next generation may bring them again.
func (s *Source) letGo(generation int32) {
	s.keep(generation)
	s.mu.Lock()
	for p, w := range s.workers {
		s.metrics.dropLag(p)
		w.leaveReplay(false)
	}
	clear(s.workers)
	s.reading = false
	s.mu.Unlock()
	s.metrics.Assigned.Set(0)
	s.faults.clearAll(faultPartition)
	s.faults.clearAll(faultIntake)
}

// committed ends the special treatment of partitions that turned up while we ran.
func (s *Source) committed(offsets map[partition]int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range offsets {
		delete(s.topology.fresh, p)
	}
}

func partitionOf(a collector.Assignment) partition { return partition{a.Topic, a.Partition} }

// afterGrace returns a context that ends the given time after ctx does.
func afterGrace(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(later, func() { t.Stop() })
	})
	return later, func() { stop(); cancel() }
}
