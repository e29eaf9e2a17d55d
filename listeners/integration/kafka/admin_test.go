package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// admin speaks to the broker with a client library that the daemon does not use.
type admin struct {
	t      *testing.T
	client *kgo.Client
}

func newAdmin(t *testing.T, addr string) *admin {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.ProducerLinger(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &admin{t, c}
}

func (a *admin) ping() error {
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*time.Second)
	defer cancel()
	return a.client.Ping(ctx)
}

// request sends a request that must succeed.
func request[R any](a *admin, send func(context.Context, kmsg.Requestor) (R, error)) R {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), time.Minute)
	defer cancel()
	r, err := send(ctx, a.client)
	if errors.Is(err, io.EOF) {
		// The broker closes idle connections after 8 s; one may just have gone.
		r, err = send(ctx, a.client)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a *admin) must(code int16) {
	a.t.Helper()
	if err := kerr.ErrorForCode(code); err != nil {
		a.t.Fatal(err)
	}
}

func (a *admin) create(topic string, partitions int32) {
	a.t.Helper()
	r, one := kmsg.NewPtrCreateTopicsRequest(), kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, partitions, 1
	r.Topics = append(r.Topics, one)
	// A name that was just deleted may be taken a little longer.
	await(a.t, "topic "+topic+" to be made", func() error {
		return kerr.ErrorForCode(request(a, r.RequestWith).Topics[0].ErrorCode)
	})
	await(a.t, "topic "+topic, func() error {
		if n, err := a.partitions(topic); err != nil || n != int(partitions) {
			return fmt.Errorf("%d partitions (%w)", n, err)
		}
		return nil
	})
}

// partitions returns how many a topic has. It does not make the topic.
func (a *admin) partitions(topic string) (int, error) {
	a.t.Helper()
	r, one := kmsg.NewPtrMetadataRequest(), kmsg.NewMetadataRequestTopic()
	one.Topic = &topic
	r.Topics = append(r.Topics, one)
	found := request(a, r.RequestWith).Topics[0]
	return len(found.Partitions), kerr.ErrorForCode(found.ErrorCode)
}

func (a *admin) delete(topic string) {
	a.t.Helper()
	r, one := kmsg.NewPtrDeleteTopicsRequest(), kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = &topic
	r.TopicNames, r.Topics = []string{topic}, append(r.Topics, one)
	a.must(request(a, r.RequestWith).Topics[0].ErrorCode)
}

// grow gives a topic more partitions, partitions in all.
func (a *admin) grow(topic string, partitions int32) {
	a.t.Helper()
	r, one := kmsg.NewPtrCreatePartitionsRequest(), kmsg.NewCreatePartitionsRequestTopic()
	one.Topic, one.Count = topic, partitions
	r.Topics = append(r.Topics, one)
	a.must(request(a, r.RequestWith).Topics[0].ErrorCode)
}

// truncate deletes what lies before an offset, as retention does.
func (a *admin) truncate(topic string, partition int32, before int64) {
	a.t.Helper()
	r, one, part := kmsg.NewPtrDeleteRecordsRequest(), kmsg.NewDeleteRecordsRequestTopic(), kmsg.NewDeleteRecordsRequestTopicPartition()
	one.Topic, part.Partition, part.Offset = topic, partition, before
	one.Partitions = append(one.Partitions, part)
	r.Topics = append(r.Topics, one)
	a.must(request(a, r.RequestWith).Topics[0].Partitions[0].ErrorCode)
}

// committed returns where a group is in each partition; 0 where it never was.
func (a *admin) committed(group, topic string, partitions int) []int64 {
	a.t.Helper()
	r, g, one := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroupTopic()
	one.Topic = topic
	for p := range partitions {
		one.Partitions = append(one.Partitions, int32(p))
	}
	g.Group, g.Topics = group, append(g.Topics, one)
	r.Groups = append(r.Groups, g)
	at := make([]int64, partitions)
	for _, p := range request(a, r.RequestWith).Groups[0].Topics[0].Partitions {
		at[p.Partition] = max(p.Offset, 0)
	}
	return at
}

// feed writes events to a topic. Each partition carries one query, whose batch ids
// count from 0: its offsets, as long as the topic is not made anew.
type feed struct {
	*admin
	addr  string
	topic string
	sent  []int64 // by partition
	base  []int64 // batch ids at offset 0
}

func newFeed(t *testing.T, b *broker, topic string, partitions int32) *feed {
	t.Helper()
	f := &feed{newAdmin(t, b.addr), b.addr, topic, make([]int64, partitions), make([]int64, partitions)}
	f.create(topic, partitions)
	return f
}

// renew forgets what the client remembers of the topic.
func (f *feed) renew() { f.admin = newAdmin(f.t, f.addr) }

// send writes n events to every partition.
func (f *feed) send(n int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	if err := f.write(ctx, n); err != nil {
		f.t.Fatal(err)
	}
}

func (f *feed) write(ctx context.Context, n int) error {
	var records []*kgo.Record
	for p := range f.sent {
		for range n {
			records = append(records, &kgo.Record{Topic: f.topic, Partition: int32(p), Value: progress(p, f.sent[p])})
			f.sent[p]++
		}
	}
	return f.client.ProduceSync(ctx, records...).FirstErr()
}

// stream sends without end; the function that it returns ends that.
func (f *feed) stream(every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(f.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := f.write(context.WithoutCancel(ctx), 1); err != nil {
				f.t.Errorf("produce: %v", err)
				return
			}
			<-tick.C
		}
	}()
	return func() { cancel(); <-done }
}

// ends returns the offsets behind the last event of each partition.
func (f *feed) ends() []int64 {
	out := slices.Clone(f.sent)
	for p := range out {
		out[p] -= f.base[p]
	}
	return out
}

func (f *feed) total() (sum int64) {
	for _, n := range f.sent {
		sum += n
	}
	return sum
}

// progress is what Spark tells of one batch of a query with one operator.
func progress(query int, batch int64) []byte {
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(batch) * 5 * time.Second)
	return fmt.Appendf(nil, `{"id":"%08d-1111-4222-8333-444444444444","runId":"%08d-5555-4666-8777-888888888888","name":"query_%d",`+
		`"timestamp":%q,"batchId":%d,"batchDuration":800,"numInputRows":100,"durationMs":{"addBatch":600,"triggerExecution":800},`+
		`"stateOperators":[{"operatorName":"stateStoreSave","numRowsTotal":%d,"numRowsUpdated":10,"commitTimeMs":90,"numShufflePartitions":4,`+
		`"numStateStoreInstances":4,"customMetrics":{"rocksdbCommitFileSyncLatencyMs":12,"rocksdbSstFileSize":65536}}],"sources":[],`+
		`"sink":{"description":"noop"}}`, query, query, query, at.Format("2006-01-02T15:04:05.000Z"), batch, 1000+batch)
}
