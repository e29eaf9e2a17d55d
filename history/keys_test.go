package history

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

// TestTheFormOfKeysAndValuesNeverChanges compares keys and values with those that
// lie on disks: another form needs another format version and a conversion.
func TestTheFormOfKeysAndValuesNeverChanges(t *testing.T) {
	datadriven.RunTest(t, "testdata/format", func(t *testing.T, d *datadriven.TestData) string {
		var n int64
		var name string
		if d.HasArg("n") {
			d.ScanArgs(t, "n", &n)
		}
		if d.HasArg("name") {
			d.ScanArgs(t, "name", &name)
		}
		return hex.EncodeToString(encodeForm(t, d.Cmd, n, name)) + "\n"
	})
}

func encodeForm(t *testing.T, what string, n int64, name string) []byte {
	t.Helper()
	switch what {
	case "raw":
		return rawKey{query: 7, atMs: n, seq: 300, position: 70_000}.append(nil)
	case "log":
		return logKey(uint64(n))
	case "entries":
		return appendEntries(nil, []entry{{1, n}, {300, n + 10_000}, {1, n - 5}})
	case "query":
		return queryKey(uint32(n))
	case "query-value":
		return appendQuery(nil, name, "orders")
	case "tally":
		return tallyKey(uint32(n), 7)
	case "offset":
		return offsetKey(name, int32(n))
	case "state":
		return stateKey("tracker", name)
	case "word":
		return wordKey(uint32(n))
	case "hour":
		return hourKey(hourPrefix(bucket(n, weekMs), "orders", "commit_sync"), n, name)
	case "meta":
		return metaKey(name)
	}
	t.Fatalf("unknown command %s", what)
	return nil
}

func TestKeysOfRecordsSortByHourQueryAndTime(t *testing.T) {
	keys := []rawKey{
		{1, event.Absent, 9, 0},
		{1, -5, 8, 0},
		{1, 0, 7, 0},
		{1, 5, 1, 0},
		{1, 5, 1, 1},
		{1, 5, 2, 0},
		{2, 3, 0, 0},
		{1, hourMs, 0, 0},
		{1, hourMs + 1, 0, 0},
		{2, hourMs, 0, 0},
		{1, t0, 0, 0},
		{1, math.MaxInt64, 0, 0},
	}
	encoded := make([][]byte, 0, len(keys))
	for _, k := range keys {
		encoded = append(encoded, k.append(nil))
		hour, got, err := parseRawKey(k.append(nil))
		if err != nil || got != k || hour != k.bucket() {
			t.Errorf("%+v became %+v: %v", k, got, err)
		}
	}
	if !slices.IsSortedFunc(encoded, bytes.Compare) {
		t.Error("keys are out of order")
	}
}

func TestKeysBehindAPrefix(t *testing.T) {
	for _, c := range []struct{ prefix, want string }{{"a", "b"}, {"a\xff", "b"}, {"\xff\xff", ""}, {"", ""}} {
		if got := string(after([]byte(c.prefix))); got != c.want {
			t.Errorf("behind %q comes %q, want %q", c.prefix, got, c.want)
		}
	}
}

func TestBrokenKeysAndValuesAreErrors(t *testing.T) {
	entries := appendEntries(nil, []entry{{1, t0}, {2, t0}})
	for name, err := range map[string]error{
		"entries cut":        second(parseEntries(entries[:len(entries)-1], nil)),
		"entries with more":  second(parseEntries(append(slices.Clone(entries), 0), nil)),
		"entries, too many":  second(parseEntries([]byte{0xff, 0xff, 0xff, 0xff, 0x0f}, nil)),
		"no entries":         second(parseEntries(nil, nil)),
		"query number":       second(parseEntries([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 0}, nil)),
		"log key":            second(parseLogKey([]byte("l1234567"))),
		"tally":              second(parseTally(nil)),
		"tally with more":    second(parseTally([]byte{1, 1})),
		"number":             second(parseUint([]byte("1234567"))),
		"hour":               checkHour([]byte("h1234\x00")),
		"hour without hour":  checkHour([]byte("h1234\x00\x01l\x00\x01s123")),
		"unknown space":      (&surveyor{r: &Report{}}).look([]byte("?"), nil),
		"empty key":          (&surveyor{r: &Report{}}).look(nil, nil),
		"raw key":            (&surveyor{r: &Report{}}).look([]byte("r"), nil),
		"raw key, odd hour":  (&surveyor{r: &Report{}}).look(append([]byte("r\x00\x00\x00\x09"), rawKey{1, 5, 1, 0}.append(nil)[5:]...), nil),
		"offset without end": (&surveyor{r: &Report{}}).look(offsetKey("t", 1), []byte("x")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestTheHoldIsTheOldestHourOfWhatIsLeft compares the few minima that are kept
// with a search through everything.
func TestTheHoldIsTheOldestHourOfWhatIsLeft(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	type record struct {
		seq  uint64
		hour uint32
	}
	var h hold
	var all []record
	for seq := uint64(1); seq < 500; seq++ {
		var entries []entry
		for range random.IntN(4) {
			hour := uint32(1000 + int(seq)/10 - random.IntN(30))
			entries = append(entries, entry{1, int64(hour) * hourMs})
			all = append(all, record{seq, hour})
		}
		h.add(seq, entries)
		if random.IntN(5) == 0 {
			upTo := seq - min(seq, uint64(random.IntN(20)))
			h.trim(upTo)
			all = slices.DeleteFunc(all, func(r record) bool { return r.seq <= upTo })
		}
		want := uint32(math.MaxUint32)
		for _, r := range all {
			want = min(want, r.hour)
		}
		got, ok := h.oldest()
		if ok != (len(all) > 0) || ok && got != want {
			t.Fatalf("step %d: oldest hour is %d (%v), want %d", seq, got, ok, want)
		}
	}
	if len(h.steps) > 60 {
		t.Errorf("%d minima are kept", len(h.steps))
	}
}

func TestVersionsOfAKeySortTogetherNewestFirst(t *testing.T) {
	keys := []string{"a", "a\x00", "a\x00\x00", "a\x00\xff", "a\x01", "aa", "b", "\x00", ""}
	var all []string
	for _, k := range keys {
		for _, seq := range []uint64{0, 1, 255, 256, math.MaxUint64} {
			all = append(all, string(versionKey([]byte(k), seq)))
		}
	}
	slices.Sort(all)
	var order []string
	for i, v := range all {
		key, err := parseVersionKey([]byte(v))
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 {
			order = append(order, string(key))
		}
		if last := order[len(order)-1]; string(key) != last {
			t.Errorf("versions of %q are among those of %q", key, last)
		}
		if i%5 > 0 && all[i-1] >= v {
			t.Error("versions are out of order")
		}
	}
	slices.Sort(keys)
	slices.Sort(order)
	if diff := cmp.Diff(keys, order); diff != "" {
		t.Error(diff)
	}
}

func TestAReportNamesFaultsAndBoundsThem(t *testing.T) {
	r := Report{Records: 2, FirstMs: t0, LastMs: t0 + 1000, Queries: 1}
	for i := range maxFaults + 5 {
		r.fault("fault %d", i)
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil || r.OK() {
		t.Error(err)
	}
	for _, want := range []string{"2 records of 1 queries, from 2026-05-28 20:26:40 to 2026-05-28 20:26:41 UTC", "fault: fault 49\n", "fault: 5 more\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q: %s", want, b.String())
		}
	}
	if strings.Contains(b.String(), fmt.Sprint("fault ", maxFaults)) {
		t.Error("too many faults are named")
	}
}
