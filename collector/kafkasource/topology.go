package kafkasource

import (
	"errors"
	"slices"
)

// topology remembers which of the configured topics exist and how long their logs
// were, so that it can tell what changed. It is pure: looks go in, changes come
// out.
type topology struct {
	topics []string
	looked bool           // there was a look before
	counts map[string]int // partitions of the topics that exist
	seen   map[string]int // most partitions a topic was ever seen with
	misses map[string]int // looks in a row that did not find a topic that existed
	ends   map[partition]int64
	fresh  map[partition]freshness // until the first commit
}

// freshness says how a partition that turned up while we ran is to be started.
type freshness uint8

const (
	// newborn: it was not there before, so all of it is news.
	newborn freshness = iota + 1
	// reborn: its log is shorter than it was, so it is another one, and committed
	// offsets are those of the old.
	reborn
)

// missesToGo is how many looks in a row must miss a topic before it counts as
// gone. A broker that has just started may not know it yet.
const missesToGo = 2

func newTopology(topics []string) *topology {
	return &topology{
		topics: topics, counts: map[string]int{}, seen: map[string]int{}, misses: map[string]int{},
		ends: map[partition]int64{}, fresh: map[partition]freshness{},
	}
}

// observe takes in a look and reports whether the group must be joined anew.
func (t *topology) observe(looks map[string]topicLook) (changed bool) {
	for _, topic := range t.topics {
		look, ok := looks[topic]
		switch {
		case ok && look.err == nil:
			changed = t.found(topic, look.places) || changed
		case ok && errors.Is(look.err, errUnknownTopic):
			changed = t.missed(topic) || changed
		}
	}
	t.looked = true
	return changed
}

func (t *topology) found(topic string, places []place) (changed bool) {
	back := t.misses[topic] > 0
	t.misses[topic] = 0
	for id, at := range places {
		p := partition{topic, int32(id)}
		if t.looked && (id >= t.seen[topic] || back) {
			t.fresh[p] = max(t.fresh[p], newborn)
		}
		if at.err != nil {
			continue
		}
		if end, ok := t.ends[p]; ok && back && at.last < end {
			t.fresh[p] = reborn
		}
		t.ends[p] = at.last
	}
	t.seen[topic] = max(t.seen[topic], len(places))
	changed = t.counts[topic] != len(places)
	t.counts[topic] = len(places)
	return changed
}

func (t *topology) missed(topic string) (changed bool) {
	t.misses[topic]++
	if t.counts[topic] == 0 || t.misses[topic] < missesToGo {
		return false
	}
	delete(t.counts, topic)
	return true
}

// existing returns the topics that can be joined, sorted.
func (t *topology) existing() []string {
	var out []string
	for topic, n := range t.counts {
		if n > 0 {
			out = append(out, topic)
		}
	}
	slices.Sort(out)
	return out
}
