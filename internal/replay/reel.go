package replay

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/record"
)

// maxChunk bounds how many records of one time a reel reads at once.
const maxChunk = 64 << 10

// errEnough ends a reading that goes on later.
var errEnough = errors.New("enough for now")

// reel hands out the stored events of one query, or heartbeats of one sender, in the
// order of their receipt. The store has them in the order of their own times, so that an
// event which came late stands before others that came earlier: it waits until the
// others have passed, or until too many wait.
type reel struct {
	past  *pastReader
	id    event.QueryID
	index int   // breaks ties: replays of the same history are the same
	ms    int64 // when the next event is heard, or a time before
	known bool  // it is that of waiting[0]

	filed  []filed // read and not decoded yet
	bodies []byte  // of filed
	next   int     // of filed
	// Reading goes on with the records from fromMs, of whose first time skip were had
	// already, until all is read.
	fromMs, toMs int64
	skip         int
	read         bool

	waiting heldHeap
	count   int // of all events so far
}

// filed is a record as it is stored.
type filed struct {
	atMs int64
	end  int // of its body in reel.bodies, which begins where the one before ends
}

// held is a decoded event that waits for its turn.
type held struct {
	decoder record.Decoder
	update  *event.Update
	order   int // of its reel, in the order of time
}

// before compares reels by what is next on them: by when it was heard, then received.
func (l *reel) before(m *reel) bool {
	if l.ms != m.ms {
		return l.ms < m.ms
	}
	if l.known && m.known {
		a, b := l.waiting[0].receivedMs(), m.waiting[0].receivedMs()
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(l.index, m.index)) < 0
	}
	// What is not known yet may be the earlier one.
	return !l.known && m.known || l.known == m.known && l.index < m.index
}

// take returns the next event; nil where fill has to be called first.
func (l *reel) take() *held {
	if !l.known {
		return nil
	}
	l.known = false
	return heap.Pop(&l.waiting).(*held)
}

// fill reads until it is known which event is next. It is none if none waits then.
func (l *reel) fill() error {
	var err error
	for !l.settled() {
		if l.next == len(l.filed) {
			err = l.load()
			continue
		}
		l.decode()
	}
	if l.known = len(l.waiting) > 0; l.known {
		l.ms = max(l.ms, l.waiting[0].heardMs())
	}
	return err
}

// settled reports whether no record that was not decoded yet can have been received
// before the first that waits: none is received before it happens.
func (l *reel) settled() bool {
	if l.next == len(l.filed) && l.read {
		return true
	}
	if len(l.waiting) == 0 || l.next == len(l.filed) {
		return false
	}
	return len(l.waiting) >= l.past.ahead || l.filed[l.next].atMs > l.waiting[0].receivedMs()
}

// decode lets the next record wait, if it is an event.
func (l *reel) decode() {
	begin := 0
	if l.next > 0 {
		begin = l.filed[l.next-1].end
	}
	f := l.filed[l.next]
	l.next++
	h := l.past.unused()
	u, _, err := h.decoder.DecodeStored(l.bodies[begin:f.end], l.past.words)
	switch {
	case err != nil:
		l.past.reject(l.id, f.atMs, err)
	case sent(u):
		l.hold(h, u)
		return
	}
	l.past.free = append(l.past.free, h)
}

// sent reports whether an update has an event that somebody sent: what the daemon's
// tracker said when time passed, that of the replay says itself.
func sent(u *event.Update) bool { return u.Event != nil && u.Event.Kind != event.KindTick }

func (l *reel) hold(h *held, u *event.Update) {
	if e := u.Event.Envelope; e != nil {
		// What names no query is not stored, so holes in the numbers are no losses.
		e.Seq = event.Absent
	}
	h.update, h.order = u, l.count
	l.count++
	heap.Push(&l.waiting, h)
}

// load reads the next records of the query. After an error there are no more.
func (l *reel) load() error {
	l.filed, l.bodies, l.next = l.filed[:0], l.bodies[:0], 0
	want := max(l.past.chunk, min(l.skip, maxChunk)) // so that skipping costs no more than reading
	skip := l.skip
	err := l.past.store.Read(l.id, l.fromMs, l.toMs, func(r history.Record) error {
		if skip > 0 {
			skip--
			return nil
		}
		if len(l.filed) == want {
			return errEnough
		}
		l.bodies = append(l.bodies, r.Body...)
		l.filed = append(l.filed, filed{r.AtMs, len(l.bodies)})
		return nil
	})
	if errors.Is(err, errEnough) {
		l.mark()
		return nil
	}
	l.read = true
	if err != nil {
		return fmt.Errorf("query %s: %w", l.id, err)
	}
	return nil
}

// mark notes where reading goes on.
func (l *reel) mark() {
	last := l.filed[len(l.filed)-1].atMs
	if last != l.fromMs {
		l.fromMs, l.skip = last, 0
	}
	for i := len(l.filed) - 1; i >= 0 && l.filed[i].atMs == last; i-- {
		l.skip++
	}
}

// receivedMs is when the daemon received the event, by its clock; its own time where
// that is not known.
func (h *held) receivedMs() int64 {
	if ms := h.update.Origin.ReceivedMs; ms > 0 {
		return ms
	}
	return ownMs(h.update.Event)
}

// heardMs is when the event left its sender, or was received where nothing dates it.
func (h *held) heardMs() int64 { return heardOrReceivedMs(h.update.Event, &h.update.Origin) }

// heldHeap has the event on top that was received first; of several received at
// once the oldest.
type heldHeap []*held

func (h heldHeap) Len() int      { return len(h) }
func (h heldHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h heldHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].receivedMs(), h[j].receivedMs()), cmp.Compare(h[i].order, h[j].order)) < 0
}

// Push and Pop are for package heap.
func (h *heldHeap) Push(x any) { *h = append(*h, x.(*held)) }

// Pop takes the last event off.
func (h *heldHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return x
}
