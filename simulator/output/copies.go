package output

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strconv"

	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
)

// spreadMs is over how many milliseconds the copies of one event are spread.
const spreadMs = 10_000

// Copies makes many queries out of those of a simulation without playing them
// again: each event goes out once for each copy, with ids, names and a sender of
// the copy's own, moved in time, with a slightly shorter batch and somewhat more
// rows in state. Durations stay nested and the order of all events is that of
// their times. Not safe for concurrent use.
//
// The first copy is the original. What copies share is the rhythm of their
// figures: for anything but load, let a scenario play several queries.
type Copies struct {
	replicas []replica // by shift
	pending  pendingHeap
	spare    []*pending
	arrived  uint64
	buf      []byte
	ids      map[copiedID]string
	message  simulator.Message
}

// replica is one copy.
type replica struct {
	index    int // 0: the original
	seed     uint64
	shiftMs  int64
	permille int64  // more rows in state
	suffix   string // of names
}

// appendID appends the copy's UUID for the original one with hash h.
func (r *replica) appendID(dst []byte, h uint64) []byte {
	return spark.AppendUUID(dst, seed.Mix(r.seed, h), seed.Mix(r.seed, h, 1))
}

// copiedID is the key of a query id that was made before.
type copiedID struct {
	id   string
	copy int
}

// pending is an event of which some copies have not gone out yet.
type pending struct {
	template
	message simulator.Message
	number  uint64 // of arrival
	next    int    // replica
	dueMs   int64  // of the next replica
}

// NewCopies makes n queries out of one; seed decides how they differ.
func NewCopies(n int, root uint64) (*Copies, error) {
	if n < 1 {
		return nil, fmt.Errorf("copies (%d) must be at least 1", n)
	}
	c := &Copies{ids: map[copiedID]string{}}
	for i := range n {
		c.replicas = append(c.replicas, newReplica(i, root))
	}
	slices.SortFunc(c.replicas, func(a, b replica) int {
		return cmp.Or(cmp.Compare(a.shiftMs, b.shiftMs), cmp.Compare(a.index, b.index))
	})
	return c, nil
}

func newReplica(i int, root uint64) replica {
	if i == 0 {
		return replica{}
	}
	rng := seed.New(root, seed.ForCopies, uint64(i))
	return replica{
		index: i, seed: seed.Mix(root, seed.ForCopies, uint64(i)), suffix: "-" + strconv.Itoa(i),
		shiftMs: rng.Int64N(spreadMs), permille: rng.Int64N(100),
	}
}

// Add takes the next event and emits all copies, of it and of earlier ones, that
// are due before anything later can be. What emit is given is valid until it
// returns. Memory holds the events of the last spread of time.
func (c *Copies) Add(m *simulator.Message, emit func(*simulator.Message) error) error {
	if len(c.replicas) == 1 {
		return emit(m)
	}
	p := c.fresh()
	if err := p.parse(m.Data); err != nil {
		return fmt.Errorf("copy an event of query %s: %w", m.QueryID, err)
	}
	c.arrived++
	p.message, p.number, p.next = *m, c.arrived, 0
	p.message.Data = nil
	p.dueMs = m.AtMs + c.replicas[0].shiftMs
	heap.Push(&c.pending, p)
	return c.drain(m.AtMs, emit)
}

// Flush emits what is left, at the end.
func (c *Copies) Flush(emit func(*simulator.Message) error) error {
	return c.drain(1<<62, emit)
}

func (c *Copies) fresh() *pending {
	if n := len(c.spare); n > 0 {
		p := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return p
	}
	return &pending{}
}

// drain emits what is due up to nowMs.
func (c *Copies) drain(nowMs int64, emit func(*simulator.Message) error) error {
	for len(c.pending) > 0 && c.pending[0].dueMs <= nowMs {
		p := c.pending[0]
		r := &c.replicas[p.next]
		if err := emit(c.render(p, r)); err != nil {
			return err
		}
		if p.next++; p.next < len(c.replicas) {
			p.dueMs = p.message.AtMs + c.replicas[p.next].shiftMs
			heap.Fix(&c.pending, 0)
			continue
		}
		heap.Pop(&c.pending)
		c.spare = append(c.spare, p)
	}
	return nil
}

// render makes the message of one copy, valid until the next call.
func (c *Copies) render(p *pending, r *replica) *simulator.Message {
	c.message = p.message
	if r.index == 0 {
		c.message.Query = p.message.Query * len(c.replicas)
		c.message.Data = p.data
		return &c.message
	}
	shorter := int64(0)
	if most := p.addBatch / 50; most > 0 {
		shorter = int64(seed.Mix(r.seed, p.number) % uint64(most+1))
	}
	c.buf = p.template.render(c.buf[:0], r, shorter)
	c.message.Data = c.buf
	c.message.AtMs += r.shiftMs
	c.message.Query = p.message.Query*len(c.replicas) + r.index
	c.message.QueryID = c.id(p.message.QueryID, r)
	return &c.message
}

// id returns the copy's query id; none for what is about no query.
func (c *Copies) id(original string, r *replica) string {
	if original == "" {
		return ""
	}
	key := copiedID{original, r.index}
	id, ok := c.ids[key]
	if !ok {
		id = string(r.appendID(nil, hash(original)))
		c.ids[key] = id
	}
	return id
}

// pendingHeap orders events by when their next copy is due, then by arrival.
type pendingHeap []*pending

func (h pendingHeap) Len() int { return len(h) }

func (h pendingHeap) Less(i, j int) bool {
	if h[i].dueMs != h[j].dueMs {
		return h[i].dueMs < h[j].dueMs
	}
	return h[i].number < h[j].number
}

func (h pendingHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *pendingHeap) Push(x any) { *h = append(*h, x.(*pending)) }

// Pop implements heap.Interface.
func (h *pendingHeap) Pop() any {
	old := *h
	p := old[len(old)-1]
	*h = old[:len(old)-1]
	return p
}
