package track

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/stategauge/stategauge/event"
)

const (
	// senderWindow is how many of a sender's newest sequence numbers are judged
	// one by one. Shards see them out of order, by as much as a step holds.
	senderWindow = 1024
	senderWords  = senderWindow / 64
	// maxSenders bounds the table; the one silent longest makes room.
	maxSenders = 4096
	// maxSeq and maxSeqStep are the largest number and step that are believed.
	maxSeq     = 1 << 62
	maxSeqStep = 1 << 20
)

// Senders follows the running numbers that senders give to what they send and
// tells how much of it never arrived. It is safe for concurrent use; the shards
// of a process share one, because a sender's events are spread over all of them.
type Senders struct {
	mu     sync.Mutex
	byName map[string]*sender
}

type sender struct {
	numbered  bool  // a running number was seen
	low, high int64 // numbers up to low are judged; high is the newest
	seen      [senderWords]uint64
	gone      int64 // numbers that left the window without having come
	dropped   int64 // what the sender itself says it dropped, highest word
	dropBase  int64 // the same when it was first heard of
	received  int64
	lastMs    int64
}

// SenderStatus is what is known of one sender.
type SenderStatus struct {
	Sender string
	// Received counts events with a running number, repeats left out. Lost counts
	// those that never came: holes in the numbers, or what the sender says that it
	// dropped since we first heard of it, whichever is more.
	Received, Lost int64
	LastSeenMs     int64 // our clock, Unix milliseconds
}

// NewSenders returns an empty table.
func NewSenders() *Senders { return &Senders{byName: map[string]*sender{}} }

// Observe takes the running number of env in and returns a measure of its
// sender's losses so far, holes that may still be filled included: it grows when
// something was lost. 0 for a nil or unnumbered envelope.
func (s *Senders) Observe(env *event.Envelope, nowMs int64) int64 {
	if env == nil || env.Sender == "" {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.byName[env.Sender]
	if p == nil {
		p = s.add(env)
	}
	p.lastMs = nowMs
	if env.Dropped >= 0 && env.Dropped <= maxSeq {
		p.dropped = max(p.dropped, env.Dropped)
	}
	if env.Seq >= 0 && env.Seq <= maxSeq {
		p.note(env.Seq)
	}
	return p.holes() + p.dropped - p.dropBase
}

func (s *Senders) add(env *event.Envelope) *sender {
	if len(s.byName) >= maxSenders {
		s.evict()
	}
	p := &sender{}
	if env.Dropped >= 0 && env.Dropped <= maxSeq {
		p.dropped, p.dropBase = env.Dropped, env.Dropped
	}
	s.byName[env.Sender] = p
	return p
}

func (s *Senders) evict() {
	var name string
	oldest := int64(1<<63 - 1)
	for n, p := range s.byName {
		if p.lastMs < oldest || p.lastMs == oldest && n < name {
			name, oldest = n, p.lastMs
		}
	}
	delete(s.byName, name)
}

// note marks a number as arrived. The first one, and a step too large to be a
// loss, start anew.
func (p *sender) note(seq int64) {
	if !p.numbered || seq-p.high > maxSeqStep {
		p.low, p.high, p.seen = seq-1, seq-1, [senderWords]uint64{}
		p.numbered = true
	}
	if seq <= p.low {
		return
	}
	for seq-p.low > senderWindow {
		p.shift(seq)
	}
	p.high = max(p.high, seq)
	w, b := p.slot(seq)
	if p.seen[w]&b == 0 {
		p.seen[w] |= b
		p.received++
	}
}

func (p *sender) slot(seq int64) (int, uint64) {
	i := uint64(seq) % senderWindow
	return int(i / 64), 1 << (i % 64)
}

// shift moves the low end up to make room for seq, one number at a time while
// there is something to judge and in one go beyond.
func (p *sender) shift(seq int64) {
	if p.low >= p.high {
		p.gone += seq - senderWindow - p.low
		p.low, p.seen = seq-senderWindow, [senderWords]uint64{}
		return
	}
	p.low++
	w, b := p.slot(p.low)
	if p.seen[w]&b == 0 {
		p.gone++
	}
	p.seen[w] &^= b
}

// holes counts the numbers that did not come.
func (p *sender) holes() int64 {
	n := p.gone + p.high - p.low
	for _, w := range p.seen {
		n -= int64(bits.OnesCount64(w))
	}
	return n
}

// lost takes the larger figure, because a sender may or may not number what it
// drops.
func (p *sender) lost() int64 { return max(p.holes(), p.dropped-p.dropBase) }

// Statuses appends what is known of every sender to out, sorted by name.
func (s *Senders) Statuses(out []SenderStatus) []SenderStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(out)
	for name, p := range s.byName {
		out = append(out, SenderStatus{Sender: name, Received: p.received, Lost: p.lost(), LastSeenMs: p.lastMs})
	}
	slices.SortFunc(out[from:], func(a, b SenderStatus) int {
		if a.Sender < b.Sender {
			return -1
		}
		return 1
	})
	return out
}
