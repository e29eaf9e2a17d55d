package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

const (
	crashBatches    = 7
	crashPartitions = 2
)

var errPowerCut = errors.New("power cut")

// playBatches runs batches on a checkpoint as a query does: offsets, then each
// partition's state, then the commit, then cleaning. A snapshot is cut every
// third version. It goes on after what is there.
func playBatches(fs vfs.FS) error {
	d, err := Open(fs, "/ckpt")
	if err != nil {
		return err
	}
	if err := d.SetQueryID("q"); err != nil {
		return err
	}
	committed, _, _, _, err := d.Resume()
	if err != nil {
		return err
	}
	for b := committed + 1; b < crashBatches; b++ {
		if err := playBatch(d, b); err != nil {
			return fmt.Errorf("batch %d: %w", b, err)
		}
	}
	return nil
}

func playBatch(d *Dir, b int64) error {
	if _, err := d.WriteOffsets(b, &Offsets{Sources: []string{fmt.Sprint(b)}}); err != nil {
		return err
	}
	for p := range crashPartitions {
		if err := writeVersion(d.State(0, p, "default"), b+1); err != nil {
			return err
		}
	}
	if _, err := d.WriteCommit(b, &Commit{NextWatermarkMs: b}); err != nil {
		return err
	}
	if _, err := d.Purge(b - 3); err != nil {
		return err
	}
	for p := range crashPartitions {
		if _, err := d.State(0, p, "default").DeleteVersions(b - 2); err != nil {
			return err
		}
	}
	return nil
}

func writeVersion(s *StateDir, version int64) error {
	if _, err := s.WriteChangelog(version, "", fmt.Appendf(nil, "change %d", version)); err != nil {
		return err
	}
	if version%3 != 0 {
		return nil
	}
	local := vfs.NewMem()
	table := fmt.Sprintf("%06d-u.sst", version)
	if err := writeFile(local, "/t.sst", table); err != nil {
		return err
	}
	n, err := s.PutSST(local, "/t.sst", table)
	if err != nil {
		return err
	}
	_, err = s.WriteSnapshot(version, "", &Snapshot{SSTs: []SST{{"t.sst", table, n}}, Keys: version})
	return err
}

// checkConsistent opens a checkpoint after a crash and loads the state of its
// last commit from it.
func checkConsistent(t *testing.T, fs vfs.FS) {
	t.Helper()
	d, err := Open(fs, "/ckpt")
	if err != nil {
		t.Fatalf("does not open: %v", err)
	}
	if _, _, err := d.QueryID(); err != nil {
		t.Fatal(err)
	}
	committed, _, _, fresh, err := d.Resume()
	if err != nil {
		t.Fatalf("does not resume: %v", err)
	}
	if fresh {
		return
	}
	if _, err := d.Offsets(committed); err != nil {
		t.Fatalf("committed batch without offsets: %v", err)
	}
	for p := range crashPartitions {
		if err := loadVersion(d.State(0, p, ""), committed+1); err != nil {
			t.Fatalf("version %d of partition %d does not load: %v", committed+1, p, err)
		}
	}
}

// loadVersion reads all that a version is made of.
func loadVersion(s *StateDir, version int64) error {
	snapshots, _, err := s.List()
	if err != nil {
		return err
	}
	base := int64(0)
	for _, v := range snapshots {
		if v <= version {
			base = v
		}
	}
	if base > 0 {
		snap, err := s.Snapshot(base, "")
		if err != nil {
			return err
		}
		for _, table := range snap.SSTs {
			local := vfs.NewMem()
			n, err := s.FetchSST(table.DFS, local, "/t.sst")
			if err != nil {
				return err
			}
			if n != table.Bytes {
				return fmt.Errorf("table %s has %d bytes, not %d", table.DFS, n, table.Bytes)
			}
		}
	}
	for v := base + 1; v <= version; v++ {
		data, err := s.Changelog(v, "")
		if err != nil {
			return err
		}
		if string(data) != fmt.Sprintf("change %d", v) {
			return fmt.Errorf("changelog %d holds %q", v, data)
		}
	}
	return nil
}

// failFrom makes the writes from number first on fail, count of them.
func failFrom(fs vfs.FS, first, count int) (vfs.FS, *int) {
	seen := new(int)
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		*seen++
		if *seen > first && *seen <= first+count {
			return errPowerCut
		}
		return nil
	})), seen
}

func TestCrashAtAnyWriteLeavesACheckpointThatGoesOn(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 7
	}
	crashes := 0
	for at := 0; ; at += step {
		mem := vfs.NewCrashableMem()
		broken, _ := failFrom(mem, at, 1<<30)
		err := playBatches(broken)
		if err == nil {
			break // more writes than there are
		}
		if !errors.Is(err, errPowerCut) {
			t.Fatalf("write %d: %v", at, err)
		}
		crashes++
		for _, unsynced := range []int{0, 50, 100} {
			after := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(uint64(at), uint64(unsynced)))})
			checkConsistent(t, after)
			if err := playBatches(after); err != nil {
				t.Fatalf("write %d: does not go on: %v", at, err)
			}
			checkEnd(t, after)
		}
	}
	t.Logf("%d crashes", crashes)
	if crashes < 20 {
		t.Errorf("only %d crashes played", crashes)
	}
}

// checkEnd looks at a checkpoint whose batches are all done.
func checkEnd(t *testing.T, fs vfs.FS) {
	t.Helper()
	checkConsistent(t, fs)
	d, err := Open(fs, "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := d.LastCommit(); last != crashBatches-1 {
		t.Fatalf("last commit is %d", last)
	}
	for p := range crashPartitions {
		s := d.State(0, p, "")
		names, err := s.files.list(s.join(sstsName))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) > 2 || slices.ContainsFunc(names, isSide) {
			t.Errorf("tables left behind: %v", names)
		}
	}
}

func TestOneFailedWriteHarmsNothing(t *testing.T) {
	for at := 0; ; at++ {
		mem := vfs.NewMem()
		broken, seen := failFrom(mem, at, 1)
		err := playBatches(broken)
		if *seen <= at {
			break
		}
		if err != nil && !errors.Is(err, errPowerCut) {
			t.Fatalf("write %d: %v", at, err)
		}
		checkConsistent(t, mem)
		if err := playBatches(mem); err != nil {
			t.Fatalf("write %d: does not go on: %v", at, err)
		}
		checkEnd(t, mem)
	}
}

func TestCleaningKeepsWhatKeptVersionsNeed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		d, err := Open(vfs.NewMem(), "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		s := d.State(0, 0, "default")
		newest := int64(1 + rng.IntN(30))
		for v := int64(1); v <= newest; v++ {
			if err := writeVersion(s, v); err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(2) == 0 { // another process, which has to read the snapshots
			if d, err = Open(d.FS(), "/ckpt"); err != nil {
				t.Fatal(err)
			}
			s = d.State(0, 0, "default")
		}
		keep := rng.Int64N(newest + 3)
		before, err := s.Files()
		if err != nil {
			t.Fatal(err)
		}
		del, err := s.DeleteVersions(keep)
		if err != nil {
			t.Fatal(err)
		}
		for v := max(keep, 1); v <= newest; v++ {
			if err := loadVersion(s, v); err != nil {
				t.Fatalf("%d versions, kept from %d: version %d does not load: %v", newest, keep, v, err)
			}
		}
		after, err := s.Files()
		if err != nil || len(before)-len(after) != del.Files {
			t.Fatalf("%d files before, %d after, %d said to be deleted (%v)", len(before), len(after), del.Files, err)
		}
		if len(after) > 2*int(max(newest-keep, 0)+4) {
			t.Errorf("%d versions, kept from %d: %d files are left", newest, keep, len(after))
		}
	}
}

func TestDamagedSnapshotStopsTheDeletionOfTables(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	for v := int64(1); v <= 9; v++ {
		if err := writeVersion(d.State(0, 0, ""), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.write(d.State(0, 0, "").join("9.zip"), []byte("torn")); err != nil {
		t.Fatal(err)
	}
	if d, err = Open(d.FS(), "/ckpt"); err != nil {
		t.Fatal(err)
	}
	del, err := d.State(0, 0, "").DeleteVersions(9)
	if !errors.Is(err, ErrDamaged) || del.SSTs != 0 {
		t.Errorf("%d tables deleted: %v", del.SSTs, err)
	}
}

func TestRewoundCheckpointIsThatOfItsBatch(t *testing.T) {
	for to := int64(3); to < crashBatches; to++ {
		mem := vfs.NewMem()
		if err := playBatches(mem); err != nil {
			t.Fatal(err)
		}
		d, err := Open(mem, "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Rewind(to); err != nil {
			t.Fatal(err)
		}
		checkConsistent(t, mem)
		if last, ok := d.LastOffsets(); last != to || !ok {
			t.Errorf("last offsets are %d, want %d", last, to)
		}
		if err := playBatches(mem); err != nil {
			t.Fatal(err)
		}
		checkEnd(t, mem)
	}
}

// afterCrash plays what act does to a finished checkpoint, with the power cut at
// each write in turn, and calls check with what is left.
func afterCrash(t *testing.T, act func(d *Dir) error, check func(fs vfs.FS, at int)) {
	t.Helper()
	for at := 0; ; at++ {
		mem := vfs.NewCrashableMem()
		if err := playBatches(mem); err != nil {
			t.Fatal(err)
		}
		broken, seen := failFrom(mem, at, 1<<30)
		d, err := Open(broken, "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		err = act(d)
		for _, unsynced := range []int{0, 50, 100} {
			check(mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsynced, RNG: rand.New(rand.NewPCG(uint64(at), uint64(unsynced)))}), at)
		}
		if err == nil && *seen <= at {
			return
		}
	}
}

func TestInterruptedRewindLeavesSomeLaterBatch(t *testing.T) {
	afterCrash(t, func(d *Dir) error { return d.Rewind(4) }, func(fs vfs.FS, _ int) {
		checkConsistent(t, fs)
		d, err := Open(fs, "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		if last, ok := d.LastCommit(); !ok || last < 4 {
			t.Fatalf("last commit is %d, %v", last, ok)
		}
	})
}

func TestInterruptedRemovalLeavesAllOrNothing(t *testing.T) {
	afterCrash(t, (*Dir).Remove, func(fs vfs.FS, at int) {
		checkConsistent(t, fs)
		d, err := Open(fs, "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		_, hasID, err := d.QueryID()
		if err != nil {
			t.Fatal(err)
		}
		last, has := d.LastCommit()
		if has != hasID || has && last != crashBatches-1 {
			t.Fatalf("write %d: query id %v, last commit %d, %v", at, hasID, last, has)
		}
	})
}
