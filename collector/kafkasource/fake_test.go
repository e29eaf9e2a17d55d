package kafkasource

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// fakeCluster is a cluster in memory, on the clock of the test. It has one member.
type fakeCluster struct {
	maxWait   time.Duration
	batch     int
	mu        sync.Mutex
	logs      map[string][]*fakeLog
	committed map[partition]int64
	moved     chan struct{} // closed at every change
	end       chan struct{} // closed by cut
	gen       *fakeGeneration

	generations int32
	onCommit    func(p partition, offset int64)

	down, refused, commitErr error
	fetchErr                 error
	commitHangs              bool // until the cluster is cut
	searchErr                map[int32]error
	others                   bool // other members have every partition
	keyless                  bool // messages are read without their keys
}

type fakeLog struct {
	first  int64
	values [][]byte
	times  []int64 // Unix milliseconds; -1 for a message without a time
}

func (l *fakeLog) last() int64 { return l.first + int64(len(l.values)) }

var (
	errFakeDown = errors.New("fake: connection refused")
	errFakeCut  = errors.New("fake: cut")
)

func newFakeCluster(partitions int) *fakeCluster {
	c := &fakeCluster{
		maxWait: 500 * time.Millisecond, batch: 512, logs: map[string][]*fakeLog{},
		committed: map[partition]int64{}, moved: make(chan struct{}), end: make(chan struct{}),
	}
	if partitions > 0 {
		c.create(topicEvents, partitions)
	}
	return c
}

// change does something to the cluster and wakes everyone who waits for it.
func (c *fakeCluster) change(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *fakeCluster) create(topic string, partitions int) {
	c.change(func() {
		for len(c.logs[topic]) < partitions {
			c.logs[topic] = append(c.logs[topic], &fakeLog{})
		}
	})
}

func (c *fakeCluster) delete(topic string) {
	c.change(func() {
		delete(c.logs, topic)
		for p := range c.committed {
			if p.topic == topic {
				delete(c.committed, p)
			}
		}
	})
}

func (c *fakeCluster) send(p int32, values ...string) {
	c.change(func() {
		l := c.logs[topicEvents][p]
		for _, v := range values {
			l.values = append(l.values, []byte(v))
			l.times = append(l.times, time.Now().UnixMilli())
		}
	})
}

// sendAt writes a message for each time; -1 makes one that has none.
func (c *fakeCluster) sendAt(p int32, atMs ...int64) {
	c.change(func() {
		l := c.logs[topicEvents][p]
		for _, at := range atMs {
			l.values = append(l.values, []byte(progress(int(l.last()))))
			l.times = append(l.times, at)
		}
	})
}

func (c *fakeCluster) truncate(p int32, first int64) {
	c.change(func() {
		l := c.logs[topicEvents][p]
		l.values, l.times = l.values[first-l.first:], l.times[first-l.first:]
		l.first = first
	})
}

// rebalance ends the present generation, if there is one.
func (c *fakeCluster) rebalance() {
	c.mu.Lock()
	gen := c.gen
	c.mu.Unlock()
	if gen != nil {
		gen.end()
	}
}

func (c *fakeCluster) trouble() error {
	select {
	case <-c.end:
		return errFakeCut
	default:
		return c.down
	}
}

func (c *fakeCluster) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.end:
	default:
		close(c.end)
	}
}

func (c *fakeCluster) look(_ context.Context, topics []string) (map[string]topicLook, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.trouble(); err != nil {
		return nil, err
	}
	out := map[string]topicLook{}
	for _, t := range topics {
		logs, ok := c.logs[t]
		if !ok {
			out[t] = topicLook{err: errUnknownTopic}
			continue
		}
		var l topicLook
		for _, log := range logs {
			l.places = append(l.places, place{first: log.first, last: log.last(), leader: "fake:9092"})
		}
		out[t] = l
	}
	return out, nil
}

func (c *fakeCluster) firstSince(_ context.Context, of []partition, atMs int64) map[partition]sought {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[partition]sought{}
	for _, p := range of {
		got := sought{offset: event.Absent, err: c.trouble()}
		logs := c.logs[p.topic]
		if int(p.id) >= len(logs) {
			got.err = errors.Join(got.err, errUnknownTopic)
		} else if i := slices.IndexFunc(logs[p.id].times, func(at int64) bool { return at >= atMs }); i >= 0 {
			got.offset = logs[p.id].first + int64(i)
		}
		got.err = errors.Join(got.err, c.searchErr[p.id])
		out[p] = got
	}
	return out
}

func (c *fakeCluster) join(topics []string, _ func() claim) (group, error) {
	return &fakeGroup{c: c, topics: topics}, nil
}

type fakeGroup struct {
	c      *fakeCluster
	topics []string
	gen    *fakeGeneration
}

func (g *fakeGroup) next(ctx context.Context) (generation, error) {
	if g.gen != nil {
		select {
		case <-g.gen.left:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if err := errors.Join(g.c.trouble(), g.c.refused); err != nil {
		return nil, err
	}
	g.c.generations++
	gen := &fakeGeneration{c: g.c, id: g.c.generations, left: make(chan struct{})}
	gen.ctx, gen.end = context.WithCancel(context.Background())
	for _, t := range g.topics {
		for id := range g.c.logs[t] {
			if g.c.others {
				continue
			}
			a := collector.Assignment{Topic: t, Partition: int32(id), Committed: event.Absent}
			if off, ok := g.c.committed[partitionOf(a)]; ok {
				a.Committed = off
			}
			gen.got = append(gen.got, a)
		}
	}
	g.gen, g.c.gen = gen, gen
	return gen, nil
}

func (g *fakeGroup) close() error {
	if g.gen != nil {
		g.gen.end()
		<-g.gen.left
	}
	return nil
}

type fakeGeneration struct {
	c    *fakeCluster
	got  []collector.Assignment
	ctx  context.Context
	end  context.CancelFunc
	left chan struct{}
	id   int32
}

func (g *fakeGeneration) number() int32 { return g.id }

func (g *fakeGeneration) assigned() []collector.Assignment { return slices.Clone(g.got) }

func (g *fakeGeneration) start(fn func(context.Context)) {
	go func() {
		fn(g.ctx)
		g.end()
		close(g.left)
	}()
}

func (g *fakeGeneration) commit(offsets map[partition]int64) error {
	g.c.mu.Lock()
	hangs := g.c.commitHangs
	g.c.mu.Unlock()
	if hangs {
		<-g.c.end
		return errFakeCut
	}
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	if err := errors.Join(g.c.trouble(), g.c.commitErr); err != nil {
		return err
	}
	for p, o := range offsets {
		if g.c.onCommit != nil {
			g.c.onCommit(p, o)
		}
		g.c.committed[p] = o
	}
	return nil
}

func (c *fakeCluster) open(_ context.Context, p partition, _ string, offset int64) (fetcher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.trouble(); err != nil {
		return nil, err
	}
	return &fakeFetcher{c: c, p: p, next: offset, end: offset}, nil
}

type fakeFetcher struct {
	c         *fakeCluster
	p         partition
	next, end int64
}

func (f *fakeFetcher) position() int64  { return f.next }
func (f *fakeFetcher) highWater() int64 { return f.end }
func (f *fakeFetcher) close()           {}

func (f *fakeFetcher) fetch(ctx context.Context, buf []message) ([]message, error) {
	limit := time.After(f.c.maxWait)
	for {
		out, moved, err := f.try(buf)
		if err != nil || len(out) > len(buf) {
			return out, err
		}
		select {
		case <-moved:
		case <-limit:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		case <-f.c.end:
			return out, errFakeCut
		}
	}
}

func (f *fakeFetcher) try(buf []message) ([]message, <-chan struct{}, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := errors.Join(f.c.trouble(), f.c.fetchErr); err != nil {
		return buf, nil, err
	}
	logs := f.c.logs[f.p.topic]
	if int(f.p.id) >= len(logs) {
		return buf, nil, errUnknownTopic
	}
	l := logs[f.p.id]
	if f.next < l.first || f.next > l.last() {
		return buf, nil, errOutOfRange
	}
	f.end = l.last()
	for n := 0; n < f.c.batch && f.next < f.end; n++ {
		buf = append(buf, message{offset: f.next, value: l.values[f.next-l.first], keyless: f.c.keyless})
		f.next++
	}
	return buf, f.c.moved, nil
}
