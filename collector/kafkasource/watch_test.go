package kafkasource

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// reports returns a condition: the source is unhealthy and says so.
func (r *rig) reports(part string) func() error {
	return func() error {
		err := r.src.Health()
		if err == nil || !strings.Contains(err.Error(), part) {
			return fmt.Errorf("health is %q", fmt.Sprint(err))
		}
		return nil
	}
}

func TestMissingTopicIsReportedNeverCreatedAndReadOnceItExists(t *testing.T) {
	t.Parallel()
	b := newBroker(t, kfake.AllowAutoTopicCreation())
	r := newRig(t, quick(b.ListenAddrs()...)).start()
	eventually(t, "the topic is reported missing", r.reports(`topic "spark-events" is missing`))
	if r.up() != 0 {
		t.Error("stategauge_source_up is not 0")
	}
	var looks atomic.Int32
	b.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		looks.Add(1)
		return nil, nil, false
	})
	eventually(t, "the watchdog looks several times more", func() error {
		if n := looks.Load(); n < 5 {
			return fmt.Errorf("%d looks", n)
		}
		return nil
	})
	if b.exists(topicEvents) {
		t.Fatal("the topic was created")
	}
	if err := b.CreateTopic(topicEvents, 1, nil); err != nil {
		t.Fatal(err)
	}
	b.progresses(0, 0, 10)
	r.wait(10).ready()
	if n := r.logLines(); n >= 20 {
		t.Errorf("%d log lines", n)
	}
}

func TestTopicThatAppearsIsReadFromItsBeginningEvenWithLatest(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	cfg := quick(b.ListenAddrs()...)
	cfg.StartOffset = StartLatest
	r := newRig(t, cfg).start()
	eventually(t, "the topic is reported missing", r.reports("missing"))
	if err := b.CreateTopic(topicEvents, 1, nil); err != nil {
		t.Fatal(err)
	}
	b.progresses(0, 0, 10)
	r.wait(10)
}

func TestOneMissingTopicDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), kfake.AllowAutoTopicCreation())
	cfg := quick(b.ListenAddrs()...)
	cfg.Topics = append(cfg.Topics, "not-there")
	b.progresses(0, 0, 10)
	r := newRig(t, cfg).start().wait(10)
	eventually(t, "the other topic is reported missing", r.reports(`"not-there" is missing`))
	if b.exists("not-there") {
		t.Error("the topic was created")
	}
}

func TestRecreatedTopicIsReadAgainAndCountedAsGap(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), kfake.AllowAutoTopicCreation())
	b.progresses(0, 0, 30)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(30)
	eventually(t, "offsets are committed", want("committed", func() int64 { return b.committed(0) }, 30))
	if err := b.DeleteTopic(topicEvents); err != nil {
		t.Fatal(err)
	}
	if err := b.CreateTopic(topicEvents, 1, nil); err != nil {
		t.Fatal(err)
	}
	b.client().PurgeTopicsFromClient(topicEvents)
	b.progresses(0, 100, 110)
	r.wait(40).ready()
	eventually(t, "the gap is counted", want("gaps", func() float64 { return r.gaps(gapRecreated) }, 1))
}

// The log's end is known from what was fetched, not only from the watchdog's looks:
// the topic goes before the first look that could have seen it.
func TestATopicRecreatedBetweenTwoLooksIsStillAGap(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	cfg := quick(b.ListenAddrs()...)
	cfg.WatchdogInterval = 2 * time.Second
	r := newRig(t, cfg).start().ready()
	b.progresses(0, 0, 30)
	r.wait(30)
	if err := b.DeleteTopic(topicEvents); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic is reported missing", r.reports("missing"))
	eventually(t, "the partitions are given up", want("assigned", func() float64 { return valueOf(r.metrics.Assigned) }, 0))
	if err := b.CreateTopic(topicEvents, 1, nil); err != nil {
		t.Fatal(err)
	}
	b.client().PurgeTopicsFromClient(topicEvents)
	b.progresses(0, 100, 110)
	r.wait(40).ready()
	eventually(t, "the gap is counted", want("gaps", func() float64 { return r.gaps(gapRecreated) }, 1))
}

func TestTopicDeletedForLongerIsReportedAndComesBack(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2), kfake.AllowAutoTopicCreation())
	b.progresses(0, 0, 30)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(30).ready()
	if err := b.DeleteTopic(topicEvents); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic is reported missing", r.reports("missing"))
	eventually(t, "the partitions are given up", want("assigned", func() float64 { return valueOf(r.metrics.Assigned) }, 0))
	if b.exists(topicEvents) {
		t.Fatal("the topic was created")
	}
	if err := b.CreateTopic(topicEvents, 2, nil); err != nil {
		t.Fatal(err)
	}
	b.client().PurgeTopicsFromClient(topicEvents)
	b.progresses(0, 100, 110)
	r.wait(40).ready()
	eventually(t, "the gap is counted", want("gaps", func() float64 { return r.gaps(gapRecreated) }, 1))
}

func TestAddedPartitionsAreRead(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 10)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(10)
	req := kmsg.NewPtrCreatePartitionsRequest()
	topic := kmsg.NewCreatePartitionsRequestTopic()
	topic.Topic, topic.Count = topicEvents, 3
	req.Topics = append(req.Topics, topic)
	req.TimeoutMillis = 5000
	if _, err := req.RequestWith(context.Background(), b.client()); err != nil {
		t.Fatal(err)
	}
	b.reconnect() // so that the producer learns of the partitions
	b.progresses(1, 10, 20)
	b.progresses(2, 20, 30)
	r.wait(30).ready()
	if n := valueOf(r.metrics.Assigned); n != 3 {
		t.Errorf("%v partitions assigned, expected 3", n)
	}
}

func TestRetentionThatOvertakesUsIsCountedAsLoss(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.progresses(0, 0, 100)
	newRig(t, quick(b.ListenAddrs()...)).start().wait(100).halt()
	b.progresses(0, 100, 200)
	if err := b.DeleteRecords(topicEvents, 0, 150); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(50).ready()
	if lost := valueOf(r.metrics.OffsetsLost.WithLabelValues(topicEvents)); lost != 50 {
		t.Errorf("%v offsets lost, expected 50", lost)
	}
	if n := r.gaps(gapRetention); n != 1 {
		t.Errorf("%v gaps, expected 1", n)
	}
}

func TestBrokerThatIsGoneIsReportedAndComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBroker(t, withTopic(1), kfake.DataDir(dir), kfake.SyncWrites(), shortSessions)
	addr := b.ListenAddrs()[0]
	b.progresses(0, 0, 10)
	cfg := quick(addr)
	cfg.SessionTimeout = shortSession
	r := newRig(t, cfg).start().wait(10).ready()
	eventually(t, "offsets are committed", want("committed", func() int64 { return b.committed(0) }, 10))
	b.Close()
	eventually(t, "the outage is reported", r.reports("brokers cannot be asked"))
	eventually(t, "the source is down", want("up", r.up, 0))
	eventually(t, "the lag is absent", want("lag series", func() int { return countSeries(r.metrics.Lag) }, 0))
	var port int
	if _, err := fmt.Sscanf(addr, "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	again := newBroker(t, kfake.Ports(port), kfake.DataDir(dir), kfake.SyncWrites(), shortSessions)
	again.progresses(0, 10, 20)
	r.wait(20).ready()
	eventually(t, "the source is up", want("up", r.up, 1))
	if n := r.logLines(); n >= 30 {
		t.Errorf("%d log lines", n)
	}
}

func TestRefusedJoinIsReportedWithItsReason(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1))
	b.ControlKey(int16(kmsg.JoinGroup), refuse(b))
	r := newRig(t, quick(b.ListenAddrs()...)).start()
	eventually(t, "the refusal is reported", r.reports("consumer group cannot be joined: broker closed the connection"))
	if r.up() != 0 {
		t.Error("stategauge_source_up is not 0")
	}
	if d := r.halt(); d > 10*time.Second {
		t.Errorf("stop took %v", d)
	}
}

func TestStopIsBoundedWhileBrokersHang(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(2))
	b.progresses(0, 0, 10)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(10).ready()
	// From now on every request is taken and none is answered.
	b.ControlKey(-1, func(kmsg.Request) (kmsg.Response, error, bool) {
		b.KeepControl()
		return nil, nil, true
	})
	if d := r.halt(); d > 10*time.Second {
		t.Errorf("stop took %v", d)
	}
}

func TestLeaderThatMovesIsFollowed(t *testing.T) {
	t.Parallel()
	b := newBroker(t, withTopic(1), kfake.NumBrokers(3))
	b.progresses(0, 0, 10)
	r := newRig(t, quick(b.ListenAddrs()...)).start().wait(10)
	for node := range int32(3) {
		if err := b.MoveTopicPartition(topicEvents, 0, node); err != nil {
			t.Fatal(err)
		}
		b.progresses(0, 10+int(node)*10, 20+int(node)*10)
		r.wait(20 + int(node)*10)
	}
	r.ready()
	if r.gaps(gapRecreated)+r.gaps(gapRetention) != 0 {
		t.Error("a moved leader was counted as a gap")
	}
}
