package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
)

// fixedMeter charges a millisecond and a half for each step and request, a
// microsecond for each operation and a millisecond for each 100 kB: enough for
// every part that does something to show.
type fixedMeter struct{ slow float64 }

func (m fixedMeter) Begin(device.Step) device.Mark { return 0 }

func (m fixedMeter) End(s device.Step, _ device.Mark, w device.Work) time.Duration {
	d := time.Duration(w.Ops)*time.Microsecond + time.Duration(w.Requests)*3*time.Millisecond/2
	d += time.Duration(w.BytesIn+w.BytesOut+w.RemoteIn+w.RemoteOut) * 10 * time.Nanosecond
	switch s {
	case device.StepFlush, device.StepCompact, device.StepBackground, device.StepCheckpoint, device.StepZip, device.StepOpen:
		d += 3 * time.Millisecond / 2
	}
	if m.slow > 0 {
		d = time.Duration(float64(d) * m.slow)
	}
	return d
}

// rig is an executor with what it needs, and the truth about its stores.
type rig struct {
	tb    testing.TB
	fs    vfs.FS
	ckpt  *checkpoint.Dir
	conf  spark.Conf
	v     event.Version
	x     *Executor
	salt  uint64
	nowMs int64
	o     Options // what is not set by the rig itself

	loaded   func() // called between load and the first change; nil: nothing
	families []Family
	ids      []ID
	truth    map[ID][]map[string]string // by version
}

const (
	confPrefix = "spark.sql.streaming.stateStore."
	rocksConf  = confPrefix + "rocksdb."
)

func newRig(tb testing.TB, version string, partitions int, conf map[string]string) *rig {
	tb.Helper()
	v, err := spark.ParseVersion(version)
	if err != nil {
		tb.Fatal(err)
	}
	given := map[string]string{confPrefix + "providerClass": spark.RocksDBClass}
	maps.Copy(given, conf)
	c, faults := spark.ParseConf(given, v)
	if len(faults) > 0 {
		tb.Fatal(faults)
	}
	r := &rig{tb: tb, fs: vfs.NewMem(), conf: c, v: v, nowMs: 1, truth: make(map[ID][]map[string]string)}
	if r.ckpt, err = checkpoint.Open(r.fs, "ckpt"); err != nil {
		tb.Fatal(err)
	}
	for p := range partitions {
		id := ID{Partition: p, Name: "default"}
		r.ids = append(r.ids, id)
		r.truth[id] = []map[string]string{{}}
	}
	r.start()
	tb.Cleanup(func() { r.must(r.x.Close()) })
	return r
}

func (r *rig) must(err error) {
	r.tb.Helper()
	if err != nil {
		r.tb.Fatal(err)
	}
}

// start begins with a new executor.
func (r *rig) start() {
	r.tb.Helper()
	r.startIn("")
}

// startIn is start with the local folder below dir.
func (r *rig) startIn(dir string) {
	r.tb.Helper()
	r.salt++
	o := r.o
	o.FS, o.Dir, o.Checkpoint, o.Conf, o.Version = r.fs, r.fs.PathJoin(dir, fmt.Sprintf("local%d", r.salt)), r.ckpt, &r.conf, r.v
	o.Seed, o.Salt, o.Meter = 1, r.salt, fixedMeter{}
	x, err := NewExecutor(o)
	r.must(err)
	x.SetNow(r.nowMs)
	r.x = x
}

func (r *rig) store(p int) Store {
	r.tb.Helper()
	s, err := r.x.Store(r.ids[p], r.families)
	r.must(err)
	return s
}

func (r *rig) rocks(p int) *rocksDB { return r.store(p).(*rocksDB) }

// version is the newest one that was committed.
func (r *rig) version(p int) int64 { return int64(len(r.truth[r.ids[p]])) - 1 }

// op is one change; a deletion has no value.
type op struct {
	key, value string
	remove     bool
}

// batch runs a batch on one partition, on top of the newest version.
func (r *rig) batch(p int, twice bool, ops ...op) *Figures {
	r.tb.Helper()
	f, err := r.tryBatch(p, twice, ops...)
	r.must(err)
	return f
}

func (r *rig) tryBatch(p int, twice bool, ops ...op) (*Figures, error) {
	r.tb.Helper()
	s, id := r.store(p), r.ids[p]
	load := s.Load
	if twice {
		load = func(v int64) error { return LoadReadWrite(s, v) }
	}
	if err := load(r.version(p)); err != nil {
		return nil, err
	}
	if r.loaded != nil {
		r.loaded()
	}
	state := maps.Clone(r.truth[id][r.version(p)])
	for _, o := range ops {
		if o.remove {
			delete(state, o.key)
			r.must(s.Delete(0, []byte(o.key)))
			continue
		}
		state[o.key] = o.value
		r.must(s.Put(0, []byte(o.key), []byte(o.value)))
	}
	if err := s.Commit(); err != nil {
		return nil, err
	}
	r.truth[id] = append(r.truth[id], state)
	return s.Figures(), nil
}

// check compares the loaded state with the truth about a version.
func (r *rig) check(p int, version int64) {
	r.tb.Helper()
	s := r.store(p)
	want := r.truth[r.ids[p]][version]
	got := map[string]string{}
	r.must(s.Scan(0, nil, nil, func(k, v []byte) bool {
		got[string(k)] = string(v)
		return true
	}))
	if !maps.Equal(got, want) {
		r.tb.Fatalf("version %d of partition %d has %d rows, want %d: %v, want %v", version, p, len(got), len(want), sample(got), sample(want))
	}
	if len(want) == 0 {
		return
	}
	k := slices.Min(slices.Collect(maps.Keys(want)))
	if v, found, err := s.Get(0, []byte(k)); err != nil || !found || string(v) != want[k] {
		r.tb.Fatalf("version %d of partition %d: get %s = %q, %v, %v, want %q", version, p, k, v, found, err, want[k])
	}
}

func sample(m map[string]string) []string {
	keys := slices.Sorted(maps.Keys(m))
	return keys[:min(len(keys), 8)]
}

func puts(from, n, size int) []op {
	var ops []op
	for i := range n {
		k := fmt.Sprintf("key%08d", from+i)
		ops = append(ops, op{key: k, value: fmt.Sprintf("%0*d", size, from+i)})
	}
	return ops
}

func changelogOn(more ...string) map[string]string {
	m := map[string]string{rocksConf + "changelogCheckpointing.enabled": "true"}
	for i := 0; i+1 < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}
