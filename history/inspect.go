package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/history/engine"
)

// verifyBytes is how much of the newest tables is read at every opening to see
// whether it is whole: about half a second's worth. Check reads all.
const verifyBytes = 256 << 20

// inspect looks at a database without changing it, before it is opened for
// writing: opening deletes what the manifest does not name. It returns the
// version of the contents.
func (p place) inspect(o Options) (version uint64, err error) {
	f, err := freeze(p.fs, p.data())
	if err != nil {
		return 0, damage(err)
	}
	defer f.close()
	o.ReadOnly = true
	eng, err := openEngine(f, p.data(), o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	if version, err = readVersion(eng); err != nil {
		return 0, err
	}
	return version, eng.Do(func(db *pebble.DB, _ *engine.Inside) error {
		return damage(f.sound(db, verifyBytes))
	})
}

// sound reads the checksums of the newest tables, so many bytes of them, and
// looks for a manifest that has lost its end.
func (f *frozen) sound(db *pebble.DB, budget int64) error {
	tables, err := liveTables(db)
	if err != nil {
		return err
	}
	for _, name := range tables {
		file, ok := f.tables[name]
		if !ok {
			return fmt.Errorf("table %s is missing", name)
		}
		if err := verifyTable(file); err != nil {
			return fmt.Errorf("table %s: %w", name, err)
		}
		if budget -= sizeOf(file); budget <= 0 {
			break
		}
	}
	return f.complete(db, tables)
}

// logs looks for steps behind the place where a log seems to end.
func (f *frozen) logs(next uint64) error {
	names, err := f.List(f.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		number, ok := logNumber(name)
		if !ok {
			continue
		}
		log, err := f.readLog(name)
		if err != nil {
			return err
		}
		if err := unbroken(log, number, next); err != nil {
			return err
		}
	}
	return nil
}

func logNumber(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// liveTables returns the names of the tables that the manifest holds, newest
// first.
func liveTables(db *pebble.DB) ([]string, error) {
	levels, err := db.SSTables()
	if err != nil {
		return nil, err
	}
	numbers := map[uint64]bool{}
	for _, level := range levels {
		for i := range level {
			numbers[uint64(level[i].BackingSSTNum)] = true
		}
	}
	sorted := make([]uint64, 0, len(numbers))
	for n := range numbers {
		sorted = append(sorted, n)
	}
	slices.SortFunc(sorted, func(a, b uint64) int { return cmp.Compare(b, a) })
	names := make([]string, 0, len(sorted))
	for _, n := range sorted {
		names = append(names, fmt.Sprintf("%06d.sst", n))
	}
	return names, nil
}

// complete compares the newest step with those in the logs, and in tables that the
// manifest does not hold. Such tables are left by a crash, but what they say is then still in
// the log or in other tables. Where they know of newer steps, the manifest has
// lost what it said of them.
func (f *frozen) complete(db *pebble.DB, live []string) error {
	next, err := loadNext(db)
	if err != nil {
		return err
	}
	if err := f.logs(next); err != nil {
		return err
	}
	for name, file := range f.tables {
		if slices.Contains(live, name) {
			continue
		}
		if newest := newestStep(file); newest >= next {
			return fmt.Errorf("manifest does not hold table %s, which goes on to step %d; the newest known is %d", name, newest, next-1)
		}
	}
	return nil
}

// newestStep returns the newest step that a table knows of, 0 where it cannot be
// read: a crash can leave half a table.
func newestStep(file vfs.File) (newest uint64) {
	_ = readTable(file, func(r *sstable.Reader) error {
		it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
		if err != nil {
			return err
		}
		defer func() { _ = it.Close() }()
		if kv := it.SeekLT(spanOf(spaceLog).to, 0); kv != nil {
			if seq, err := parseLogKey(kv.K.UserKey); err == nil {
				newest = seq
			}
		}
		trimmed := metaKey(metaTrimmed)
		if kv := it.SeekGE(trimmed, 0); kv != nil && bytes.Equal(kv.K.UserKey, trimmed) {
			if v, _, err := kv.Value(nil); err == nil {
				seq, _ := parseUint(v)
				newest = max(newest, seq)
			}
		}
		return nil
	})
	return newest
}

// readTable opens a table, which may be anything at all.
func readTable(file vfs.File, f func(r *sstable.Reader) error) (err error) {
	defer func() {
		if v := recover(); v != nil { // some of the reader trusts what it reads
			err = fmt.Errorf("table is broken: %v", v)
		}
	}()
	readable, err := sstable.NewSimpleReadable(heldFile{file})
	if err != nil {
		return err
	}
	r, err := sstable.NewReader(context.Background(), readable, sstable.ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return f(r)
}

func sizeOf(file vfs.File) int64 {
	info, err := file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
