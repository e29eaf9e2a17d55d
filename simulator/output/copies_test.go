package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
)

// copied returns what n copies of the events emit.
func copied(t testing.TB, n int, root uint64, all []*simulator.Message) (out []*simulator.Message) {
	t.Helper()
	c, err := NewCopies(n, root)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(m *simulator.Message) error {
		kept := *m
		kept.Data = bytes.Clone(m.Data)
		out = append(out, &kept)
		return nil
	}
	for _, m := range all {
		if err := c.Add(m, keep); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Flush(keep); err != nil {
		t.Fatal(err)
	}
	return out
}

var runs = []string{
	"3.4.4/agg-plain", "3.5.8/idle.envelope", "4.0.5/fail.envelope", "4.1.4/join-bounded",
	"4.3.0/dedupe-restart.envelope", "4.3.0/shared-checkpoint",
}

func TestCopiesAreQueriesOfTheirOwn(t *testing.T) {
	for _, run := range runs {
		t.Run(run, func(t *testing.T) {
			all := captured(t, run)
			const n = 25
			out := copied(t, n, 7, all)
			if len(out) != n*len(all) {
				t.Fatalf("%d events of %d", len(out), n*len(all))
			}
			byQuery := map[string]map[string]bool{} // query id: names
			perCopy := map[int]int{}
			names := map[string]bool{}
			for i, m := range out {
				if i > 0 && m.AtMs < out[i-1].AtMs {
					t.Fatalf("event %d comes %d ms too late", i, out[i-1].AtMs-m.AtMs)
				}
				ev := decoded(t, m.Data)
				if string(ev.Query.ID) != m.QueryID || ev.Kind != m.Kind {
					t.Fatalf("message of %s (%s) holds %s of %s", m.QueryID, m.Kind, ev.Kind, ev.Query.ID)
				}
				perCopy[m.Query%n]++
				if ev.Kind != event.KindProgress {
					continue
				}
				if byQuery[m.QueryID] == nil {
					byQuery[m.QueryID] = map[string]bool{}
				}
				byQuery[m.QueryID][ev.Query.Name] = true
				names[ev.Query.Name] = true
			}
			if len(byQuery) != n || len(names) != n {
				t.Errorf("%d queries with %d names", len(byQuery), len(names))
			}
			for id, names := range byQuery {
				if len(names) != 1 {
					t.Errorf("query %s has the names %v", id, names)
				}
			}
			for i, sent := range perCopy {
				if sent != len(all) {
					t.Errorf("copy %d sent %d of %d events", i, sent, len(all))
				}
			}
		})
	}
}

func TestTheFirstCopyIsTheOriginal(t *testing.T) {
	for _, run := range runs {
		all := captured(t, run)
		var first []string
		for _, m := range copied(t, 5, 1, all) {
			if m.Query == 0 {
				first = append(first, string(m.Data))
			}
		}
		check(t, first, all)
		check(t, texts(copied(t, 1, 1, all)), all)
	}
}

func texts(all []*simulator.Message) (out []string) {
	for _, m := range all {
		out = append(out, string(m.Data))
	}
	return out
}

func TestCopiesDependOnTheSeedAlone(t *testing.T) {
	all := captured(t, runs[1])
	if a, b := texts(copied(t, 9, 3, all)), texts(copied(t, 9, 3, all)); !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
	if a, b := texts(copied(t, 9, 3, all)), texts(copied(t, 9, 4, all)); slices.Equal(a, b) {
		t.Error("two seeds do not")
	}
	few, many := copied(t, 3, 3, all), copied(t, 9, 3, all)
	pick := func(out []*simulator.Message, n int) (data []string) {
		for _, m := range out {
			if m.Query%n == 2 {
				data = append(data, string(m.Data))
			}
		}
		return data
	}
	if !slices.Equal(pick(few, 3), pick(many, 9)) {
		t.Error("a copy is another one where there are more of them")
	}
}

// TestCopiesDifferInAFewThingsOnly compares each copy with its original, key by
// key.
func TestCopiesDifferInAFewThingsOnly(t *testing.T) {
	for _, run := range []string{"3.5.8/idle.envelope", "4.3.0/dedupe-restart.envelope", "4.1.4/join-bounded"} {
		all := captured(t, run)
		changed := map[string]bool{}
		for _, m := range copied(t, 4, 11, all) {
			if m.Query == 0 {
				continue
			}
			changes(t, m, all, changed)
		}
		allowed := []string{
			"addBatch", "triggerExecution", "batchDuration", "at", "avg", "id", "max", "min", "name",
			"numRowsTotal", "runId", "sender", "timestamp", "watermark",
		}
		for _, key := range slices.Sorted(maps.Keys(changed)) {
			if !slices.Contains(allowed, key) {
				t.Errorf("%s: %s differs", run, key)
			}
		}
		for _, key := range []string{"id", "runId", "timestamp", "addBatch", "numRowsTotal"} {
			if !changed[key] {
				t.Errorf("%s: %s never differs", run, key)
			}
		}
	}
}

// changes notes the keys in which a copy differs from its original, the one event
// of the same kind, batch and shift in time.
func changes(t *testing.T, m *simulator.Message, all []*simulator.Message, changed map[string]bool) {
	t.Helper()
	var got any
	if err := json.Unmarshal(m.Data, &got); err != nil {
		t.Fatalf("%v: %s", err, m.Data)
	}
	best, fewest := map[string]bool{}, 1<<30
	for _, o := range all {
		if o.Kind != m.Kind || o.Batch != m.Batch || m.AtMs < o.AtMs || m.AtMs >= o.AtMs+spreadMs {
			continue
		}
		var want any
		if err := json.Unmarshal(o.Data, &want); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		differ("", want, got, keys)
		if len(keys) < fewest {
			best, fewest = keys, len(keys)
		}
	}
	maps.Copy(changed, best)
}

func differ(key string, a, b any, keys map[string]bool) {
	switch a := a.(type) {
	case map[string]any:
		other, _ := b.(map[string]any)
		for k := range a {
			differ(k, a[k], other[k], keys)
		}
	case []any:
		other, _ := b.([]any)
		for i := range a {
			if i < len(other) {
				differ(key, a[i], other[i], keys)
			}
		}
	default:
		if !cmp.Equal(a, b) {
			keys[key] = true
		}
	}
}

func TestDurationsOfCopiesStayNested(t *testing.T) {
	for _, m := range copied(t, 20, 5, captured(t, "4.0.5/agg-restart")) {
		if m.Kind != event.KindProgress {
			continue
		}
		ev := decoded(t, m.Data)
		v := &ev.Batch.Values
		if sum := v[event.DurationTriggerExecution]; ev.Batch.UnaccountedMs() < 0 || v[event.DurationAddBatch] < 0 || v[event.BatchDuration] < sum {
			t.Fatalf("batch %d takes %v, its trigger %v, unaccounted %v", m.Batch, v[event.BatchDuration], sum, ev.Batch.UnaccountedMs())
		}
	}
}

func TestTheWatermarkThatIsNoneStays(t *testing.T) {
	all := captured(t, "3.4.4/agg-plain")[:1]
	for _, m := range copied(t, 3, 5, all) {
		if !bytes.Contains(m.Data, []byte(`"watermark":"1970-01-01T00:00:00.000Z"`)) {
			t.Errorf("moved: %s", m.Data)
		}
	}
}

func TestHeartbeatsAreCopiedWithTheirQueries(t *testing.T) {
	ids := map[string]bool{}
	beats := 0
	for _, m := range copied(t, 6, 5, captured(t, "4.3.0/dedupe-restart.envelope")) {
		if m.Kind == event.KindProgress {
			ids[m.QueryID] = true
			continue
		}
		if m.Kind != event.KindHeartbeat {
			continue
		}
		var beat struct {
			Sender string
			Event  struct{ Active []struct{ ID string } }
		}
		if err := json.Unmarshal(m.Data, &beat); err != nil {
			t.Fatal(err)
		}
		for _, a := range beat.Event.Active {
			beats++
			if len(ids) == 6 && !ids[a.ID] {
				t.Errorf("unknown query %s is active", a.ID)
			}
		}
	}
	if beats == 0 {
		t.Error("nothing is active in any heartbeat")
	}
}

func TestEventsThatCannotBeCopiedAreNamed(t *testing.T) {
	c, err := NewCopies(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "[]", `{"id"`, `{"id":"x"`, `{"id":"x"} `, `{"a":[{]}`, `{"stateOperators":[1]}`, `{"event":{"id":]}`} {
		m := &simulator.Message{QueryID: "q", Data: []byte(data)}
		err := c.Add(m, func(*simulator.Message) error { return nil })
		if err == nil || err.Error() != "copy an event of query q: not an event on one line" {
			t.Errorf("%q: %v", data, err)
		}
	}
	if _, err := NewCopies(0, 1); err == nil || err.Error() != "copies (0) must be at least 1" {
		t.Errorf("error %v", err)
	}
}

func TestAFailureToEmitStopsTheCopies(t *testing.T) {
	c, err := NewCopies(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	full := fmt.Errorf("full")
	if err := c.Add(captured(t, runs[0])[0], func(*simulator.Message) error { return full }); err != full {
		t.Errorf("error %v", err)
	}
}

func TestMemoryOfCopiesIsThatOfTheSpread(t *testing.T) {
	c, err := NewCopies(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	base := captured(t, "3.4.4/agg-plain")[3]
	for i := range int64(5000) {
		m := *base
		m.AtMs = i * 1000
		if err := c.Add(&m, func(*simulator.Message) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if n := len(c.pending) + len(c.spare); n > 12 {
			t.Fatalf("%d events are kept at one a second", n)
		}
	}
	if len(c.ids) != 9 {
		t.Errorf("%d ids are kept", len(c.ids))
	}
}

func FuzzTemplate(f *testing.F) {
	for _, run := range runs {
		all := captured(f, run)
		for _, m := range []*simulator.Message{all[0], all[len(all)/2], all[len(all)-1]} {
			f.Add(m.Data)
		}
	}
	f.Add([]byte(`{"id":"\"\\","name":null,"durationMs":{"addBatch":-5},"eventTime":{"x":"y"},"active":[{},{"id":1}]}`))
	f.Add([]byte(`{"stateOperators":[{"numRowsTotal":9e99}],"batchDuration":18446744073709551616}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var tp template
		if tp.parse(data) != nil || !json.Valid(data) {
			return
		}
		r := newReplica(3, 9)
		out := tp.render(nil, &r, 0)
		if !json.Valid(out) {
			t.Errorf("made of %q:\n%q", data, out)
		}
		same := replica{shiftMs: 0}
		if strings.Count(string(tp.render(nil, &same, 0)), ":") < strings.Count(string(data), ":")/2 {
			t.Errorf("too little is left of %q", data)
		}
	})
}
