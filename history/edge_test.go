package history

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/event"
)

func TestAFullDiskIsAnErrorThatPassesByItself(t *testing.T) {
	fs := &countingFS{FS: vfs.NewMem()}
	now := time.UnixMilli(t0)
	o := Options{Dir: "data", FS: fs, Metrics: NewMetrics(prometheus.NewRegistry()), Now: func() time.Time { return now }}
	s := open(t, o)
	fs.room.Store(minFreeBytes + 1)
	commit(t, s, &Step{})
	fs.room.Store(minFreeBytes - 1)
	for range 2 {
		if err := s.Commit([]*Step{{Seq: 2}}); !errors.Is(err, ErrDiskFull) {
			t.Errorf("error is %v", err)
		}
		now = now.Add(time.Minute)
	}
	if got := valueOf(t, o.Metrics.DegradedSince); got != float64(t0/1000) {
		t.Errorf("degraded since %v", got)
	}
	if s.Failed() != nil {
		t.Error("the store has failed")
	}
	if err := s.Retain(t0); err != nil {
		t.Errorf("what is old cannot be deleted: %v", err)
	}
	fs.room.Store(minFreeBytes + 1)
	commit(t, s, &Step{Seq: 2})
	if got := valueOf(t, o.Metrics.DegradedSince); got != 0 {
		t.Errorf("degraded since %v", got)
	}
	if got := valueOf(t, o.Metrics.CommitErrors); got != 2 {
		t.Errorf("%v errors were counted", got)
	}
}

func TestADiskThatCannotBeWrittenFromTheStartIsAnError(t *testing.T) {
	disk := failingFrom(0, syscall.EROFS)
	_, err := Open(Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), disk)})
	if !errors.Is(err, syscall.EROFS) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrInUse) {
		t.Errorf("error is %v", err)
	}
}

func TestReopeningIsRefusedWhileTheDiskFailsAndBounded(t *testing.T) {
	disk := failingFrom(1<<40, syscall.EIO)
	m := NewMetrics(prometheus.NewRegistry())
	s, err := Open(Options{Dir: "data", FS: errorfs.Wrap(vfs.NewMem(), disk), Metrics: m})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(); err != nil {
		t.Errorf("a store that is well: %v", err)
	}
	for n := range maxDead {
		disk.left.Store(0)
		disk.healed.Store(false)
		if err := s.Commit([]*Step{{Seq: s.NextSeq()}}); !errors.Is(err, ErrFailed) {
			t.Fatalf("failure %d: %v", n, err)
		}
		if err := s.Reopen(); !errors.Is(err, ErrFailed) {
			t.Fatalf("reopened on a bad disk: %v", err)
		}
		if _, err := s.Offsets(); !errors.Is(err, ErrFailed) {
			t.Fatalf("read from a failed store: %v", err)
		}
		disk.healed.Store(true)
		reopen(t, s)
	}
	if got := valueOf(t, m.Reopened); got != maxDead {
		t.Errorf("reopened %v times", got)
	}
	disk.healed.Store(false)
	if err := s.Commit([]*Step{{Seq: s.NextSeq()}}); !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	disk.healed.Store(true)
	if err := s.Reopen(); err == nil || !strings.Contains(err.Error(), "restart the daemon") {
		t.Errorf("error is %v", err)
	}
	if err := s.Close(); !errors.Is(err, ErrFailed) {
		t.Errorf("closing: %v", err)
	}
}

func TestStepsAreCommittedInOrder(t *testing.T) {
	s := open(t, inMemory())
	if err := s.Commit(nil); err != nil || s.NextSeq() != 1 {
		t.Errorf("nothing at all: %v", err)
	}
	for _, steps := range [][]*Step{{{Seq: 0}}, {{Seq: 2}}, {{Seq: 1}, {Seq: 3}}, {{Seq: 1}, {Seq: 1}}} {
		if err := s.Commit(steps); !errors.Is(err, ErrSequence) {
			t.Errorf("error is %v", err)
		}
	}
	if err := s.Commit([]*Step{{Seq: 1, States: []State{{Kind: "a\x00b"}}}}); err == nil {
		t.Error("a kind with a zero byte was taken")
	}
	commit(t, s, &Step{Seq: 1}, &Step{Seq: 2})
	if got := s.NextSeq(); got != 3 {
		t.Errorf("next step is %d", got)
	}
}

func TestOneHistoryIsOpenOnce(t *testing.T) {
	for name, o := range map[string]Options{"memory": inMemory(), "disk": {Dir: t.TempDir()}} {
		s := open(t, o)
		if _, err := Open(o); !errors.Is(err, ErrInUse) {
			t.Errorf("%s: error is %v", name, err)
		}
		if _, err := Repair(o, t0); !errors.Is(err, ErrInUse) {
			t.Errorf("%s: repair: %v", name, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := open(t, o).Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestADirectoryOfSomebodyElseIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data", 0o755); err != nil {
		t.Fatal(err)
	}
	overwrite(t, fs, "data/letters.txt", []byte("dear"))
	if _, err := Open(Options{Dir: "data", FS: fs}); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "letters.txt") {
		t.Errorf("error is %v", err)
	}
	db, err := pebble.Open("other/history", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatTableFormatV6})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: "other", FS: fs}); !errors.Is(err, ErrForeign) {
		t.Errorf("error is %v", err)
	}
}

func TestADatabaseOfNewerStorageIsRefusedAndStays(t *testing.T) {
	o := inMemory()
	kept(t, o)
	path := o.FS.PathJoin(o.Dir, dataName)
	db, err := pebble.Open(path, &pebble.Options{FS: o.FS, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open(o); !errors.Is(err, ErrNewer) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestAnOlderStorageOfOursIsTakenOver(t *testing.T) {
	fs := vfs.NewMem()
	db, err := pebble.Open("data/history", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatFlushableIngest})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		db.Set(metaKey(metaFormat), appendUint(nil, formatVersion), pebble.Sync),
		db.Set(logKey(41), appendEntries(nil, nil), pebble.Sync),
		db.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	if s := open(t, Options{Dir: "data", FS: fs}); s.NextSeq() != 42 {
		t.Errorf("next step is %d", s.NextSeq())
	}
}

func TestReadingOnlyWritesNothing(t *testing.T) {
	o := inMemory()
	want := kept(t, o)
	disk := failingFrom(0, errors.New("written"))
	ro := Options{Dir: o.Dir, FS: errorfs.Wrap(o.FS, disk), ReadOnly: true}
	s := open(t, ro)
	if diff := cmp.Diff(want, describeAll(t, s)); diff != "" {
		t.Error(diff)
	}
	for name, err := range map[string]error{
		"commit": s.Commit([]*Step{{Seq: s.NextSeq()}}), "trim": s.Trim(3), "retain": s.Retain(t0),
		"hours": s.PutHours("l", "q", "s", []Hour{{t0, nil}}),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Export(io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := Open(Options{Dir: "elsewhere", FS: o.FS, ReadOnly: true}); err == nil {
		t.Error("a history that is not there was opened")
	}
}

func TestReadingOnlyGoesOnWhileTheDaemonDeletes(t *testing.T) {
	o := Options{Dir: t.TempDir(), memtableBytes: 64 << 10}
	s := open(t, o)
	d := &diary{t: t, s: s, sized: 1000, noise: true}
	for range 100 {
		if err := d.commit(); err != nil {
			t.Fatal(err)
		}
	}
	ro := o
	ro.ReadOnly = true
	r := open(t, ro)
	at := d.acked.Load()
	if err := s.Trim(at); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := d.commit(); err != nil {
			t.Fatal(err)
		}
	}
	late := batchOf("c", 0)
	late.AtMs += 30 * dayMs
	commit(t, s, &Step{Records: []Record{late}})
	if err := s.Trim(s.NextSeq()); err != nil {
		t.Fatal(err)
	}
	retain(t, s, late.AtMs)
	if got := len(readAll(t, s, "a")); got != 0 {
		t.Errorf("the daemon still has %d records", got)
	}
	if got := len(readAll(t, r, "a")); got != int(at) {
		t.Errorf("the reader has %d records of %d", got, at)
	}
}

func TestErrorsAndPanicsOfACallbackReachItsCaller(t *testing.T) {
	s := furnished(t, inMemory())
	stop := errors.New("enough")
	for name, err := range map[string]error{
		"read":   s.Read("a", 0, 2*t0, func(Record) error { return stop }),
		"replay": s.Replay(0, func(uint64, Record) error { return stop }),
		"states": s.States("tracker", func(State) error { return stop }),
		"hours":  s.ReadHours("name of a", "a", "commit_sync", 0, 2*t0, func(string, Hour) error { return stop }),
	} {
		if !errors.Is(err, stop) {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("recovered %v", v)
		}
		if s.Failed() != nil {
			t.Error("a panic of the caller was taken for one of the storage")
		}
	}()
	_ = s.Read("a", 0, 2*t0, func(Record) error { panic("boom") })
}

func TestReadingTakesTimeAndQueryIntoAccount(t *testing.T) {
	s := open(t, inMemory())
	var want []string
	step := &Step{}
	for i := range 300 { // over fifty hours, in no order
		n := (i * 7919) % 300
		r := batchOf([]string{"a", "b", "c"}[n%3], 0)
		r.AtMs = t0 + int64(n)*600_000
		r.Body = fmt.Appendf(nil, "%03d", n)
		if n%3 == 2 {
			r.Query, r.Lineage = "d", "name of a" // a new checkpoint of the same query
		}
		step.Records = append(step.Records, r)
	}
	commit(t, s, step)
	collect := func(read func(fn func(Record) error) error) (got []string) {
		if err := read(func(r Record) error { got = append(got, string(r.Body)); return nil }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	from, to := t0+30*600_000, t0+270*600_000
	for n := 30; n < 270; n += 3 {
		want = append(want, fmt.Sprintf("%03d", n))
	}
	if diff := cmp.Diff(want, collect(func(fn func(Record) error) error { return s.Read("a", from, to, fn) })); diff != "" {
		t.Error(diff)
	}
	want = nil
	for n := 30; n < 270; n++ {
		if n%3 != 1 {
			want = append(want, fmt.Sprintf("%03d", n))
		}
	}
	if diff := cmp.Diff(want, collect(func(fn func(Record) error) error { return s.ReadLineage("name of a", from, to, fn) })); diff != "" {
		t.Error(diff)
	}
	if got := collect(func(fn func(Record) error) error { return s.Read("nobody", from, to, fn) }); got != nil {
		t.Errorf("got %v", got)
	}
	if got := collect(func(fn func(Record) error) error { return s.Read("a", to, from, fn) }); got != nil {
		t.Errorf("got %v", got)
	}
}

func TestOffsetsAndStatesOfManyNamesAreKeptApart(t *testing.T) {
	s := open(t, inMemory())
	commit(t, s, &Step{
		Offsets: []Offset{{"a", 1, 5}, {"ab", 1, 6}, {"a", 256, 7}, {"", 0, 8}},
		States:  []State{{"k", "a", 1, []byte("1")}, {"k", "", 1, []byte("2")}, {"kk", "a", 1, []byte("3")}, {"", "k", 1, []byte("4")}},
	})
	offsets, err := s.Offsets()
	if diff := cmp.Diff([]Offset{{"", 0, 8}, {"a", 1, 5}, {"ab", 1, 6}, {"a", 256, 7}}, offsets); diff != "" || err != nil {
		t.Error(diff, err)
	}
	var got []string
	for _, kind := range []string{"", "k", "kk", "none"} {
		if err := s.States(kind, func(v State) error { got = append(got, kind+"/"+v.Key+"="+string(v.Body)); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"/k=4", "k/=2", "k/a=1", "kk/a=3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSummariesAreReadByIdAndByLineage(t *testing.T) {
	s := open(t, inMemory())
	hour := t0 / hourMs * hourMs
	put := func(query, signal string, hours ...Hour) {
		if err := s.PutHours("orders", query, signal, hours); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "x", Hour{hour, []byte("a0")}, Hour{hour + 2*hourMs, []byte("a2")}, Hour{hour + weekMs, []byte("a7")})
	put("b", "x", Hour{hour + hourMs, []byte("b1")}, Hour{hour, []byte("old")})
	put("b", "x", Hour{hour, []byte("b0")})
	put("a", "xy", Hour{hour, []byte("no")})
	read := func(query string) (got []string) {
		if err := s.ReadHours("orders", query, "x", hour, hour+weekMs+1, func(q string, h Hour) error {
			got = append(got, fmt.Sprintf("%s %s %d", q, h.Body, (h.StartMs-hour)/hourMs))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if diff := cmp.Diff([]string{"a a0 0", "b b0 0", "b b1 1", "a a2 2", "a a7 168"}, read("")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b b0 0", "b b1 1"}, read("b")); diff != "" {
		t.Error(diff)
	}
	if err := s.PutHours(strings.Repeat("l", 1<<16), "q", "s", nil); err == nil {
		t.Error("a name that is too long was taken")
	}
}

func TestManyReadWhileOneWrites(t *testing.T) {
	o := inMemory()
	o.memtableBytes = 64 << 10
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{t: t, s: s, sized: 500, noise: true}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				last := int64(-1)
				err := s.Read("a", 0, 2*t0, func(r Record) error {
					if r.AtMs <= last {
						t.Error("records are out of order")
					}
					last = r.AtMs
					return nil
				})
				_, err2 := s.Queries()
				_, err3 := s.Offsets()
				if err := errors.Join(err, err2, err3); err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	if err := d.keep(150); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil { // with readers under way
		t.Error(err)
	}
	close(done)
	readers.Wait()
	if err := s.Commit([]*Step{{Seq: s.NextSeq()}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
	if err := s.Read(event.QueryID("a"), 0, 1, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestFiguresOfTheDiskAreCounted(t *testing.T) {
	now := time.UnixMilli(t0)
	o := inMemory()
	o.memtableBytes = 64 << 10
	o.Metrics, o.Now = NewMetrics(prometheus.NewRegistry()), func() time.Time { return now }
	s := open(t, o)
	d := &diary{t: t, s: s, sized: 1000, noise: true}
	groups := 0
	for range 100 {
		if err := d.commit(); err != nil {
			t.Fatal(err)
		}
		groups++
		now = now.Add(time.Second)
	}
	m := o.Metrics
	steps := float64(d.acked.Load())
	for name, c := range map[string]struct{ got, from, to float64 }{
		"steps":               {valueOf(t, m.Steps), steps, steps},
		"records":             {valueOf(t, m.Records), 2 * steps, 2 * steps},
		"record bytes":        {valueOf(t, m.RecordBytes), 1000 * steps, 1200 * steps},
		"syncs":               {valueOf(t, m.Syncs), float64(groups), float64(groups) + 20},
		"written":             {valueOf(t, m.Written), 1500 * steps, 6000 * steps},
		"write amplification": {valueOf(t, m.WriteAmplification), 1.2, 5},
		"disk":                {valueOf(t, m.DiskBytes), 1000 * steps, 5000 * steps},
	} {
		if c.got < c.from || c.got > c.to {
			t.Errorf("%s: %v, want %v to %v", name, c.got, c.from, c.to)
		}
	}
}
