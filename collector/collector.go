// Package collector is the intake seam: what a source hands on, and what it may
// believe afterwards. The sources live in sub-packages and know only this package
// and package event; the daemon supplies the Handler.
package collector

import (
	"context"
	"errors"

	"github.com/stategauge/stategauge/event"
)

// ErrFull is returned by a Handler whose queues are full. The step was not
// applied; the source answers 429 or tries again later.
var ErrFull = errors.New("intake is full")

// Handler applies one step and returns when its events are durable; the source's
// acknowledgement (an HTTP 200, a committed Kafka offset) follows. Without
// storage durable means applied in memory. The events of a step belong to the
// source again once Handler has returned.
//
// A nil error says that every item has its Outcome set. On ErrFull, a cancelled
// context or any other error nothing of the step may be taken as applied, and
// applying it again must be safe: repeats are recognised.
type Handler func(ctx context.Context, step *Step) error

// Step is one indivisible piece of intake: part of one HTTP request, or of one
// Kafka fetch from one partition.
type Step struct {
	Items []Item
	// Reached is the first offset that a Kafka partition has not handed over,
	// poison messages included; marks are kept with the events they brought.
	// event.Absent where the source has no offsets. A step without items says that
	// nothing but poison came, which was counted and must not be read again.
	Reached int64
	// Topic and Partition are what Reached is an offset of.
	Topic     string
	Partition int32
	// Replayed says that the whole step is history: read again to fill windows, and
	// not to be counted, judged aloud or taken for news. See Start.Live.
	Replayed bool
}

// Item is one event of a step.
type Item struct {
	Event  *event.Event
	Origin event.Origin
	// Outcome is set by the Handler.
	Outcome event.Outcome
	// Index is the event's position in its request, for the answer.
	Index int
	// Keyless is set for an event whose Kafka message had no key: other events of
	// the same query may lie in any partition of the topic.
	Keyless bool
}

// Reject is one piece of input that holds no usable event.
type Reject struct {
	Index  int    // position in the request or message; line number in a file
	Reason Reason // for the counter
	Err    error  // for people: what is wrong, and where
}

// Reason classes rejects for the counter; the set is small and fixed.
type Reason string

// The reasons.
const (
	ReasonSyntax    Reason = "syntax"    // no JSON, or broken
	ReasonShape     Reason = "shape"     // JSON, but no event of a known shape
	ReasonLegacy    Reason = "legacy"    // Spark 2.0's event log, which names nothing of today's
	ReasonIdentity  Reason = "identity"  // an event that names no query
	ReasonTooLarge  Reason = "too_large" // over the limit for one event
	ReasonTooMany   Reason = "too_many"  // too many keys, operators or sources in one event
	ReasonDepth     Reason = "depth"     // nested too deeply
	ReasonEmpty     Reason = "empty"     // empty message or tombstone
	ReasonEncoding  Reason = "encoding"  // cannot be decompressed
	ReasonTruncated Reason = "truncated" // cut off in the middle
)

// Reasons lists every reason, so that counters start at 0.
func Reasons() []Reason {
	return []Reason{
		ReasonSyntax, ReasonShape, ReasonLegacy, ReasonIdentity, ReasonTooLarge, ReasonTooMany,
		ReasonDepth, ReasonEmpty, ReasonEncoding, ReasonTruncated,
	}
}

// Assignment is one partition handed to this process by its consumer group.
type Assignment struct {
	Topic     string
	Partition int32
	// Committed is the group's committed offset, event.Absent where there is none.
	Committed int64
	// First is where the partition's log begins and End the offset of the next
	// message to be written, as the brokers told it after the assignment; both are
	// event.Absent where they did not tell.
	First, End int64
	// Kept says that this process held the partition in the group's generation just
	// before as well, so that nobody else can have read it in between.
	Kept bool
}

// Start is where the reading of an assigned partition begins, and what of it is
// history. Start{event.Absent, event.Absent} leaves both to the source.
type Start struct {
	// Offset is the first offset to be read, and wins over the committed one.
	// event.Absent is the committed one, the configured start where there is none,
	// and where a partition was kept the place that it had been read up to.
	Offset int64
	// Live is the first offset that is news; steps before it are handed over as
	// Replayed and the group is told that they need no reading any more. event.Absent
	// makes everything news, or goes on with the replay that a kept partition was in.
	Live int64
}

// PartitionHooks lets the daemon decide where a partition's reading starts and
// learn when it is taken away. A group gives out all partitions anew whenever a
// member comes or goes: each such generation begins with Assigned and ends with
// Revoked, one after the other, never at the same time.
type PartitionHooks struct {
	// Assigned is told all partitions of a generation, which may be none, and returns
	// the Start of each, in order. Partitions of before that are not among them
	// belong to somebody else now. It may take its time, as long as ctx lasts;
	// nothing is read meanwhile. After an error it is called again.
	Assigned func(ctx context.Context, got []Assignment) ([]Start, error)
	// Revoked is told the same partitions when the generation is over: after their
	// last step was handled and, unless that took longer than the group waits, before
	// another process can be given them. The next Assigned often brings most of them
	// back, as Kept.
	Revoked func(ctx context.Context, lost []Assignment) error
}
