package decode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// offsetMap writes partitions in the order given.
func offsetMap(order []int, at func(p int) int64) string {
	var w strings.Builder
	w.WriteString(`{"t":{`)
	for i, p := range order {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(&w, `"%d":%d`, p, at(p))
	}
	w.WriteString(`}}`)
	return w.String()
}

func TestPartitionsArePairedInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 11))
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	for _, n := range []int{1, 2, 7, 64, 500, 5000} {
		var backlog, read int64
		start, end, latest := make([]int64, n), make([]int64, n), make([]int64, n)
		for p := range n {
			start[p] = rng.Int64N(1 << 40)
			end[p] = start[p] + rng.Int64N(1000)
			latest[p] = end[p] + rng.Int64N(1000)
			read += end[p] - start[p]
			backlog += latest[p] - end[p]
		}
		for range 3 {
			body := fmt.Sprintf(`{"id":"q","runId":"%s","batchId":1,"sources":[{"startOffset":%s,"endOffset":%s,"latestOffset":%s}]}`, run(n),
				offsetMap(rng.Perm(n), func(p int) int64 { return start[p] }),
				offsetMap(rng.Perm(n), func(p int) int64 { return end[p] }),
				offsetMap(rng.Perm(n), func(p int) int64 { return latest[p] }))
			for _, pool := range []*Pool{plain, shaped} {
				s := decodeAll(pool, []byte(body))[0].Event.Batch.Sources[0]
				if s.Backlog != backlog || s.Read != read {
					t.Fatalf("%d partitions: backlog %d, read %d, want %d, %d", n, s.Backlog, s.Read, backlog, read)
				}
			}
		}
	}
}

func TestSourcesKeepTheirPartitionsApart(t *testing.T) {
	pool := NewPool(Limits{})
	body := []byte(`{"id":"q","runId":"` + run(1) + `","batchId":1,"sources":[` +
		`{"startOffset":{"t":{"0":1}},"endOffset":{"t":{"0":3}},"latestOffset":{"t":{"0":10}}},` +
		`{"description":"none"},` +
		`{"startOffset":{"t":{"0":100}},"endOffset":{"t":{"0":150}},"latestOffset":{"t":{"0":151}}},` +
		`{"startOffset":5,"endOffset":6,"latestOffset":8}]}`)
	for range 3 {
		s := decodeAll(pool, body)[0].Event.Batch.Sources
		for i, want := range [][2]int64{{7, 2}, {event.Absent, event.Absent}, {1, 50}, {2, 1}} {
			if s[i].Backlog != want[0] || s[i].Read != want[1] {
				t.Errorf("source %d: backlog %d, read %d, want %v", i, s[i].Backlog, s[i].Read, want)
			}
		}
	}
}

func TestSumsOfOffsetsDoNotWrapAround(t *testing.T) {
	for _, c := range []struct{ sum, v, want int64 }{
		{event.Absent, 5, 5},
		{1, 2, 3},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MaxInt64 - 5, 10, math.MaxInt64},
		{-math.MaxInt64, -10, -math.MaxInt64},
		{5, -7, -2},
	} {
		if got := add(c.sum, c.v); got != c.want {
			t.Errorf("add(%d, %d) = %d, want %d", c.sum, c.v, got, c.want)
		}
	}
}

func TestFlatTextIsNeverAnOffsetMap(t *testing.T) {
	for raw, want := range map[string]bool{
		`{\"seqNum\":1,\"x\":{}}`: true, `{\"a\":\"b\"}`: true, `{\"a\":null}`: true,
		`{\"t\":{\"0\":1}}`: false, `{\"t\": {\"0\":1}}`: false, `{}`: false, ``: false, `{'t': 1}`: false, `{\"t`: false, `{\"t\"`: false,
		`{\"t\":`: false, `None`: false, `{\"t\\\":1`: false, `{\"t\":\n{\"0\":1}}`: false,
	} {
		if got := flatText([]byte(raw)); got != want {
			t.Errorf("flatText(%s) = %v, want %v", raw, got, want)
		}
	}
}
