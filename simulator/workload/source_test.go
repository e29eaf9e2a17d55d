package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const startMs = 1_772_409_600_000 // 2026-03-02T00:00:00Z

var kinds = []string{"kafka", "rate", "files"}

// orders is an ordinary input with something of everything.
func orders() Config {
	return Config{
		Seed: 7, StartMs: startMs, Topic: "orders", Partitions: 4, RowsPerSecond: 500, RowBytes: 100,
		Keys:       Keys{Count: 5000, Skew: 1.1, NewPerSecond: 3},
		Rate:       Rate{Daily: 0.3, Noise: 0.2},
		Late:       Late{Typical: 200 * time.Millisecond, Share: 0.01, By: 30 * time.Second, Beyond: 20 * time.Second},
		Duplicates: 0.05,
	}
}

func source(t testing.TB, kind string, cfg Config) Source {
	t.Helper()
	s, err := New(kind, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ms is a time after the start.
func ms(after time.Duration) int64 { return startMs + after.Milliseconds() }

func TestAdvanceInOneStepOrManyGivesTheSameRows(t *testing.T) {
	changing := func(second int64) Conditions {
		c := Normal()
		if second >= 20 && second < 40 {
			c.Rate, c.KeySpace, c.Late, c.Skew = 2.5, 3, 0.1, 0.2
		}
		return c
	}
	for _, kind := range kinds {
		read := func(stepMs int64) ([]Row, Poll) {
			cfg := orders()
			cfg.RowsPerSecond = 333.3
			s := source(t, kind, cfg)
			for at := int64(0); at < 60_000; at += stepMs {
				s.Advance(startMs+at+stepMs, changing(at/1000))
			}
			poll := s.Poll()
			return slices.Clone(s.Take().Rows), poll
		}
		want, wantPoll := read(20_000)
		for _, step := range []int64{10_000, 1000, 250, 1} {
			got, poll := read(step)
			if poll != wantPoll {
				t.Errorf("%s in steps of %d ms: poll %+v, want %+v", kind, step, poll, wantPoll)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s in steps of %d ms: %d rows differ from %d", kind, step, len(got), len(want))
			}
		}
	}
}

func TestSeekReadsTheSameRowsAgain(t *testing.T) {
	for _, kind := range kinds {
		s := source(t, kind, orders())
		var takes []Take
		for b := range 10 {
			s.Advance(ms(time.Duration(b+1)*7300*time.Millisecond), Normal())
			take := s.Take()
			take.Rows = slices.Clone(take.Rows)
			takes = append(takes, take)
		}
		s.Advance(ms(3*time.Minute), Normal())
		for b, want := range takes {
			if err := s.Seek(want.Start); err != nil {
				t.Fatal(err)
			}
			got, err := s.TakeTo(want.End)
			if err != nil {
				t.Fatal(err)
			}
			if got.Start != want.Start || got.End != want.End || !slices.Equal(got.Rows, want.Rows) {
				t.Errorf("%s batch %d: %s to %s with %d rows, again %s to %s with %d",
					kind, b, want.Start, want.End, want.Count, got.Start, got.End, got.Count)
			}
		}
	}
}

func TestRewoundQueryReadsTheSameRowsInOtherBatches(t *testing.T) {
	sorted := func(rows []Row) []Row {
		return slices.SortedFunc(slices.Values(rows), func(a, b Row) int {
			return cmp.Or(cmp.Compare(a.EventMs, b.EventMs), cmp.Compare(a.Key, b.Key), again(a)-again(b))
		})
	}
	for _, kind := range kinds {
		s := source(t, kind, orders())
		var all []Row
		var from string
		for b := range 12 {
			s.Advance(ms(time.Duration(b+1)*5*time.Second), Normal())
			take := s.Take()
			if b == 3 {
				from, all = take.Start, nil
			}
			all = append(all, take.Rows...)
		}
		if err := s.Seek(from); err != nil {
			t.Fatal(err)
		}
		if got := s.Take(); !slices.Equal(sorted(got.Rows), sorted(all)) {
			t.Errorf("%s: one batch of %d rows differs from those that had %d", kind, got.Count, len(all))
		}
	}
}

func again(r Row) int {
	if r.Again {
		return 1
	}
	return 0
}

func TestTwoSourcesOfOneConfigurationAreEqualAndOthersAreNot(t *testing.T) {
	read := func(kind string, change func(*Config)) string {
		cfg := orders()
		change(&cfg)
		s := source(t, kind, cfg)
		s.Advance(ms(20*time.Second), Normal())
		return fmt.Sprint(s.Take())
	}
	for _, kind := range kinds {
		want := read(kind, func(*Config) {})
		if got := read(kind, func(*Config) {}); got != want {
			t.Errorf("%s: the same source gives other rows", kind)
		}
		for what, change := range map[string]func(*Config){
			"seed": func(c *Config) { c.Seed++ }, "query": func(c *Config) { c.Query++ }, "source": func(c *Config) { c.Source++ },
		} {
			if read(kind, change) == want {
				t.Errorf("%s: another %s gives the same rows", kind, what)
			}
		}
	}
}

func TestOffsetsGoOnWithoutAGap(t *testing.T) {
	for _, kind := range kinds {
		cfg := orders()
		cfg.MaxPerTrigger = 3
		if kind == "kafka" {
			cfg.MaxPerTrigger = 3000
		}
		s := source(t, kind, cfg)
		last := "null"
		var read, polled int64
		for b := range 50 {
			s.Advance(ms(time.Duration(b)*4*time.Second), Normal())
			polled = read + s.Poll().Available
			take := s.Take()
			if take.Start != last || take.Count != int64(len(take.Rows)) {
				t.Fatalf("%s batch %d starts at %s after %s", kind, b, take.Start, last)
			}
			last = take.End
			read += take.Count
		}
		if rest := s.Poll().Available; read+rest != polled || read == 0 {
			t.Errorf("%s: %d rows read and %d left of %d", kind, read, rest, polled)
		}
	}
}

func TestTakeSumsUpItsRows(t *testing.T) {
	s := source(t, "kafka", orders())
	s.Advance(ms(30*time.Second), Normal())
	take := s.Take()
	var bytes int64
	var sum float64
	low, high := take.Rows[0].EventMs, take.Rows[0].EventMs
	for _, r := range take.Rows {
		bytes += int64(r.Bytes)
		sum += float64(r.EventMs - startMs)
		low, high = min(low, r.EventMs), max(high, r.EventMs)
	}
	mean := (take.SumMs - float64(startMs)*float64(take.Count)) / float64(take.Count)
	if take.Bytes != bytes || take.MinMs != low || take.MaxMs != high || mean-sum/float64(take.Count) > 1 {
		t.Errorf("%+v sums up %d bytes, %d to %d", take, bytes, low, high)
	}
}

func TestBatchWithoutNewsStaysWhereItIs(t *testing.T) {
	for _, kind := range kinds {
		s := source(t, kind, orders())
		s.Advance(ms(10*time.Second), Normal())
		first, second := s.Take(), s.Take()
		if second.Count != 0 || second.Start != first.End || second.End != first.End {
			t.Errorf("%s: after %s comes %s to %s with %d rows", kind, first.End, second.Start, second.End, second.Count)
		}
	}
}

func TestQueryStartsOnceWithoutOffsets(t *testing.T) {
	f := func(kind, start, end, latest string, count int64) {
		t.Helper()
		s := source(t, kind, orders())
		s.Advance(startMs, Normal())
		take := s.Take()
		if take.Start != start || take.End != end || take.Latest != latest || take.Count != count {
			t.Errorf("%s: %s to %s of %s with %d rows", kind, take.Start, take.End, take.Latest, take.Count)
		}
	}
	zero := `{"orders":{"0":0,"1":0,"2":0,"3":0}}`
	f("kafka", "null", zero, zero, 0)
	f("rate", "null", "0", "0", 0)
	f("files", "null", "null", "null", 0)
}

func TestSourcesDescribeThemselvesAsSparkDoes(t *testing.T) {
	cfg := orders()
	cfg.Partitions = 2
	for kind, want := range map[string]string{
		"kafka": "KafkaV2[Subscribe[orders]]",
		"rate":  "RateStreamV2[rowsPerSecond=500, rampUpTimeSeconds=0, numPartitions=2",
		"files": "FileStreamSource[file:/srv/stream/input]",
	} {
		if got := source(t, kind, cfg).Description(); got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
}

func TestOffsetsAreJSON(t *testing.T) {
	cfg := orders()
	cfg.Topic = `a "quoted" topic`
	for _, kind := range kinds {
		s := source(t, kind, cfg)
		for b := range 3 {
			s.Advance(ms(time.Duration(b)*5*time.Second), Normal())
			take := s.Take()
			for _, text := range []string{take.Start, take.End, take.Latest} {
				if !json.Valid([]byte(text)) {
					t.Errorf("%s: offset %s", kind, text)
				}
			}
		}
	}
}

func TestSkipForgetsWhatWaits(t *testing.T) {
	for _, kind := range kinds {
		s := source(t, kind, orders())
		s.Advance(ms(time.Minute), Normal())
		s.Take()
		s.Advance(ms(time.Hour+500*time.Millisecond), Normal())
		s.Skip()
		if got := s.Poll().Available; got != 0 {
			t.Errorf("%s: %d rows wait after a skip", kind, got)
		}
		s.Advance(ms(time.Hour+10500*time.Millisecond), Normal())
		take := s.Take()
		if take.Start != "null" || take.Count < 3000 || take.Count > 7000 {
			t.Errorf("%s: after a skip %s to %s with %d rows", kind, take.Start, take.End, take.Count)
		}
	}
}

func TestNewProcessGoesOnWhereTheOffsetLogEnds(t *testing.T) {
	for _, kind := range kinds {
		old := source(t, kind, orders())
		var take Take
		for b := range 5 {
			old.Advance(ms(time.Duration(b+1)*10*time.Second), Normal())
			take = old.Take()
		}
		resumed := orders()
		resumed.StartMs = ms(50 * time.Second)
		s := source(t, kind, resumed)
		if err := s.Seek(take.End); err != nil {
			t.Fatal(err)
		}
		if got := s.Poll().Available; got != 0 {
			t.Errorf("%s: %d rows wait", kind, got)
		}
		s.Advance(ms(60*time.Second), Normal())
		next := s.Take()
		if next.Start != take.End || next.Count < 3000 || next.Count > 7000 {
			t.Errorf("%s: after %s comes %s with %d rows", kind, take.End, next.Start, next.Count)
		}
	}
}

func TestPlannedBatchOfAnEarlierProcessIsReadAgain(t *testing.T) {
	f := func(kind, from, to string, count int64) {
		t.Helper()
		s := source(t, kind, orders())
		if err := s.Seek(from); err != nil {
			t.Fatal(err)
		}
		take, err := s.TakeTo(to)
		if err != nil || take.Start != from || take.End != to || take.Count != count {
			t.Errorf("%s: %s to %s with %d rows, %v", kind, take.Start, take.End, take.Count, err)
		}
		if take.Count > 0 && (take.MaxMs > startMs || take.MaxMs < startMs-5000) {
			t.Errorf("%s: newest row is of %d ms after the start", kind, take.MaxMs-startMs)
		}
	}
	f("kafka", `{"orders":{"0":100,"1":100,"2":100,"3":100}}`, `{"orders":{"0":200,"1":199,"2":201,"3":100}}`, 300)
	f("rate", "57", "60", 1500)
	f("files", `{"logOffset":4}`, `{"logOffset":5}`, 0)
}

func TestForeignOffsetsAreRefusedAndMoveNothing(t *testing.T) {
	f := func(kind, offset, want string) {
		t.Helper()
		s := source(t, kind, orders())
		s.Advance(ms(10*time.Second), Normal())
		at := s.Take().End
		s.Advance(ms(20*time.Second), Normal())
		waiting := s.Poll()
		if err := s.Seek(offset); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: seek to %s: %v, want %s", kind, offset, err, want)
		}
		if _, err := s.TakeTo(offset); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: take to %s: %v, want %s", kind, offset, err, want)
		}
		if got := s.Poll(); got != waiting {
			t.Errorf("%s: %s moved the source", kind, offset)
		}
		if got := s.Take().Start; got != at {
			t.Errorf("%s: %s moved the source from %s to %s", kind, offset, at, got)
		}
	}
	f("kafka", `57`, "is no offset")
	f("kafka", `{"orders":{"0":1,"1":1,"2":1,"3":1}} x`, "has something after its end")
	f("kafka", `{"payments":{"0":1,"1":1,"2":1,"3":1}}`, "is not of this topic alone")
	f("kafka", `{"orders":{"0":1,"1":1,"2":1,"3":1},"payments":{"0":1}}`, "is not of this topic alone")
	f("kafka", `{"orders":{"0":1,"1":1,"2":1}}`, "has 3 partitions, not 4")
	f("kafka", `{"orders":{"0":1,"1":1,"2":1,"4":1}}`, "has no valid number for partition 3")
	f("kafka", `{"orders":{"0":-1,"1":1,"2":1,"3":1}}`, "has no valid number for partition 0")
	f("kafka", `{"orders":{"0":9223372036854775807,"1":1,"2":1,"3":1}}`, "has no valid number for partition 0")
	f("rate", `{"logOffset":1}`, "is no offset")
	f("rate", `-1`, "is not one of seconds 0 and later")
	f("rate", `9223372036854775807`, "is not one of seconds 0 and later")
	f("files", `12`, "is no offset")
	f("files", `{"offset":1}`, "is no log offset from 0 on")
	f("files", `{"logOffset":-3}`, "is no log offset from 0 on")
}

func TestBatchPlannedWithoutAnOffset(t *testing.T) {
	for _, text := range []string{"", "null", "-"} {
		take, err := source(t, "files", orders()).TakeTo(text)
		if err != nil || take.Start != "null" || take.End != "null" || take.Count != 0 {
			t.Errorf("files up to %q: %+v, %v", text, take, err)
		}
		for _, kind := range kinds {
			s := source(t, kind, orders())
			s.Advance(ms(10*time.Second), Normal())
			s.Take()
			if take, err := s.TakeTo(text); err == nil {
				t.Errorf("%s up to %q: %+v", kind, text, take)
			}
		}
	}
}

func TestBatchTooLargeToHoldIsRefused(t *testing.T) {
	f := func(kind, to, want string) {
		t.Helper()
		s := source(t, kind, orders())
		if _, err := s.TakeTo(to); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", kind, err, want)
		}
	}
	f("kafka", `{"orders":{"0":900000000,"1":1,"2":1,"3":1}}`, "is 900000003 rows on, more than the 4194304 of a batch")
	f("rate", "9000000", "is 9000000 rows on, more than the 4194304 of a batch")
	f("rate", "10000", "is 5000000 rows on, more than the 4194304 of a batch")
}

func TestPlannedBatchBehindTheSourceIsRefused(t *testing.T) {
	for _, kind := range kinds {
		s := source(t, kind, orders())
		s.Advance(ms(10*time.Second), Normal())
		first := s.Take()
		s.Advance(ms(20*time.Second), Normal())
		s.Take()
		if _, err := s.TakeTo(first.End); err == nil || !strings.Contains(err.Error(), "before what was read") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestBacklogOfAnyLengthIsReadInBatchesThatFitMemory(t *testing.T) {
	for _, kind := range kinds {
		cfg := orders()
		cfg.MaxRows, cfg.RowsPerSecond, cfg.FileRows = 10_000, 5000, 5000
		s := source(t, kind, cfg)
		s.Advance(ms(time.Minute), Normal())
		waiting := s.Poll().Available
		var read int64
		for range 100 {
			take := s.Take()
			if take.Count > 10_000+4 {
				t.Fatalf("%s: a batch of %d rows", kind, take.Count)
			}
			if read += take.Count; take.Count == 0 {
				break
			}
		}
		if read != waiting || read < 200_000 {
			t.Errorf("%s: %d rows read of %d", kind, read, waiting)
		}
	}
}

func TestLargeBatchesMemoryIsGivenBack(t *testing.T) {
	s := source(t, "kafka", Config{StartMs: startMs, RowsPerSecond: 1000})
	s.Advance(ms(20*time.Minute), Normal())
	if got := s.Take().Count; got != 1_200_000 {
		t.Fatalf("%d rows", got)
	}
	s.Advance(ms(20*time.Minute+time.Second), Normal())
	if got := cap(s.Take().Rows); got > 1<<16 {
		t.Errorf("memory for %d rows is held for a batch of 1,000", got)
	}
}

func TestConfigurationsOutOfRangeAreRefusedByName(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		cfg := orders()
		change(&cfg)
		for _, kind := range kinds {
			if _, err := New(kind, cfg); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", kind, err, want)
			}
		}
	}
	f(func(c *Config) { c.RowsPerSecond = -1 }, "rows per second (-1) must be from 0 to 1e+09")
	f(func(c *Config) { c.Partitions = -2 }, "partitions (-2) must be from 1 to 100000")
	f(func(c *Config) { c.Keys.Skew = 99 }, "keys: skew (99) must be from 0 to 20")
	f(func(c *Config) { c.Late.Share = 1.5 }, "late: share (1.5) must be from 0 to 1")
	f(func(c *Config) { c.Rate.Noise = 9 }, "rate: noise (9) must be from 0 to 3")
	f(func(c *Config) { c.Duplicates = 2; c.Rate.Daily = 2 },
		"duplicates (2) must be from 0 to 1\nrate: daily (2) must be from 0 to 1")
	if _, err := New("socket", orders()); err == nil || err.Error() != `source kind "socket" is none of kafka, rate and files` {
		t.Errorf("error %v", err)
	}
}

func FuzzSeek(f *testing.F) {
	for _, text := range []string{
		"", "null", "-", "0", "17", "-4", "1e3", `{"logOffset":0}`, `{"logOffset":99}`,
		`{"orders":{"0":5,"1":5}}`, `{"orders":{"0":5,"1":9007199254740993}}`, `{"orders":{"0":4503599627370496,"1":1}}`,
		`{"orders":{}}`, `{"orders":null}`, `[1]`, `{"orders":{"00":1,"1":1}}`, `9007199254740`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range kinds {
			cfg := orders()
			cfg.Partitions, cfg.MaxRows = 2, 5000
			s := source(t, kind, cfg)
			s.Advance(ms(3*time.Second), Normal())
			s.Take()
			if err := s.Seek(text); err == nil {
				s.Advance(ms(5*time.Second), Normal())
			}
			before := s.Poll().Available
			take := s.Take()
			if before < 0 || take.Count != int64(len(take.Rows)) || take.Count > 5000+2 || take.Count > before {
				t.Fatalf("%s: after %q %d rows of %d", kind, text, take.Count, before)
			}
			if !json.Valid([]byte(take.End)) {
				t.Fatalf("%s: after %q at %s", kind, text, take.End)
			}
			if _, err := s.TakeTo(text); err == nil && s.Poll().Available < 0 {
				t.Fatalf("%s: reading up to %q leaves %d", kind, text, s.Poll().Available)
			}
		}
	})
}
