package kafkasource

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// TestTopology feeds looks to a topology. A look has a line per topic: its name and
// the ends of its partitions' logs, "?" where one is not known, "missing" or
// "error" for the topic as a whole.
func TestTopology(t *testing.T) {
	var topo *topology
	datadriven.RunTest(t, "testdata/topology.txt", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "topics":
			topo = newTopology(strings.Fields(d.Input))
			return ""
		case "commit": // of every partition
			clear(topo.fresh)
			return ""
		case "look":
			changed := topo.observe(parseLook(t, d.Input))
			return fmt.Sprintf("changed=%v existing=%v fresh=%s", changed, topo.existing(), freshText(topo))
		}
		d.Fatalf(t, "unknown command %q", d.Cmd)
		return ""
	})
}

func parseLook(t *testing.T, text string) map[string]topicLook {
	out := map[string]topicLook{}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		var look topicLook
		for _, w := range words[1:] {
			switch w {
			case "missing":
				look.err = errUnknownTopic
			case "error":
				look.err = errors.New("test error")
			case "?":
				look.places = append(look.places, place{err: errors.New("no leader")})
			default:
				end, err := strconv.ParseInt(w, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				look.places = append(look.places, place{last: end})
			}
		}
		out[words[0]] = look
	}
	return out
}

func freshText(topo *topology) string {
	var out []string
	for p, f := range topo.fresh {
		out = append(out, p.String()+map[freshness]string{newborn: ":newborn", reborn: ":reborn"}[f])
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}

func TestLimiterLetsThroughSoManyLinesAMinute(t *testing.T) {
	l := limiter{perMinute: 3}
	at := time.Unix(1000, 0)
	written := 0
	for i := range 100 {
		if ok, _ := l.allow(at.Add(time.Duration(i) * time.Second / 2)); ok {
			written++
		}
	}
	if written != 3 {
		t.Errorf("%d lines in the first minute", written)
	}
	ok, dropped := l.allow(at.Add(time.Minute))
	if !ok || dropped != 97 {
		t.Errorf("next minute: %v, %d left out before it, expected 97", ok, dropped)
	}
	if ok, dropped = l.allow(at.Add(time.Minute)); !ok || dropped != 0 {
		t.Errorf("the line after: %v, %d left out", ok, dropped)
	}
	if ok, _ = l.allow(at.Add(-time.Hour)); !ok {
		t.Error("a clock that is set back must not silence the log")
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	var b backoff
	var got []time.Duration
	for range 8 {
		got = append(got, b.next())
	}
	if got[0] != backoffFirst || got[1] != 2*backoffFirst || got[7] != backoffMost {
		t.Errorf("backoff is %v", got)
	}
	b.reset()
	if b.next() != backoffFirst {
		t.Error("reset does not start over")
	}
}
