package simulator

import (
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// message is an event of a query before it is wrapped and merged: with what the
// merge must know beside it.
type message struct {
	atMs  int64
	kind  event.Kind
	batch int64
	id    string
	run   string
	app   int
	// busyFromMs is when the trigger began that this message ends: the query was
	// working since then.
	busyFromMs int64
	// quietFromMs is since when the application was silent, heartbeats too;
	// -1: it was not.
	quietFromMs int64
	lost        loss
	endsApp     bool          // the application is gone after this
	version     event.Version // of a started event
	conf        []spark.KV    // of a started event, as listeners tell it
	lostExecs   int64
	execs       int
	gcMs        int64
	data        []byte
}

// loss is why an event does not arrive.
type loss uint8

const (
	arrives    loss = iota
	busDropped      // the listener bus dropped it: the sender never saw it
	sendFailed      // the sender could not deliver it, and counts that
	unheard         // nothing was said at all: a note to the merge only
)

// queue holds a query's messages that are not merged yet, with memory to reuse.
type queue struct {
	items []message
	spare [][]byte
	head  int
}

func (q *queue) len() int { return len(q.items) - q.head }

// push appends m; data is copied.
func (q *queue) push(m message, data []byte) {
	var buf []byte
	if n := len(q.spare); n > 0 {
		buf, q.spare = q.spare[n-1], q.spare[:n-1]
	}
	m.data = append(buf[:0], data...)
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	q.items = append(q.items, m)
}

func (q *queue) peek() *message { return &q.items[q.head] }

// pop removes the oldest message. Its data are valid until release.
func (q *queue) pop() message {
	m := q.items[q.head]
	q.items[q.head] = message{}
	q.head++
	return m
}

// release gives a popped message's memory back.
func (q *queue) release(data []byte) {
	if cap(data) > 0 && len(q.spare) < 8 {
		q.spare = append(q.spare, data)
	}
}
