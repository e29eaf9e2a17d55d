package lsm

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readTwice reads all rows of a compacted database and then again, and returns
// the counts of the second time.
func readTwice(t *testing.T, d *DB, rows int) (again CacheCounts) {
	t.Helper()
	fill(t, d, seeded(), 0, rows, 100)
	must[Flushed](t)(d.Compact())
	for range 2 {
		d.Begin()
		for i := range rows {
			if _, found, err := d.Get(row(i)); !found || err != nil {
				t.Fatal(found, err)
			}
		}
		again = d.End()
	}
	return again
}

func TestLargeCacheHitsAndSmallOneMisses(t *testing.T) {
	const rows = 10_000 // some 1.2 MB
	for _, c := range []struct {
		name     string
		capacity int64
		least    float64 // share of hits, at the second reading
		most     float64
	}{
		{"larger than the data", 8 << 20, 1, 1},
		{"larger than Pebble would make with four shards", 200 << 20, 1, 1},
		{"a tenth of the data", 128 << 10, 0, 0.99},
		{"none", 0, 0, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, Options{Shared: newShared(t, c.capacity), Uncharged: true, Uncompress: true, MemtableBytes: 64 << 10})
			got := readTwice(t, d, rows)
			share := float64(got.Hits) / float64(got.Hits+got.Misses)
			if share < c.least || share > c.most {
				t.Errorf("share of hits %.4f of %+v, want %.2f to %.2f", share, got, c.least, c.most)
			}
		})
	}
}

func TestChargedMemtablesLeaveNothingOfASmallCache(t *testing.T) {
	const limit = 50 << 10
	for _, c := range []struct {
		uncharged bool
		capacity  int64
		hits      bool
	}{
		{false, MemtableCharge(limit), false},
		{false, MemtableCharge(limit) + 4<<20, true},
		{true, 4 << 20, true},
	} {
		d := open(t, Options{Shared: newShared(t, c.capacity), MemtableBytes: limit, Uncharged: c.uncharged})
		got := readTwice(t, d, 3000)
		if (got.Misses == 0) != c.hits {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestUnchargedMemtablesLeaveTheCacheAsItIs(t *testing.T) {
	// Growing, flushing and closing must give back exactly what was taken.
	const capacity = 1 << 20
	shared := newShared(t, capacity)
	for round := range 3 {
		d, err := Open(Options{FS: vfs.NewMem(), Dir: "db", Shared: shared, MemtableBytes: 600 << 10, Uncharged: true})
		if err != nil {
			t.Fatal(err)
		}
		readTwice(t, d, 20_000) // 2 MB: more than fits
		if used := shared.UsedBytes(); used > capacity+16<<10 || used < capacity*8/10 {
			t.Errorf("round %d: %d bytes cached of %d", round, used, capacity)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCapacityCanChange(t *testing.T) {
	shared := newShared(t, 4<<20)
	d := open(t, Options{Shared: shared, Uncharged: true})
	if got := readTwice(t, d, 5000); got.Misses != 0 {
		t.Fatalf("all fits, yet %+v", got)
	}
	shared.SetCapacity(64 << 10)
	if used := shared.UsedBytes(); used > 64<<10 || shared.Capacity() != 64<<10 {
		t.Errorf("%d bytes cached of %d", used, shared.Capacity())
	}
	if got := readTwice(t, d, 5000); got.Misses == 0 {
		t.Error("no misses in a small cache")
	}
	shared.SetCapacity(4 << 20)
	if got := readTwice(t, d, 5000); got.Misses != 0 {
		t.Errorf("grown back, yet %+v", got)
	}
	shared.SetCapacity(-1)
	if used := shared.UsedBytes(); used != 0 {
		t.Errorf("%d bytes cached of none", used)
	}
}

func TestCountsGoToTheDatabaseThatReads(t *testing.T) {
	shared, mem := newShared(t, 8<<20), vfs.NewMem()
	var stores []*DB
	for i := range 3 {
		d := open(t, Options{FS: mem, Dir: fmt.Sprint("store", i), Shared: shared})
		fill(t, d, seeded(), 0, 100, 100)
		must[Flushed](t)(d.Flush())
		stores = append(stores, d)
	}
	stores[1].Begin()
	for i := range 100 {
		if _, _, err := stores[1].Get(row(i)); err != nil {
			t.Fatal(err)
		}
	}
	group := stores[1].End()
	if group.Hits == 0 || group.Misses == 0 || stores[1].Stats().Cache != group {
		t.Errorf("group %+v, stats %+v", group, stores[1].Stats().Cache)
	}
	for _, i := range []int{0, 2} {
		if got := stores[i].Stats().Cache; got != (CacheCounts{}) {
			t.Errorf("store %d: %+v", i, got)
		}
	}
}

func TestReaderBytesGrowWithData(t *testing.T) {
	d := open(t, Options{})
	if got := d.Stats().ReaderBytes; got != 0 {
		t.Errorf("%d bytes without a table", got)
	}
	var before int64
	for n := range 5 {
		fill(t, d, seeded(), n*1000, n*1000+1000, 100)
		must[Flushed](t)(d.Compact())
		s := d.Stats()
		if s.ReaderBytes <= before || s.ReaderBytes > s.SSTBytes/5 {
			t.Errorf("%d bytes for %d of tables, before %d", s.ReaderBytes, s.SSTBytes, before)
		}
		before = s.ReaderBytes
	}
}

func TestSettingTheCapacityAgainDropsNothing(t *testing.T) {
	const rows = 2000
	shared := newShared(t, 4<<20)
	d := open(t, Options{Shared: shared, Uncharged: true})
	readTwice(t, d, rows)
	held := shared.UsedBytes()
	for _, capacity := range []int64{4 << 20, 5 << 20, 4 << 20} {
		shared.SetCapacity(capacity)
		if got := shared.UsedBytes(); got != held || got == 0 {
			t.Errorf("capacity %d: %d bytes are cached, want the %d from before", capacity, got, held)
		}
	}
}

func TestCompactionReadsFromFilesOnlyWhatIsNotCached(t *testing.T) {
	read := func(cached bool) Flushed {
		d := open(t, Options{Shared: newShared(t, 8<<20), Uncharged: true})
		for range 2 {
			fill(t, d, seeded(), 0, 2000, 100)
			if _, err := d.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if cached {
			if err := d.Scan(nil, nil, func(_, _ []byte) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		return must[Flushed](t)(d.Compact())
	}
	cold, warm := read(false), read(true)
	if cold.CompactRead < cold.CompactWritten || warm.CompactRead > cold.CompactRead/5 {
		t.Errorf("a compaction read %d bytes of tables that nobody had read, %d of cached ones", cold.CompactRead, warm.CompactRead)
	}
	if cold.CompactWritten != warm.CompactWritten {
		t.Errorf("wrote %d and %d bytes", cold.CompactWritten, warm.CompactWritten)
	}
}
