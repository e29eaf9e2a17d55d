package kafkasource

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/segmentio/kafka-go"
)

// claim is what a member says of itself when it joins: the partitions whose windows
// it has filled, and the generation that it read them in.
type claim struct {
	Generation int32              `json:"generation"`
	Partitions map[string][]int32 `json:"partitions"` // by topic
}

// stickyBalancer shares partitions out evenly and leaves them where they are as far
// as that goes, because whoever takes one over has to read its history again. The
// balancers of kafka-go follow the order in which a broker lists the partitions,
// which is a different one each time, and so move most of them at every rebalance.
//
// It is the protocol that the group prefers; a group with members that do not know
// it, such as those of another version, uses one of kafka-go's.
type stickyBalancer struct {
	own func() claim // of this member
}

// maxClaim bounds what is believed of another member's claim.
const maxClaim = 1 << 20

// ProtocolName is what the group compares; a format of claims that others cannot
// read would need another name.
func (b stickyBalancer) ProtocolName() string { return "stategauge-sticky" }

// UserData is the own claim, for whoever leads the group.
func (b stickyBalancer) UserData() ([]byte, error) { return json.Marshal(b.own()) }

// AssignGroups gives every partition to a member that subscribes to its topic.
// Equal input gives equal output, whatever its order.
func (b stickyBalancer) AssignGroups(members []kafka.GroupMember, partitions []kafka.Partition) kafka.GroupMemberAssignments {
	return newSharing(members, partitions).result()
}

// seat is one member while partitions are shared out.
type seat struct {
	id     string
	topics map[string]bool
	claim  claim
	has    []partition // sorted
}

// sharing is one assignment in the making.
type sharing struct {
	seats []*seat // by member id
}

func newSharing(members []kafka.GroupMember, partitions []kafka.Partition) *sharing {
	s := &sharing{}
	for _, m := range members {
		x := &seat{id: m.ID, topics: map[string]bool{}, claim: readClaim(m.UserData)}
		for _, t := range m.Topics {
			x.topics[t] = true
		}
		s.seats = append(s.seats, x)
	}
	slices.SortFunc(s.seats, func(a, b *seat) int { return cmp.Compare(a.id, b.id) })
	all := map[partition]bool{}
	for _, p := range partitions {
		all[partition{p.Topic, int32(p.ID)}] = true
	}
	order := slices.SortedFunc(maps.Keys(all), byName)
	for _, p := range s.claimed(all, order) {
		s.give(p)
	}
	s.even()
	return s
}

func byName(a, b partition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.id, b.id))
}

// readClaim returns an empty claim for what cannot be read.
func readClaim(data []byte) claim {
	var c claim
	if len(data) > maxClaim || json.Unmarshal(data, &c) != nil {
		return claim{}
	}
	return c
}

// claimed gives partitions to those who read them last, and returns the others. Of
// two members the one of the later generation is right: the other missed one.
func (s *sharing) claimed(all map[partition]bool, order []partition) (left []partition) {
	owner := map[partition]*seat{}
	for _, x := range s.seats {
		for topic, ids := range x.claim.Partitions {
			for _, id := range ids {
				p := partition{topic, id}
				if old := owner[p]; all[p] && x.topics[topic] && (old == nil || x.claim.Generation > old.claim.Generation) {
					owner[p] = x
				}
			}
		}
	}
	for _, p := range order {
		if x := owner[p]; x != nil {
			x.has = append(x.has, p)
			continue
		}
		left = append(left, p)
	}
	return left
}

// give hands a partition to the member with the fewest; to nobody if none wants it.
func (s *sharing) give(p partition) {
	if x := s.poorest(p.topic); x != nil {
		x.has = append(x.has, p)
	}
}

func (s *sharing) poorest(topic string) (least *seat) {
	for _, x := range s.seats {
		if x.topics[topic] && (least == nil || len(x.has) < len(least.has)) {
			least = x
		}
	}
	return least
}

// even moves partitions until no move makes the shares more equal. Each move does,
// so it comes to an end.
func (s *sharing) even() {
	for _, x := range s.seats {
		slices.SortFunc(x.has, byName)
	}
	for s.move() {
		continue
	}
}

// move takes one partition from the member with the most that has one which a much
// poorer member can take.
func (s *sharing) move() bool {
	rich := slices.Clone(s.seats)
	slices.SortStableFunc(rich, func(a, b *seat) int { return cmp.Compare(len(b.has), len(a.has)) })
	for _, x := range rich {
		for i := len(x.has) - 1; i >= 0; i-- {
			if to := s.poorest(x.has[i].topic); to != nil && len(to.has)+1 < len(x.has) {
				to.has = append(to.has, x.has[i])
				x.has = slices.Delete(x.has, i, i+1)
				return true
			}
		}
	}
	return false
}

func (s *sharing) result() kafka.GroupMemberAssignments {
	out := kafka.GroupMemberAssignments{}
	for _, x := range s.seats {
		topics := map[string][]int{}
		for _, p := range x.has {
			topics[p.topic] = append(topics[p.topic], int(p.id))
		}
		for _, ids := range topics {
			slices.Sort(ids)
		}
		out[x.id] = topics
	}
	return out
}

// claimed is what this process says of itself when it joins.
func (s *Source) claimed() claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := claim{Partitions: map[string][]int32{}}
	for p, l := range s.left {
		c.Generation = l.generation
		c.Partitions[p.topic] = append(c.Partitions[p.topic], p.id)
	}
	return c
}
