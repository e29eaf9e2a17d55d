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
	g, err := s.cluster.join(topics)
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

func (s *Source) serve(ctx context.Context, gen generation) {
	got := gen.assigned()
	slices.SortFunc(got, func(a, b collector.Assignment) int {
		if c := strings.Compare(a.Topic, b.Topic); c != 0 {
			return c
		}
		return int(a.Partition - b.Partition)
	})
	s.metrics.Rebalances.Inc()
	s.log.Info("kafka partitions assigned", "partitions", len(got))
	starts, err := s.hookAssigned(ctx, got)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.faults.raise(faultHooks, 0, fmt.Sprintf("assigned partitions cannot be prepared: %v", err))
		pause(ctx, hookPause)
		return
	}
	s.faults.clear(faultHooks)
	s.read(ctx, gen, got, starts)
	s.hookRevoked(ctx, got)
}

// hookAssigned asks where to start. Committed offsets of a topic that is a new one
// are not shown to the hook, and what it answers for it is not used.
func (s *Source) hookAssigned(ctx context.Context, got []collector.Assignment) ([]int64, error) {
	fresh := make([]freshness, len(got))
	s.mu.Lock()
	for i := range got {
		fresh[i] = s.topology.fresh[partitionOf(got[i])]
		if fresh[i] == reborn {
			got[i].Committed = event.Absent
		}
	}
	s.mu.Unlock()
	starts := make([]int64, len(got))
	for i := range starts {
		starts[i] = event.Absent
	}
	if s.opt.Hooks.Assigned != nil && len(got) > 0 {
		answer, err := s.opt.Hooks.Assigned(ctx, slices.Clone(got))
		if err != nil {
			return nil, err
		}
		if len(answer) != len(got) {
			return nil, fmt.Errorf("hook gave %d start offsets for %d partitions", len(answer), len(got))
		}
		copy(starts, answer)
	}
	for i := range starts {
		if fresh[i] == reborn {
			starts[i] = event.Absent
		}
	}
	return starts, nil
}

func (s *Source) hookRevoked(ctx context.Context, lost []collector.Assignment) {
	if s.opt.Hooks.Revoked == nil || len(lost) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTimeout)
	defer cancel()
	if err := s.opt.Hooks.Revoked(ctx, lost); err != nil {
		s.log.Error("giving up revoked partitions failed", "err", err)
	}
}

// read runs a worker for each partition until ctx ends and commits what they
// reach. The last commit follows the last worker.
func (s *Source) read(ctx context.Context, gen generation, got []collector.Assignment, starts []int64) {
	handling, stopHandling := afterGrace(ctx, drainTimeout)
	defer stopHandling()
	c := newCommitter(gen, s.metrics, s.cfg.CommitInterval)
	c.failed = func(err error) {
		s.warnings.line().Warn("committing offsets failed", "err", err)
	}
	c.done = s.committed
	workers := s.takeOn(c, got, starts)
	s.hint(ctx, workers)
	var reading, committing sync.WaitGroup
	for _, w := range workers {
		reading.Go(func() { w.run(ctx, handling) })
	}
	committing.Go(func() { c.run(ctx) })
	<-ctx.Done()
	reading.Wait()
	committing.Wait()
	c.flush()
	s.letGo()
}

// takeOn makes the workers and shows them to the watchdog. From here on it is the
// partitions that have faults, no longer the membership: at the start of the
// process until each is read, later only if that takes long.
func (s *Source) takeOn(c *committer, got []collector.Assignment, starts []int64) []*worker {
	var out []*worker
	s.mu.Lock()
	for i := range got {
		w := newWorker(s, c, got[i], starts[i])
		w.fresh = s.topology.fresh[w.partition]
		s.workers[w.partition] = w
		out = append(out, w)
	}
	first := !s.began
	s.began = true
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

// hint looks once for all workers, so that many partitions do not make many
// connections at every rebalance. Where that fails, workers look for themselves.
func (s *Source) hint(ctx context.Context, workers []*worker) {
	if len(workers) == 0 {
		return
	}
	looks, err := s.cluster.look(ctx, s.cfg.Topics)
	if err != nil {
		return
	}
	for _, w := range workers {
		if at, err := placeOf(looks, w.partition); err == nil {
			w.hint = &at
		}
	}
}

// letGo forgets the partitions and everything that was shown of them.
func (s *Source) letGo() {
	s.mu.Lock()
	for p := range s.workers {
		s.metrics.dropLag(p)
	}
	clear(s.workers)
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
