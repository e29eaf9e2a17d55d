package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watch is the watchdog: it looks at the topics until ctx ends.
func (s *Source) watch(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.WatchdogInterval)
	defer ticker.Stop()
	for {
		s.lookAround(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Source) lookAround(ctx context.Context) {
	looks, err := s.cluster.look(ctx, s.cfg.Topics)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.faults.raise(faultBrokers, 0, fmt.Sprintf("the brokers cannot be asked: %v", err))
		s.forgetLag()
		s.setUp()
		return
	}
	s.faults.clear(faultBrokers)
	s.judgeTopics(looks)
	s.takeEnds(looks)
	s.mu.Lock()
	s.keepEnds()
	changed := s.topology.observe(looks)
	if changed {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	s.mu.Unlock()
	if changed {
		s.log.Info("kafka topics changed", "partitions", s.partitionCounts())
	}
	s.setUp()
}

func (s *Source) judgeTopics(looks map[string]topicLook) {
	for _, topic := range s.cfg.Topics {
		look, ok := looks[topic]
		switch {
		case !ok:
			look.err = errors.New("the brokers say nothing about it")
			fallthrough
		case look.err != nil && !errors.Is(look.err, errUnknownTopic):
			s.faults.raise(faultTopic+topic, 0, fmt.Sprintf("topic %q cannot be read: %v", topic, look.err))
		case look.err != nil:
			s.faults.raise(faultTopic+topic, 0, fmt.Sprintf("topic %q is missing: it does not exist and is not created by this program", topic))
		default:
			s.faults.clear(faultTopic + topic)
		}
	}
}

// takeEnds renews the lag of the partitions read here, which fetches do only while
// messages come in.
func (s *Source) takeEnds(looks map[string]topicLook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, w := range s.workers {
		places := looks[p.topic].places
		if int(p.id) >= len(places) || places[p.id].err != nil {
			s.metrics.dropLag(p)
			continue
		}
		w.end.Store(places[p.id].last)
		w.showLag()
	}
}

// keepEnds tells the topology the log ends that fetches brought since the last look:
// a topic may be deleted before the next one. It must be called with the lock held.
func (s *Source) keepEnds() {
	for p, w := range s.workers {
		if end := w.end.Load(); known(end) {
			s.topology.ends[p] = max(s.topology.ends[p], end)
		}
	}
}

// forgetLag takes the lag away: what is not known is not shown.
func (s *Source) forgetLag() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.workers {
		s.metrics.dropLag(p)
	}
}

func (s *Source) partitionCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for topic, n := range s.topology.counts {
		out[topic] = n
	}
	return out
}
