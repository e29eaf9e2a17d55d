package decode

import (
	"strings"
	"sync"
)

// internShards spreads the lock of the string table; a power of two.
const internShards = 16

// interner gives equal strings the same memory. Each shard keeps two generations:
// when the young one is full it becomes the old one and the former old one is
// dropped, so that hostile names cannot grow the table and names in use stay.
type interner struct {
	shards [internShards]internShard
}

type internShard struct {
	mu         sync.RWMutex
	young, old map[string]string
	bytes, max int // of the young generation
}

func newInterner(maxBytes int) *interner {
	in := &interner{}
	for i := range in.shards {
		in.shards[i] = internShard{young: map[string]string{}, max: maxBytes / internShards / 2}
	}
	return in
}

// get returns b as a string that is shared with earlier equal ones.
func (in *interner) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	s := &in.shards[(int(b[len(b)-1])+int(b[len(b)/2])*7+len(b))%internShards]
	s.mu.RLock()
	str, ok := s.young[string(b)]
	s.mu.RUnlock()
	if ok {
		return str
	}
	return s.add(b)
}

// internOverhead is roughly what a map entry costs beside the string itself.
const internOverhead = 48

func (s *internShard) add(b []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if str, ok := s.young[string(b)]; ok {
		return str
	}
	str, ok := s.old[string(b)]
	if !ok {
		str = strings.Clone(string(b))
	}
	cost := len(str) + internOverhead
	if s.bytes+cost > s.max {
		s.old, s.young, s.bytes = s.young, map[string]string{}, 0
	}
	s.young[str] = str
	s.bytes += cost
	return str
}

// size counts the strings held.
func (in *interner) size() (n int) {
	for i := range in.shards {
		s := &in.shards[i]
		s.mu.RLock()
		n += len(s.young) + len(s.old)
		s.mu.RUnlock()
	}
	return n
}
