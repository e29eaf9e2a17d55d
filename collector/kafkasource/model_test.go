package kafkasource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stategauge/stategauge/collector"
)

// storeModel is a daemon that keeps offsets with the events they brought, as far as
// the source is concerned. It checks each step as it comes.
type storeModel struct {
	mu       sync.Mutex
	rng      *rand.Rand
	stored   map[int32]int64
	news     map[int32]map[int64]int
	history  int
	told     map[partition]int64
	problems []string
}

func (m *storeModel) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// assigned starts where the store is, now and then some way before that.
func (m *storeModel) assigned(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng.IntN(5) == 0 {
		return nil, errBusy
	}
	starts := make([]collector.Start, len(got))
	for i, a := range got {
		at := m.stored[a.Partition]
		starts[i] = collector.Start{Offset: max(0, at-m.rng.Int64N(60)), Live: at}
		if a.Kept && m.rng.IntN(2) == 0 {
			starts[i] = anywhere
		}
	}
	return starts, nil
}

func (m *storeModel) handle(_ context.Context, step *collector.Step) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng.IntN(5) == 0 {
		return errBusy
	}
	p := step.Partition
	stored := m.stored[p]
	for i := range step.Items {
		offset := step.Items[i].Origin.Offset
		if step.Replayed != (offset < stored) {
			m.problem("partition %d: offset %d came with Replayed=%v, the store is at %d", p, offset, step.Replayed, stored)
		}
		if !step.Replayed {
			m.news[p][offset]++
		}
	}
	if step.Replayed {
		m.history += len(step.Items)
		return nil
	}
	m.stored[p] = step.Reached
	return nil
}

// committed is told of every commit that the group accepts.
func (m *storeModel) committed(p partition, offset int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if offset > m.stored[p.id] {
		m.problem("%s: the group was told %d, the store is at %d", p, offset, m.stored[p.id])
	}
	if offset < m.told[p] {
		m.problem("%s: the group went back from %d to %d", p, m.told[p], offset)
	}
	m.told[p] = offset
}

// TestWhatAStoreHoldsIsNewsOnceWhateverHappens lets rebalances, outages, lost commits
// and restarts happen at random while messages come in.
func TestWhatAStoreHoldsIsNewsOnceWhateverHappens(t *testing.T) {
	const partitions, turns = 3, 60
	for seed := range uint64(40) {
		inBubble(t, fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 99))
			m := &storeModel{
				rng: rand.New(rand.NewPCG(seed, 7)), stored: map[int32]int64{},
				news: map[int32]map[int64]int{}, told: map[partition]int64{},
			}
			c := newFakeCluster(partitions)
			c.batch, c.onCommit = 16, m.committed
			start := func() *rig {
				return fakeRig(t, c, func(o *Options) {
					o.Handler, o.Hooks.Assigned = m.handle, m.assigned
					o.Config.BatchEvents = 16
				}).start()
			}
			sent := map[int32]int{}
			for p := range int32(partitions) {
				m.news[p] = map[int64]int{}
			}
			r := start()
			for range turns {
				p := rng.Int32N(partitions)
				n := rng.IntN(40)
				c.sendBatches(p, sent[p], sent[p]+n)
				sent[p] += n
				m.happen(rng, c, &r, start)
				after(time.Duration(rng.IntN(2000)) * time.Millisecond)
			}
			c.set(func() { c.down, c.commitErr, c.fetchErr, c.refused = nil, nil, nil, nil })
			after(2 * time.Minute)
			r.mustBeHealthy("at the end")
			if !r.src.Progress().CaughtUp() {
				t.Errorf("progress is %+v", r.src.Progress())
			}
			r.halt()
			m.mustHold(t, sent)
		})
	}
}

// happen does one thing to the cluster or the daemon.
func (m *storeModel) happen(rng *rand.Rand, c *fakeCluster, r **rig, start func() *rig) {
	switch rng.IntN(10) {
	case 0:
		c.rebalance()
	case 1:
		c.set(func() { c.generations++ }) // others had the partitions in between
		c.rebalance()
	case 2:
		c.set(func() { c.down = errFakeDown })
	case 3:
		c.set(func() { c.commitErr = errBusy })
	case 4:
		c.set(func() { c.fetchErr = errFakeDown })
	case 5: // a restart, the last commit lost or not
		(*r).halt()
		c.set(func() { c.end = make(chan struct{}) })
		*r = start()
	default:
		c.set(func() { c.down, c.commitErr, c.fetchErr = nil, nil, nil })
	}
}

func (m *storeModel) mustHold(t *testing.T, sent map[int32]int) {
	t.Helper()
	for i, p := range m.problems {
		if i < 5 {
			t.Error(p)
		}
	}
	for p, n := range sent {
		for offset := range int64(n) {
			if times := m.news[p][offset]; times != 1 {
				t.Fatalf("partition %d: offset %d was news %d times", p, offset, times)
			}
		}
		if m.stored[p] != int64(n) || m.told[partition{topicEvents, p}] != int64(n) {
			t.Errorf("partition %d: the store is at %d, the group at %d, expected %d", p, m.stored[p], m.told[partition{topicEvents, p}], n)
		}
	}
	if m.history == 0 {
		t.Error("nothing was read again: the test sees too little")
	}
}
