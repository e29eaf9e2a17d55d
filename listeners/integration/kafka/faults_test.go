package kafka

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestABrokerThatRestartsOrCrashesIsReadOn(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "restart", 2)
	d := runDaemon(t, b.addr, f.topic, "restart")
	f.send(30)
	d.hasAll(f, "restart")
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		b.end(s)
		await(t, "the daemon to say that it is degraded", func() error {
			if d.healthy() == nil {
				return errors.New("it says that Kafka is well")
			}
			return nil
		})
		if _, err := d.get("/-/ready"); err != nil {
			t.Errorf("%v: the daemon is not ready for other carriers: %v", s, err)
		}
		begin := time.Now()
		b.start(t)
		up := time.Since(begin)
		f.send(30)
		d.hasAll(f, "restart")
		t.Logf("%v: the broker was up after %v, all was well %v later", s, up.Round(time.Millisecond), (time.Since(begin) - up).Round(time.Millisecond))
	}
	if lost := d.count("stategauge_kafka_offsets_lost_total"); lost != 0 {
		t.Errorf("%g offsets are told to be lost", lost)
	}
	t.Logf("%d events, each applied once; %g reader restarts, %g rebalances, %g commit errors", f.total(),
		d.count("stategauge_kafka_reader_restarts_total"), d.count("stategauge_kafka_rebalances_total"), d.count("stategauge_kafka_commit_errors_total"))
}

func TestATopicThatIsDeletedAndMadeAnewIsReadFromItsBeginning(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "recreated", 2)
	d := runDaemon(t, b.addr, f.topic, "recreated")
	f.send(40)
	d.hasAll(f, "recreated")
	// A log is known by its end, which is looked at every second.
	holds(t, 3*time.Second, d.healthy)
	f.delete(f.topic)
	await(t, "the daemon to miss the topic", func() error {
		if err := d.healthy(); err == nil {
			return errors.New("it says that Kafka is well")
		}
		return nil
	})
	// A client that asks for the topic carelessly makes it.
	holds(t, 3*time.Second, func() error {
		if _, err := f.partitions(f.topic); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return fmt.Errorf("the topic is back by itself: %w", err)
		}
		return nil
	})
	f.create(f.topic, 2)
	f.renew()
	f.base = slices.Clone(f.sent)
	begin := time.Now()
	f.send(10)
	d.hasAll(f, "recreated")
	t.Logf("all was well %v after the new topic had events", time.Since(begin).Round(time.Millisecond))
	if n := d.count("stategauge_kafka_gaps_total", "topic", f.topic, "reason", "recreated"); n != 2 {
		t.Errorf("%g jumps to a new log were counted, want one per partition", n)
	}
}

func TestPartitionsThatAreAddedAreReadFromTheirBeginning(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "grown", 1)
	d := runDaemon(t, b.addr, f.topic, "grown")
	f.send(20)
	d.hasAll(f, "grown")
	f.grow(f.topic, 4)
	await(t, "the new partitions", func() error {
		if n, err := f.partitions(f.topic); err != nil || n != 4 {
			return fmt.Errorf("%d partitions (%w)", n, err)
		}
		return nil
	})
	f.renew()
	f.sent, f.base = append(f.sent, 0, 0, 0), append(f.base, 0, 0, 0)
	begin := time.Now()
	f.send(20)
	d.hasAll(f, "grown")
	t.Logf("all four were read %v after events were in them", time.Since(begin).Round(time.Millisecond))
}

// TestWhatRetentionDeletedIsCounted stops the process as a paused machine does, lets
// events come and go meanwhile, and lets it run again. The fetch that is under way then
// may be answered with all of them before they are deleted: the broker completes it at
// some moment after the first of them came. Nothing is lost to such a daemon, which can
// be told only when it runs again; it is paused once more.
func TestWhatRetentionDeletedIsCounted(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "retention", 1)
	d := runDaemon(t, b.addr, f.topic, "retention")
	f.send(20)
	d.hasAll(f, "retention")
	var q query
	rounds := 0
	for ; q.Missed == 0 && rounds < 10; rounds++ {
		q = d.missesSome(f)
	}
	d.settled(f, "retention")
	lost := d.count("stategauge_kafka_offsets_lost_total", "topic", f.topic)
	gaps := d.count("stategauge_kafka_gaps_total", "topic", f.topic, "reason", "retention")
	if q.Missed == 0 || float64(q.Missed) != lost || gaps != 1 {
		t.Errorf("%d batches missed in %d pauses, %g offsets lost, %g gaps", q.Missed, rounds, lost, gaps)
	}
	t.Logf("%d events: %d applied, %g lost to retention, in %g gap, after %d pauses", f.sent[0], q.Batches, lost, gaps, rounds)
}

// missesSome pauses the daemon while events come that are deleted, and waits until it has
// read the rest or, where it had been given them in time, all.
func (d *daemon) missesSome(f *feed) (q query) {
	d.t.Helper()
	d.pause()
	f.send(1) // answers the fetch that may be under way
	f.send(60)
	f.truncate(f.topic, 0, f.sent[0]-20)
	d.signal(syscall.SIGCONT)
	f.send(20)
	await(d.t, "the daemon to count what it missed", func() error {
		got, err := d.queries(1)
		if err != nil {
			return err
		}
		if q = got[0]; q.LastBatch != f.sent[0]-1 || q.Batches+q.Missed != f.sent[0] {
			return fmt.Errorf("the query is %+v, want batches and missed ones to be %d", q, f.sent[0])
		}
		return nil
	})
	return q
}

func TestADaemonThatWasDownStartsBehindWhatRetentionDeleted(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "retention-down", 1)
	first := runDaemon(t, b.addr, f.topic, "retention-down")
	f.send(20)
	first.hasAll(f, "retention-down")
	first.stop()
	f.send(50)
	f.truncate(f.topic, 0, 45)
	second := runDaemon(t, b.addr, f.topic, "retention-down")
	second.hasAll(f, "retention-down", 45)
	if lost := second.count("stategauge_kafka_offsets_lost_total"); lost != 25 {
		t.Errorf("%g offsets are counted as lost, want 25", lost)
	}
}

// TestDaemonsThatComeAndGoShareTheStream lets two more join in mid-stream. Events
// that one has applied without its commit in time are applied by another as well,
// none by nobody, and by none twice.
func TestDaemonsThatComeAndGoShareTheStream(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "shared", 4)
	daemons := []*daemon{runDaemon(t, b.addr, f.topic, "shared")}
	f.send(20)
	daemons[0].hasAll(f, "shared")
	stop := f.stream(5 * time.Millisecond)
	for range 2 {
		daemons = append(daemons, runDaemon(t, b.addr, f.topic, "shared"))
		awaitSpread(t, daemons, f)
	}
	stop()
	gone := make([]int64, len(f.sent))
	again := awaitCovered(t, daemons, gone, f)
	t.Logf("%d events, 2 joins: %v applied by more than one, by partition", f.total(), again)
	// Nothing is sent now, so what the leaver has applied can be told exactly.
	gone = appliedBy(t, daemons[2:], f)
	daemons[2].stop()
	stop = f.stream(5 * time.Millisecond)
	awaitSpread(t, daemons[:2], f)
	stop()
	f.send(20)
	again = awaitCovered(t, daemons[:2], gone, f)
	t.Logf("%d events, 2 joins, 1 left: %v applied by more than one, by partition", f.total(), again)
	for i, d := range daemons[:2] {
		t.Logf("daemon %d: %g generations, %g commit errors, %g batches told to be missed", i, d.count("stategauge_kafka_rebalances_total"),
			d.count("stategauge_kafka_commit_errors_total"), d.count("spark_streaming_missed_batches_total"))
	}
}

// appliedBy returns how many batches of each partition daemons have applied.
func appliedBy(t *testing.T, daemons []*daemon, f *feed) []int64 {
	t.Helper()
	sums := make([]int64, len(f.sent))
	for _, d := range daemons {
		got, err := d.queries(len(f.sent))
		if err != nil {
			t.Fatal(err)
		}
		for p, q := range got {
			sums[p] += q.Batches
		}
	}
	return sums
}

// awaitCovered waits until all that was sent is committed and applied by daemons or
// by those that are gone; it returns what was applied more than once.
func awaitCovered(t *testing.T, daemons []*daemon, gone []int64, f *feed) []int64 {
	t.Helper()
	again := make([]int64, len(f.sent))
	await(t, "all events to be applied by one or another", func() error {
		if at := f.committed("shared", f.topic, len(f.sent)); !slices.Equal(at, f.ends()) {
			return fmt.Errorf("the group is at %v, want %v", at, f.ends())
		}
		for p, n := range appliedBy(t, daemons, f) {
			if again[p] = n + gone[p] - f.sent[p]; again[p] < 0 {
				return fmt.Errorf("partition %d: %d of %d applied", p, n+gone[p], f.sent[p])
			}
		}
		return nil
	})
	return again
}

// awaitSpread waits until each daemon reads something and all together read all.
func awaitSpread(t *testing.T, daemons []*daemon, f *feed) {
	t.Helper()
	await(t, "the partitions to be shared", func() error {
		sum := 0.0
		for _, d := range daemons {
			n, err := d.series("stategauge_kafka_partitions_assigned")
			if err != nil || n == 0 {
				return fmt.Errorf("a daemon reads %g partitions (%w)", n, err)
			}
			sum += n
		}
		if int(sum) != len(f.sent) {
			return fmt.Errorf("%g of %d partitions are read", sum, len(f.sent))
		}
		return nil
	})
}

// TestAnIdleTopicIsHealthyAndReadWhenItWakes is idle for longer than the broker
// keeps idle connections and than the session of a silent member lasts.
func TestAnIdleTopicIsHealthyAndReadWhenItWakes(t *testing.T) {
	b := realBroker(t)
	f := newFeed(t, b, "idle", 2)
	d := runDaemon(t, b.addr, f.topic, "idle")
	await(t, "the daemon to be well", d.healthy)
	generations := d.count("stategauge_kafka_rebalances_total")
	holds(t, 12*time.Second, func() error {
		if lag, err := d.series("stategauge_kafka_lag"); err != nil || lag != 0 {
			return fmt.Errorf("lag is %g (%w)", lag, err)
		}
		return d.healthy()
	})
	f.send(5)
	d.hasAll(f, "idle")
	restarts, now := d.count("stategauge_kafka_reader_restarts_total"), d.count("stategauge_kafka_rebalances_total")
	if restarts != 0 || now != generations {
		t.Errorf("%g readers were started again, generations went from %g to %g", restarts, generations, now)
	}
}
