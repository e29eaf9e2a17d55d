package kafkasource

import (
	"context"
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/collector"
)

// What a client library has to do for the source. The errors below must be
// recognisable with errors.Is; all others mean "try again later".
var (
	// errOutOfRange: the broker does not have the offset asked for.
	errOutOfRange = errors.New("offset is out of range")
	// errUnknownTopic: the broker does not know the topic or the partition.
	errUnknownTopic = errors.New("topic or partition is unknown to the broker")
	// errBroken: the broker answered, but a batch in its answer cannot be read.
	errBroken = errors.New("batch is broken")
	// errNoTimes: the partition's messages are of a format that has no times.
	errNoTimes = errors.New("messages have no times")
	// errRebalancing: the group is between two generations, which is no fault.
	errRebalancing = errors.New("group is rebalancing")
)

// partition names one partition.
type partition struct {
	topic string
	id    int32
}

// String returns topic/partition, as errors and logs show it.
func (p partition) String() string { return fmt.Sprintf("%s/%d", p.topic, p.id) }

// header is a record header.
type header struct {
	Key   string
	Value []byte
}

// message is one record. Its value is not shared with anyone.
type message struct {
	offset  int64
	value   []byte
	headers []header
	control bool // a transaction marker: no record of any producer
	keyless bool
}

// place is what the brokers say of one partition: where its log starts and ends
// (the offset of the next message to be written), and whom to ask for it.
type place struct {
	first, last int64
	leader      string // host:port
	err         error  // why first and last are not known; nil if they are
}

// sought is the answer to a search by time.
type sought struct {
	offset int64 // event.Absent if no message is that young
	err    error
}

// topicLook is what the brokers say of one topic.
type topicLook struct {
	places []place // by partition; empty where err is not nil
	err    error   // errUnknownTopic if it does not exist
}

// cluster is one Kafka cluster, as seen through one client library.
type cluster interface {
	// look asks the brokers, not a cache, for the topics. The error is for the
	// cluster as a whole; what is wrong with one topic is in its topicLook.
	look(ctx context.Context, topics []string) (map[string]topicLook, error)
	// firstSince asks the leaders for the first message of each partition that is
	// not older than atMs, a Unix time in milliseconds. Every partition has an answer.
	firstSince(ctx context.Context, of []partition, atMs int64) map[partition]sought
	// join begins membership in the consumer group, for topics that exist. held is
	// asked before each generation for what this member would like to keep.
	join(topics []string, held func() claim) (group, error)
	// open starts reading p at an absolute offset from the leader that look named.
	open(ctx context.Context, p partition, leader string, offset int64) (fetcher, error)
	// cut closes every connection and lets no new one be made: whatever waits for
	// a broker fails at once. It may be called more than once.
	cut()
}

// group is a membership in a consumer group.
type group interface {
	// next waits for the next generation, or for an error in joining; after an
	// error it may be called again.
	next(ctx context.Context) (generation, error)
	// close leaves the group and ends the present generation.
	close() error
}

// generation is one assignment of partitions.
type generation interface {
	// number rises by one from each generation of the group to the next; this member
	// need not have been in all of them.
	number() int32
	assigned() []collector.Assignment
	// start runs fn on its own goroutine. Its context ends with the generation, and
	// the generation ends when fn returns; the next one waits for that.
	start(fn func(ctx context.Context))
	commit(offsets map[partition]int64) error
}

// fetcher reads one partition, in order. It is used by one goroutine.
type fetcher interface {
	// fetch appends the next messages to buf: as many as one answer of the broker
	// holds, up to the limits of the configuration; none if no message came in time.
	fetch(ctx context.Context, buf []message) ([]message, error)
	// position is the offset that the next fetch starts from, past holes that
	// compaction left.
	position() int64
	// highWater is the end of the log as the newest answer told it.
	highWater() int64
	close()
}
