package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
)

// trace plays a run with losses and returns all that it reports and leaves.
func trace(t *testing.T, version string, twice bool, conf map[string]string) string {
	t.Helper()
	r := newRig(t, version, 3, conf)
	rng := rand.New(rand.NewPCG(5, 5))
	var out strings.Builder
	for b := range 40 {
		for p := range r.ids {
			f := r.batch(p, twice, randomOps(rng, 400, 120)...)
			r.must(r.store(p).Load(r.version(p)))
			r.check(p, r.version(p))
			r.must(r.store(p).Abort())
			fmt.Fprintln(&out, f.Rows, f.MemoryBytes, f.LastUploaded, f.Load, f.Get, f.Put, f.Commit, f.Custom)
		}
		if b%9 == 8 {
			m, err := r.x.Maintain()
			r.must(err)
			fmt.Fprintln(&out, m)
		}
		if b == 25 {
			r.must(r.x.Lose())
			r.start()
		}
	}
	listFiles(r, "ckpt", &out)
	return out.String()
}

func listFiles(r *rig, dir string, out io.Writer) {
	names, err := r.fs.List(dir)
	r.must(err)
	slices.Sort(names)
	for _, name := range names {
		path := r.fs.PathJoin(dir, name)
		info, err := r.fs.Stat(path)
		r.must(err)
		fmt.Fprintln(out, path, info.IsDir() || info.Size() == 0, info.Size())
		if info.IsDir() {
			listFiles(r, path, out)
		}
	}
}

func TestTheSameBatchesGiveTheSameFiguresOnOneCoreAndOnTwo(t *testing.T) {
	for _, c := range []struct {
		version string
		twice   bool
		conf    map[string]string
	}{
		{"3.4.4", false, nil},
		{"3.5.8", true, changelogOn()},
		{"4.0.5", true, nil},
		{"4.1.4", false, changelogOn(rocksConf+"boundedMemoryUsage", "true", rocksConf+"maxMemoryUsageMB", "4")},
		{"4.3.0", true, changelogOn(rocksConf+"compactOnCommit", "true", confPrefix+"checkpointFormatVersion", "2")},
	} {
		was := runtime.GOMAXPROCS(1)
		one := trace(t, c.version, c.twice, c.conf)
		runtime.GOMAXPROCS(2)
		two := trace(t, c.version, c.twice, c.conf)
		runtime.GOMAXPROCS(was)
		if one != two {
			a, b := strings.Split(one, "\n"), strings.Split(two, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Errorf("%s: line %d differs:\n%s\n%s", c.version, i, a[i], b[i])
					break
				}
			}
		}
	}
}

// failAfter lets so many operations on a file system pass and fails all others.
type failAfter struct{ left int }

var errCrash = errors.New("the machine is gone")

func (f *failAfter) String() string { return "failAfter" }

func (f *failAfter) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		return nil
	}
	if f.left--; f.left < 0 {
		return errCrash
	}
	return nil
}

// A driver or executor that dies at any write leaves a checkpoint from which the
// newest version that was committed can be loaded.
func TestACheckpointLoadsWhereverTheExecutorDied(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	rounds := 40
	if raceEnabled || testing.Short() {
		rounds = 8
	}
	for round := range rounds {
		version := []string{"3.4.4", "3.5.8", "4.0.5", "4.3.0"}[round%4]
		conf := []map[string]string{nil, changelogOn(confPrefix+"minDeltasForSnapshot", "3", "spark.sql.streaming.minBatchesToRetain", "2")}[rng.IntN(2)]
		r := newRig(t, version, 1, conf)
		inject := &failAfter{left: 20 + rng.IntN(500)}
		remote, err := checkpoint.Open(errorfs.Wrap(r.fs, inject), "ckpt")
		r.must(err)
		r.ckpt = remote
		r.must(r.x.Close())
		r.start()
		for err == nil && r.version(0) < 60 {
			if _, err = r.tryBatch(0, round%2 == 0, randomOps(rng, 30, 20)...); err == nil {
				_, err = r.x.Maintain()
			}
		}
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("round %d, %s: %v", round, version, err)
		}
		_ = r.x.Lose()
		if r.ckpt, err = checkpoint.Open(r.fs, "ckpt"); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.must(r.store(0).Load(r.version(0)))
		r.check(0, r.version(0))
		r.must(r.store(0).Abort())
		for range 5 { // and it goes on from there
			r.batch(0, false, randomOps(rng, 30, 20)...)
		}
		r.must(r.store(0).Load(r.version(0)))
		r.check(0, r.version(0))
	}
}

func TestOldVersionsAreDeletedSoonOrLazily(t *testing.T) {
	for version, slack := range map[string]int64{"3.4.4": 0, "3.5.8": 0, "4.0.5": 6, "4.3.0": 6} {
		for _, conf := range []map[string]string{{}, changelogOn()} {
			conf["spark.sql.streaming.minBatchesToRetain"] = "20"
			r := newRig(t, version, 1, conf)
			deleted := 0
			for range 120 {
				r.batch(0, false, puts(0, 5, 10)...)
				m, err := r.x.Maintain()
				r.must(err)
				deleted += m.Deleted
			}
			snapshots, changelogs, err := r.ckpt.State(0, 0, "default").List()
			r.must(err)
			oldest := append(snapshots, changelogs...)
			span := r.version(0) - slices.Min(oldest)
			// A version that is kept may need the ten before it.
			if span < 19 || span > 19+10+slack+1 || deleted == 0 {
				t.Errorf("%s: versions go back %d, %d files deleted", version, span, deleted)
			}
			r.checkKept()
		}
	}
}

// Two attempts at a version leave two files; the commit log says which counts.
func TestTheCommittedOneOfTwoAttemptsIsLoaded(t *testing.T) {
	r := newRig(t, "4.1.4", 1, changelogOn(confPrefix+"checkpointFormatVersion", "2"))
	for range 3 {
		r.batch(0, false, puts(0, 3, 5)...)
	}
	want := r.batch(0, false, op{key: "winner", value: "1"}).UniqueID
	r.must(r.x.Lose())
	r.start()
	id := r.ids[0]
	r.x.SetUniqueID(id, 3, "")
	r.must(r.store(0).Load(3))
	r.must(r.store(0).Put(0, []byte("loser"), []byte("1")))
	r.must(r.store(0).Commit())
	if got := r.store(0).Figures().UniqueID; got == want || len(got) != len("xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx") {
		t.Errorf("unique id %q after %q", got, want)
	}
	r.must(r.x.Lose())
	r.start()
	r.x.SetUniqueID(id, 4, want)
	r.must(r.store(0).Load(4))
	r.check(0, 4)
}

func TestUnloadingAtEachCommitFetchesEachBatch(t *testing.T) {
	r := newRig(t, "4.2.1", 1, changelogOn(confPrefix+"unloadOnCommit", "true"))
	var f *Figures
	for range 25 {
		f = r.batch(0, false, puts(0, 5, 10)...)
		if f.LastUploaded != none {
			t.Fatal("an instance of one batch has uploaded something")
		}
	}
	if f.Custom[event.RocksDBNumLoadedFromDfs] != 1 || f.Custom[event.RocksDBFilesReused] != 0 {
		t.Errorf("fetched %v, %v files reused", f.Custom[event.RocksDBNumLoadedFromDfs], f.Custom[event.RocksDBFilesReused])
	}
}

func TestAMovedStoreIsGoneWithItsSnapshot(t *testing.T) {
	r := newRig(t, "4.0.5", 2, changelogOn())
	for range 12 {
		r.batch(0, false, puts(0, 3, 5)...)
		r.batch(1, false, puts(0, 3, 5)...)
	}
	r.must(r.x.Unload(r.ids[0]))
	if got := r.x.Stores(); !slices.Equal(got, r.ids[1:]) {
		t.Errorf("stores %v are left", got)
	}
	m, err := r.x.Maintain()
	r.must(err)
	if m.Uploaded != 1 {
		t.Errorf("%d snapshots uploaded", m.Uploaded)
	}
	r.batch(0, false)
	r.must(r.store(0).Load(13))
	r.check(0, 13)
}

// tickMeter is a clock on which every look takes a millisecond.
type tickMeter struct{ now time.Duration }

func (m *tickMeter) Begin(device.Step) device.Mark {
	m.now += time.Millisecond
	return device.Mark(m.now)
}

func (m *tickMeter) End(_ device.Step, k device.Mark, _ device.Work) time.Duration {
	m.now += time.Millisecond
	return m.now - time.Duration(k)
}

func TestLiveTimesAreMeasuredCallByCall(t *testing.T) {
	for _, version := range []string{"3.4.4", "4.3.0"} {
		r := newRig(t, version, 1, nil)
		r.o.Live = true
		r.start()
		r.x.SetMeter(&tickMeter{})
		s := r.store(0)
		r.must(s.Load(0))
		for i := range 5 {
			r.must(s.Put(0, []byte{byte(i)}, nil))
		}
		before := *s.Figures()
		if before.Get != 5*time.Millisecond || before.Commit != 0 {
			t.Errorf("%s: gets took %v and a commit %v before the commit", version, before.Get, before.Commit)
		}
		r.must(s.Commit())
		want := 5 * time.Millisecond
		if version == "3.4.4" {
			want = 0 // part of the commit
		}
		if f := s.Figures(); f.Put != want || f.Commit == 0 || f.Custom[event.RocksDBPutLatency] != 5 {
			t.Errorf("%s: puts took %v, reported as %v, the commit %v", version, f.Put, f.Custom[event.RocksDBPutLatency], f.Commit)
		}
	}
}

func TestStoresWorkOnARealDisk(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, "4.3.0", 1, changelogOn(confPrefix+"minDeltasForSnapshot", "2"))
	r.must(r.x.Close())
	r.fs = vfs.Default
	var err error
	r.ckpt, err = checkpoint.Open(vfs.Default, vfs.Default.PathJoin(dir, "ckpt"))
	r.must(err)
	r.o = Options{}
	r.startIn(dir)
	for range 5 {
		r.batch(0, false, puts(0, 5, 10)...)
		_, err := r.x.Maintain()
		r.must(err)
	}
	r.must(r.x.Lose())
	r.startIn(dir)
	r.must(r.store(0).Load(5))
	r.check(0, 5)
}

func TestTablesOfALaterRunHaveOtherNames(t *testing.T) {
	r := newRig(t, "4.3.0", 1, nil)
	tables := func() int {
		names, err := r.fs.List(r.fs.PathJoin(r.ckpt.State(0, 0, "default").Path(), "SSTs"))
		r.must(err)
		ids := map[string]bool{}
		for _, name := range names {
			_, id, _ := strings.Cut(name, "-")
			ids[id] = true
		}
		return len(ids)
	}
	for run := range 3 {
		for range 3 {
			r.batch(0, false, puts(0, 3, 5)...)
		}
		r.must(r.x.Lose())
		r.salt = 0 // as a process does that starts over
		r.start()
		if got := tables(); got < 3*(run+1) {
			t.Errorf("%d names after %d runs", got, run+1)
		}
	}
}

// Another run can replace a version that this one has made: its rows count then.
func TestRowsOfAReplacedVersionAreCountedAnew(t *testing.T) {
	r := newRig(t, "4.0.5", 1, changelogOn())
	for range 3 {
		r.batch(0, true, puts(0, 3, 5)...)
	}
	own := r.x
	r.x = nil
	r.start()
	id := r.ids[0]
	r.truth[id] = r.truth[id][:3]
	r.batch(0, true, puts(50, 4, 5)...)
	r.must(r.x.Close())
	r.x = own
	if f := r.batch(0, true); f.Rows != 7 {
		t.Errorf("%d rows, want 7", f.Rows)
	}
}
