package kafkasource

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
)

// TestBalance shares partitions out. "topics" says how many partitions a topic has;
// "share" has a line per member: its name, "generation=", the topics it subscribes
// to, and the partitions that it claims, as topic/id or topic/from-to. What it
// answers is what the next "share" with "again" claims.
func TestBalance(t *testing.T) {
	counts := map[string]int{}
	last := map[string]claim{}
	generation := int32(0)
	datadriven.RunTest(t, "testdata/balance.txt", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "topics":
			clear(counts)
			for _, word := range strings.Fields(d.Input) {
				name, n, _ := strings.Cut(word, "=")
				counts[name] = number(t, n)
			}
			return ""
		case "share":
			var members []kafka.GroupMember
			for line := range strings.Lines(d.Input) {
				members = append(members, parseMember(t, line, d.HasArg("again"), last))
			}
			out := stickyBalancer{}.AssignGroups(members, listed(counts))
			generation++
			moved := 0
			clear(last)
			for id, topics := range out {
				last[id] = claimOf(generation, topics)
			}
			for _, m := range members {
				moved += newTo(readClaim(m.UserData), out[m.ID])
			}
			return fmt.Sprintf("%snew to their members: %d\n", sharesText(out), moved)
		}
		d.Fatalf(t, "unknown command %q", d.Cmd)
		return ""
	})
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func parseMember(t *testing.T, line string, again bool, last map[string]claim) kafka.GroupMember {
	words := strings.Fields(line)
	m := kafka.GroupMember{ID: words[0]}
	c := claim{Generation: 1, Partitions: map[string][]int32{}}
	for _, w := range words[1:] {
		if g, ok := strings.CutPrefix(w, "generation="); ok {
			c.Generation = int32(number(t, g))
			continue
		}
		if raw, ok := strings.CutPrefix(w, "raw="); ok {
			m.UserData = []byte(raw)
			continue
		}
		topic, ids, claimed := strings.Cut(w, "/")
		if !claimed {
			m.Topics = append(m.Topics, topic)
			continue
		}
		from, to, _ := strings.Cut(ids, "-")
		if to == "" {
			to = from
		}
		for id := number(t, from); id <= number(t, to); id++ {
			c.Partitions[topic] = append(c.Partitions[topic], int32(id))
		}
	}
	if again {
		c = last[m.ID]
	}
	if m.UserData == nil {
		m.UserData, _ = json.Marshal(c)
	}
	return m
}

// listed lists partitions in the disorder of a broker's answer.
func listed(counts map[string]int) []kafka.Partition {
	var out []kafka.Partition
	for topic, n := range counts {
		for id := range n {
			out = append(out, kafka.Partition{Topic: topic, ID: id})
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func claimOf(generation int32, topics map[string][]int) claim {
	c := claim{Generation: generation, Partitions: map[string][]int32{}}
	for topic, ids := range topics {
		for _, id := range ids {
			c.Partitions[topic] = append(c.Partitions[topic], int32(id))
		}
	}
	return c
}

// newTo counts the partitions that a member has not claimed.
func newTo(c claim, topics map[string][]int) int {
	n := 0
	for topic, ids := range topics {
		for _, id := range ids {
			if !slices.Contains(c.Partitions[topic], int32(id)) {
				n++
			}
		}
	}
	return n
}

func sharesText(out kafka.GroupMemberAssignments) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(out)) {
		fmt.Fprintf(&b, "%s:", id)
		for _, topic := range slices.Sorted(maps.Keys(out[id])) {
			fmt.Fprintf(&b, " %s%v", topic, out[id][topic])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestBalanceIsEvenCompleteAndSticky lets members come and go at random and checks
// what must hold after each change.
func TestBalanceIsEvenCompleteAndSticky(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for range 200 {
		counts := map[string]int{"a": rng.IntN(40), "b": rng.IntN(8)}
		total := counts["a"] + counts["b"]
		var members []kafka.GroupMember
		for generation := range int32(12) {
			left := 0
			if n := rng.IntN(3); len(members) > 1 && n == 0 {
				i := rng.IntN(len(members))
				c := readClaim(members[i].UserData)
				left = len(c.Partitions["a"]) + len(c.Partitions["b"])
				members = slices.Delete(members, i, i+1)
			} else {
				members = append(members, kafka.GroupMember{ID: fmt.Sprintf("m%d", rng.IntN(1e6)), Topics: []string{"a", "b"}})
			}
			out := stickyBalancer{}.AssignGroups(members, listed(counts))
			rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
			if diff := cmp.Diff(out, stickyBalancer{}.AssignGroups(members, listed(counts))); diff != "" {
				t.Fatalf("another order gives another outcome:\n%s", diff)
			}
			seen, moved := 0, 0
			for i := range members {
				m := &members[i]
				has := len(out[m.ID]["a"]) + len(out[m.ID]["b"])
				if has < total/len(members) || has > (total+len(members)-1)/len(members) {
					t.Fatalf("%d of %d partitions for one of %d members", has, total, len(members))
				}
				seen += has
				moved += newTo(readClaim(m.UserData), out[m.ID])
				m.UserData, _ = json.Marshal(claimOf(generation, out[m.ID]))
			}
			if seen != total {
				t.Fatalf("%d partitions given of %d", seen, total)
			}
			// What a member left behind must move, and what one that is new gets.
			if most := left + total/len(members) + 1; generation > 0 && moved > most {
				t.Fatalf("%d partitions moved, expected %d at most", moved, most)
			}
		}
	}
}

func FuzzClaims(f *testing.F) {
	f.Add([]byte(`{"generation":3,"partitions":{"t":[0,1,2]}}`), []byte(`{"generation":3,"partitions":{"t":[2,3]}}`))
	f.Add([]byte(`{"partitions":{"t":[-1,99,2147483647],"u":[0]}}`), []byte(`{`))
	f.Add([]byte(`{"generation":-9,"partitions":{"t":[1,1,1]}}`), []byte(nil))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		out := stickyBalancer{}.AssignGroups([]kafka.GroupMember{
			{ID: "one", Topics: []string{"t"}, UserData: one}, {ID: "two", Topics: []string{"t"}, UserData: two},
		}, listed(map[string]int{"t": 5}))
		all := slices.Concat(out["one"]["t"], out["two"]["t"])
		slices.Sort(all)
		if !slices.Equal(all, []int{0, 1, 2, 3, 4}) || min(len(out["one"]["t"]), len(out["two"]["t"])) != 2 {
			t.Fatalf("shared out as %v", out)
		}
	})
}
