package kafkasource

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/collector"
)

// fleet is several members of one group and what they did to the events of many
// queries. It checks while they run: an offset may be committed only when everything
// before it was handled, and a step may be handled only while its partition is held.
type fleet struct {
	t       *testing.T
	b       *broker
	cfg     Config
	parts   int32
	queries int

	mu      sync.Mutex
	next    int                     // batch id
	sent    map[int32]int64         // by partition
	handled map[int32]map[int64]int // by partition and offset: how often
	faults  []string
	holders map[int32]string
	orderly bool // everyone lets go before another one takes on
}

func newFleet(t *testing.T, parts int32, queries int) *fleet {
	b := newBroker(t, withTopic(parts), shortSessions)
	f := &fleet{
		t: t, b: b, cfg: quick(b.ListenAddrs()...), parts: parts, queries: queries,
		sent: map[int32]int64{}, handled: map[int32]map[int64]int{}, holders: map[int32]string{}, orderly: true,
	}
	f.cfg.SessionTimeout = 3 * time.Second
	for p := range parts {
		f.handled[p] = map[int64]int{}
	}
	return f
}

// round writes one batch of every query, each to the query's own partition.
func (f *fleet) round() {
	recs := make([]*kgo.Record, f.queries)
	f.mu.Lock()
	for q := range recs {
		p := int32(q) % f.parts
		recs[q] = &kgo.Record{Topic: topicEvents, Partition: p, Key: fmt.Appendf(nil, "query-%d", q), Value: []byte(progress(f.next))}
		f.next++
		f.sent[p]++
	}
	f.mu.Unlock()
	f.b.sendRecords(recs...)
}

// member is one process of the fleet.
type member struct {
	*rig
	fleet *fleet
	name  string
	hang  chan struct{} // while not nil and open, handlers wait for it, whatever their context says

	mu    sync.Mutex
	held  map[int32]bool
	kept  int
	stuck int // handlers that hang
}

func (f *fleet) member(name string) *member {
	m := &member{fleet: f, name: name, held: map[int32]bool{}}
	m.rig = newRig(f.t, f.cfg, func(o *Options) {
		o.Hooks = collector.PartitionHooks{Assigned: m.assigned, Revoked: m.revoked}
		o.Handler = m.handle
	})
	m.start()
	return m
}

func (m *member) assigned(_ context.Context, got []collector.Assignment) ([]collector.Start, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = 0
	starts := make([]collector.Start, len(got))
	for i, a := range got {
		starts[i] = anywhere
		m.held[a.Partition] = true
		if a.Kept {
			m.kept++
		}
		m.fleet.checkCommitted(m.name, a)
		m.fleet.take(m.name, a.Partition)
	}
	return starts, nil
}

func (m *member) revoked(_ context.Context, lost []collector.Assignment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range lost {
		if !m.held[a.Partition] {
			m.fleet.fault("%s gave up partition %d, which it did not hold", m.name, a.Partition)
		}
		delete(m.held, a.Partition)
		m.fleet.letGo(m.name, a.Partition)
	}
	return nil
}

func (m *member) handle(_ context.Context, step *collector.Step) error {
	m.mu.Lock()
	hang := m.hang
	if hang != nil {
		m.stuck++
	}
	m.mu.Unlock()
	if hang != nil {
		<-hang
	}
	m.mu.Lock()
	held := m.held[step.Items[0].Origin.Partition]
	m.mu.Unlock()
	if !held {
		m.fleet.fault("%s handled a step of partition %d, which it did not hold", m.name, step.Items[0].Origin.Partition)
	}
	f := m.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range step.Items {
		o := step.Items[i].Origin
		f.handled[o.Partition][o.Offset]++
	}
	return nil
}

func (m *member) setHang(hang chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hang = hang
}

// keptNow is how many partitions of the newest assignment were kept.
func (m *member) keptNow() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept
}

// kill cuts the member off as a kill does: nothing is said to the group.
func (m *member) kill() {
	m.src.cluster.cut()
	m.stop()
}

func (m *member) partitions() int { return int(valueOf(m.metrics.Assigned)) }

func (f *fleet) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// take notes who holds a partition; in order, nobody else does.
func (f *fleet) take(who string, p int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.holders[p]; old != "" && f.orderly {
		f.faults = append(f.faults, fmt.Sprintf("%s was given partition %d while %s had it", who, p, old))
	}
	f.holders[p] = who
}

func (f *fleet) letGo(who string, p int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.holders[p] == who {
		delete(f.holders, p)
	}
}

// disorder is what kills and hangs make: from here on partitions change hands without
// being let go.
func (f *fleet) disorder() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orderly = false
}

// checkCommitted fails the test if the group was told of an offset before everything
// in front of it was handled: those events would be lost.
func (f *fleet) checkCommitted(who string, a collector.Assignment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o := int64(0); o < a.Committed; o++ {
		if f.handled[a.Partition][o] == 0 {
			f.faults = append(f.faults, fmt.Sprintf("%s: partition %d is committed up to %d, but %d was not handled", who, a.Partition, a.Committed, o))
			return
		}
	}
}

// readAgain writes a round, waits until someone has handled all of it, and returns
// how long it is since begin.
func (f *fleet) readAgain(begin time.Time) time.Duration {
	f.t.Helper()
	f.round()
	eventually(f.t, "every partition is read", f.allHandled)
	return time.Since(begin)
}

func (f *fleet) allHandled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, end := range f.sent {
		if got := f.handled[p]; int64(len(got)) < end {
			return fmt.Errorf("partition %d: %d of %d events", p, len(got), end)
		}
	}
	return nil
}

// repeats counts events that were handled more than once.
func (f *fleet) repeats() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, offsets := range f.handled {
		for _, times := range offsets {
			n += times - 1
		}
	}
	return n
}

func (f *fleet) noFaults() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		f.t.Error(fault)
	}
}

// spread waits until each member has its share.
func (f *fleet) spread(members ...*member) {
	f.t.Helper()
	eventually(f.t, "every member has its share", func() error {
		share := int(f.parts) / len(members)
		for _, m := range members {
			if n := m.partitions(); n < share || n > share+1 {
				return fmt.Errorf("%s has %d partitions of %d", m.name, n, f.parts)
			}
		}
		return nil
	})
}

// soon is what 300 queries must wait for at most while the members change.
const soon = 15 * time.Second

func TestPartitionsAreReadAgainSoonAfterMembersChange(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 60, 300)
	one, two, three := f.member("one"), f.member("two"), f.member("three")
	f.spread(one, two, three)
	f.readAgain(time.Now())
	check := func(what string, begin time.Time) {
		t.Helper()
		d := f.readAgain(begin)
		t.Logf("%s: all partitions are read after %v, %d events repeated so far", what, d.Round(time.Millisecond), f.repeats())
		if d > soon {
			t.Errorf("%s: all partitions are read after %v", what, d)
		}
	}
	begin := time.Now()
	three.halt()
	check("one member left", begin)
	if n := f.repeats(); n != 0 {
		t.Errorf("%d events were handled again though everyone left in order", n)
	}
	begin = time.Now()
	four := f.member("four")
	f.spread(one, two, four)
	check("one member joined", begin)
	if n := f.repeats(); n != 0 {
		t.Errorf("%d events were handled again though everyone left in order", n)
	}
	f.disorder()
	begin = time.Now()
	two.kill()
	check("one member was killed", begin)
	f.spread(one, four)
	f.noFaults()
}

func TestAMemberThatHangsStopsTheOthersForASessionAtMost(t *testing.T) {
	t.Parallel()
	const session = 3 * time.Second
	f := newFleet(t, 12, 60)
	// The broker of these tests takes no account of those who wait for the group, and
	// lets their sessions end as well; so the others have longer ones.
	f.cfg.SessionTimeout = 20 * time.Second
	one, two := f.member("one"), f.member("two")
	f.cfg.SessionTimeout = session
	three := f.member("three")
	f.spread(one, two, three)
	f.readAgain(time.Now())
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	defer release()
	f.disorder()
	three.setHang(hang)
	f.round()
	eventually(t, "the handlers hang", func() error {
		three.mu.Lock()
		defer three.mu.Unlock()
		if three.stuck < 4 {
			return fmt.Errorf("%d do", three.stuck)
		}
		return nil
	})
	// The others are not concerned as long as nobody comes or goes.
	if n := one.partitions() + two.partitions(); n != 8 {
		t.Errorf("the others have %d partitions", n)
	}
	begin := time.Now()
	two.halt()
	d := f.readAgain(begin)
	t.Logf("all partitions are read %v after a member left while another hangs; the session timeout is %v", d.Round(time.Millisecond), session)
	if one.partitions() != 12 {
		t.Errorf("one has %d partitions of 12", one.partitions())
	}
	if limit := session + 10*time.Second; d > limit {
		t.Errorf("that took longer than %v", limit)
	}
	three.setHang(nil)
	release()
	f.spread(one, three)
	f.readAgain(time.Now())
	if n := three.keptNow(); n != 0 {
		t.Errorf("three kept %d partitions, though one read them meanwhile", n)
	}
	f.noFaults()
}

func TestMembersThatComeAndGoRepeatNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 12, 60)
	one, two := f.member("one"), f.member("two")
	f.spread(one, two)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() { // all through the rebalances
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				f.round()
			}
		}
	})
	begin, kept := time.Now(), 0
	for i := range 10 {
		m := f.member(fmt.Sprint("guest ", i))
		f.spread(one, two, m)
		kept += one.keptNow() + two.keptNow()
		m.halt()
		f.spread(one, two)
		kept += one.keptNow() + two.keptNow()
	}
	took := time.Since(begin)
	close(stop)
	writing.Wait()
	f.readAgain(time.Now())
	t.Logf("10 members came and went in %v; %d events, %d of them repeated", took.Round(time.Millisecond), f.next, f.repeats())
	if n := f.repeats(); n != 0 {
		t.Errorf("%d events were handled twice though everyone left in order", n)
	}
	// Each of 20 changes leaves 8 of 12 partitions where they are, unless a loaded
	// machine makes a member miss a generation.
	if kept < 100 {
		t.Errorf("%d partitions were kept in all, expected 160 or a little less", kept)
	}
	f.noFaults()
}

// Members of another version, or of another make, may know other protocols only.
func TestMembersThatKnowOtherProtocolsOnlyGetTheirShare(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 6, 6)
	one := f.member("one")
	f.spread(one)
	other, err := kgo.NewClient(kgo.SeedBrokers(f.b.ListenAddrs()...), kgo.ConsumerGroup(f.cfg.GroupID),
		kgo.ConsumeTopics(topicEvents), kgo.Balancers(kgo.RangeBalancer()), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(f.cfg.SessionTimeout), kgo.HeartbeatInterval(f.cfg.HeartbeatInterval))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the partitions are shared", want("assigned", one.partitions, 3))
	other.Close()
	eventually(t, "they come back", want("assigned", one.partitions, 6))
	f.readAgain(time.Now())
	f.noFaults()
}
