package record

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

func named(name string) *event.Update {
	return &event.Update{Event: &event.Event{Kind: event.KindStarted, Query: event.QueryRef{ID: "id", Name: name}}}
}

func TestWordsArePendingUntilTheyAreStored(t *testing.T) {
	d := NewDictionary(0)
	Append(nil, named("orders"), d)
	first := d.Pending()
	if want := []Entry{{1, "id"}, {2, "orders"}}; !slices.Equal(first, want) {
		t.Fatalf("pending %v, want %v", first, want)
	}
	if again := d.Pending(); !slices.Equal(again, first) {
		t.Errorf("a write that failed would lose words: pending %v, then %v", first, again)
	}
	Append(nil, named("payments"), d)
	d.Stored(first)
	if got, want := d.Pending(), []Entry{{3, "payments"}}; !slices.Equal(got, want) {
		t.Errorf("pending %v, want %v", got, want)
	}
	d.Stored(d.Pending())
	d.Stored(first) // a report that comes late takes nothing back
	d.Stored(nil)
	Append(nil, named("orders"), d)
	if got := d.Pending(); len(got) != 0 {
		t.Errorf("known words are pending again: %v", got)
	}
}

func TestLoadedWordsReadOldRecordsAndKeepTheirIds(t *testing.T) {
	d := NewDictionary(0)
	old := Append(nil, named("orders"), d)
	loaded := NewDictionary(0)
	if err := loaded.Load(d.Pending()); err != nil {
		t.Fatal(err)
	}
	if got := loaded.Pending(); len(got) != 0 {
		t.Errorf("stored words are pending: %v", got)
	}
	var u event.Update
	if err := Decode(old, loaded, &u); err != nil || u.Event.Query.Name != "orders" {
		t.Errorf("read %v, error %v", u.Event, err)
	}
	if again := Append(nil, named("orders"), loaded); !slices.Equal(again, old) {
		t.Errorf("the same update is % x, was % x", again, old)
	}
	Append(nil, named("payments"), loaded)
	if got, want := loaded.Pending(), []Entry{{3, "payments"}}; !slices.Equal(got, want) {
		t.Errorf("pending %v, want %v", got, want)
	}
}

func TestWordsMayBeLoadedInParts(t *testing.T) {
	d := NewDictionary(0)
	for _, part := range [][]Entry{{{3, "c"}, {1, "a"}}, {{2, "b"}}, nil, {{1, "a"}}} {
		if err := d.Load(part); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[uint64]string{1: "a", 2: "b", 3: "c"} {
		if got, ok := d.text(id); !ok || got != want {
			t.Errorf("word %d is %q", id, got)
		}
	}
	if d.Len() != 3 || len(d.Pending()) != 0 {
		t.Errorf("%d words, %v pending", d.Len(), d.Pending())
	}
}

func TestImpossibleWordsAreRefusedAndNothingIsTaken(t *testing.T) {
	for want, bad := range map[string][]Entry{
		"word 0: id must be":         {{5, "fine"}, {0, "x"}},
		"word 1048577: id must be":   {{5, "fine"}, {maxID + 1, "x"}},
		"word 4: text of 0 bytes":    {{5, "fine"}, {4, ""}},
		"word 4: text of 4097 bytes": {{5, "fine"}, {4, strings.Repeat("x", MaxWordBytes+1)}},
		`word 1: stands for "a"`:     {{5, "fine"}, {1, "b"}},
		`word 6: stands for "x" and`: {{6, "x"}, {6, "y"}},
	} {
		d := NewDictionary(0)
		if err := d.Load([]Entry{{1, "a"}}); err != nil {
			t.Fatal(err)
		}
		if err := d.Load(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if d.Len() != 1 {
			t.Errorf("%q: %d words are left, want 1", want, d.Len())
		}
	}
	d := NewDictionary(0)
	Append(nil, named("new"), d)
	if err := d.Load([]Entry{{1, "other"}}); err == nil {
		t.Error("stored words were loaded over new ones, which would give ids twice")
	}
}

func TestARecordWithoutItsWordSaysWhich(t *testing.T) {
	d := NewDictionary(0)
	b := Append(nil, named("orders"), d)
	partly := NewDictionary(0)
	if err := partly.Load([]Entry{{1, "id"}, {7, "else"}}); err != nil {
		t.Fatal(err)
	}
	err := Decode(b, partly, &event.Update{})
	if err == nil || !strings.Contains(err.Error(), "word 2 is not in the dictionary") {
		t.Errorf("error %v", err)
	}
}

func TestAFullDictionaryMakesRecordsLargerAndLosesNothing(t *testing.T) {
	d := NewDictionary(50)
	for i := range 200 {
		carried(t, named(fmt.Sprint("query ", i)), d, &event.Update{})
	}
	if d.Len() != 50 || !d.Full() {
		t.Errorf("%d words, full %v", d.Len(), d.Full())
	}
	small, large := Append(nil, named("query 1"), d), Append(nil, named("query 190"), d)
	if len(large) <= len(small) {
		t.Errorf("%d bytes with a word, %d without", len(small), len(large))
	}
	carried(t, madeUpdate(1), d, &event.Update{}) // its sets of columns find no place either
}

func TestWordsOfAFullTextBudgetGoIntoTheRecord(t *testing.T) {
	d := NewDictionary(0)
	for i := range MaxTextBytes/MaxWordBytes + 9 {
		long := fmt.Sprintf("%06d%s", i, strings.Repeat("x", MaxWordBytes-6))
		Append(nil, named(long), d)
	}
	d.mu.Lock()
	bytes := d.bytes
	d.mu.Unlock()
	if bytes > MaxTextBytes || d.Len() > MaxTextBytes/MaxWordBytes {
		t.Errorf("%d words of %d bytes", d.Len(), bytes)
	}
	carried(t, named(strings.Repeat("y", MaxWordBytes)), d, &event.Update{})
}

func TestLongStringsAreNoWords(t *testing.T) {
	d := NewDictionary(0)
	long := strings.Repeat("x", MaxWordBytes+1)
	carried(t, named(long), d, &event.Update{})
	for _, e := range d.Pending() {
		if e.Text == long {
			t.Error("the dictionary took it")
		}
	}
}

func TestStringsOfOneRunAreNoWords(t *testing.T) {
	d := NewDictionary(0)
	u := cloned(madeUpdate(1))
	u.Event.Failure = &event.Failure{Class: "CLASS", Message: "once only"}
	u.Event.JobTags = []string{"tag-1"}
	u.Event.Envelope = &event.Envelope{Sender: "sender-1", App: event.App{ID: "app-1"}}
	Append(nil, u, d)
	n := d.Len()
	u.Event.Run, u.Event.Batch.Run, u.Event.Failure.Message, u.Event.JobTags[0] = "run-2", "run-3", "another", "tag-2"
	u.Event.Envelope.Sender, u.Event.Envelope.App.ID = "sender-2", "app-2"
	Append(nil, u, d)
	if d.Len() != n {
		t.Errorf("a new run brought words: %v", d.Pending()[n:])
	}
}

// Each goroutine meets the same strings in another order; every record must be
// readable, and no string may have two ids.
func TestGoroutinesShareOneDictionary(t *testing.T) {
	const goroutines, words = 8, 3000
	d := NewDictionary(0)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			var x Decoder
			for i := range words {
				name := fmt.Sprint("query ", (i*(2*g+1))%words)
				u, err := x.Decode(Append(nil, named(name), d), d)
				if err != nil || u.Event.Query.Name != name {
					t.Errorf("%q came back with error %v", name, err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, e := range d.Pending() {
		if seen[e.Text] {
			t.Errorf("%q has two ids", e.Text)
		}
		seen[e.Text] = true
	}
	if len(seen) != words+1 {
		t.Errorf("%d words, want %d", len(seen), words+1)
	}
}

// Pending is asked for after the last record of a step was encoded, so it covers
// every word of these records, whichever goroutine met it.
func TestPendingCoversTheRecordsEncodedBeforeIt(t *testing.T) {
	d := NewDictionary(0)
	disk := NewDictionary(0)
	for step := range 20 {
		var wg sync.WaitGroup
		records := make([][]byte, 4)
		for g := range records {
			wg.Go(func() { records[g] = Append(nil, named(fmt.Sprint("query ", step*(g%2))), d) })
		}
		wg.Wait()
		pending := d.Pending()
		if err := disk.Load(pending); err != nil {
			t.Fatal(err)
		}
		d.Stored(pending)
		for _, b := range records {
			if err := Decode(b, disk, &event.Update{}); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
	}
}

// Records are read by query and time, so none may need another one.
func TestRecordsAreReadInAnyOrder(t *testing.T) {
	updates, d := benchUpdates(), NewDictionary(0)
	records := encoded(updates, d)
	fresh := NewDictionary(0)
	if err := fresh.Load(d.Pending()); err != nil {
		t.Fatal(err)
	}
	var x Decoder
	for i := len(records) - 1; i >= 0; i -= 3 {
		u, err := x.Decode(records[i], fresh)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(updates[i], u, bitwise); diff != "" {
			t.Fatalf("record %d (-in +out):\n%s", i, diff)
		}
	}
}
