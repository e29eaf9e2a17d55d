package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/spark"
)

// capturedBatch is what a running Spark reported of its one operator.
type capturedBatch struct {
	StartMs                                  int64
	Total, Updated, Removed, Memory          int64
	State, Hits, Misses                      int64
	Uploaded                                 []int64 // per partition
	HasUploaded, HasRepaired, HasForceCounts bool
}

// readCaptured reads the progress events of a captured run.
func readCaptured(t *testing.T, run string) []capturedBatch {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "spark", run+".ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var batches []capturedBatch
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p struct {
			Timestamp      time.Time
			StateOperators []struct {
				NumRowsTotal, NumRowsUpdated, NumRowsRemoved, MemoryUsedBytes int64
				CustomMetrics                                                 map[string]int64
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if len(p.StateOperators) == 0 {
			continue
		}
		o := p.StateOperators[0]
		c := capturedBatch{
			StartMs: p.Timestamp.UnixMilli(),
			Total:   o.NumRowsTotal, Updated: o.NumRowsUpdated, Removed: o.NumRowsRemoved, Memory: o.MemoryUsedBytes,
			State: o.CustomMetrics["stateOnCurrentVersionSizeBytes"],
			Hits:  o.CustomMetrics["loadedMapCacheHitCount"], Misses: o.CustomMetrics["loadedMapCacheMissCount"],
		}
		_, c.HasRepaired = o.CustomMetrics["numSnapshotsAutoRepaired"]
		_, c.HasForceCounts = o.CustomMetrics["forceSnapshotCount"]
		for p := range 4 {
			v, ok := o.CustomMetrics[fmt.Sprintf("SnapshotLastUploaded.partition_%d_default", p)]
			if ok {
				c.HasUploaded, c.Uploaded = true, append(c.Uploaded, v)
			}
		}
		batches = append(batches, c)
	}
	if len(batches) < 80 {
		t.Fatalf("%s has %d batches", run, len(batches))
	}
	return batches
}

// replayJob plays a captured job's changes on four partitions.
type replayJob struct {
	run                 string
	version             event.Version
	loadsTwice          bool
	keyBytes, rowBytes  int // as Spark encodes the job's rows
	maintenanceOffsetMs int64
}

// twin is the simulated operator beside the captured one.
type twin struct {
	t      *testing.T
	job    replayJob
	stores []*hdfsStore
	meter  tallyMeter
	nowMs  int64
	next   int // number of the next key, oldest rows going first
	oldest int
}

func newTwin(t *testing.T, job replayJob) *twin {
	dir, err := checkpoint.Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	conf, faults := spark.ParseConf(map[string]string{"spark.sql.streaming.stateStore.maintenanceInterval": "10s"}, job.version)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if conf.Provider != spark.HDFS {
		t.Fatal("the HDFS provider is no longer the default")
	}
	w := &twin{t: t, job: job}
	for p := range 4 {
		w.stores = append(w.stores, newHDFS(hdfsOptions{
			ID: ID{Partition: p, Name: "default"}, Dir: dir.State(0, p, "default"), Conf: &conf, Version: job.version,
			Meter: func() device.Meter { return &w.meter }, Now: func() int64 { return w.nowMs },
		}))
	}
	return w
}

// play makes the changes that a captured batch reports, and returns the sums.
func (w *twin) play(version int64, c capturedBatch, before int64) (sum Figures) {
	sum.Custom.Clear()
	added := c.Total - before + c.Removed
	replaced := c.Updated - added
	for p, s := range w.stores {
		load := s.Load
		if w.job.loadsTwice {
			load = s.LoadReadWrite
		}
		w.must(load(version))
		w.change(s, p, added, replaced, c.Removed)
		w.must(s.Commit())
		addFigures(&sum, s.Figures())
	}
	w.next, w.oldest = w.next+int(added), w.oldest+int(c.Removed)
	return sum
}

func addFigures(sum *Figures, f *Figures) {
	sum.Rows += f.Rows
	sum.MemoryBytes += f.MemoryBytes
	for id := range f.Custom {
		if !f.Custom.Has(event.MetricID(id)) {
			continue
		}
		if !sum.Custom.Has(event.MetricID(id)) {
			sum.Custom[id] = 0
		}
		sum.Custom[id] += f.Custom[id]
	}
}

// change writes and removes the rows of one partition: each fourth of all.
func (w *twin) change(s *hdfsStore, partition int, added, replaced, removed int64) {
	value := make([]byte, w.job.rowBytes)
	put := func(from, n int) {
		for i := from; i < from+n; i++ {
			if i%4 == partition {
				w.must(s.Put(0, w.key(i), value))
			}
		}
	}
	put(w.next, int(added))
	put(w.next-int(max(replaced, 0)), int(max(replaced, 0)))
	for i := w.oldest; i < w.oldest+int(removed); i++ {
		if i%4 == partition {
			w.must(s.Delete(0, w.key(i)))
		}
	}
}

func (w *twin) key(i int) []byte {
	return fmt.Appendf(make([]byte, 0, w.job.keyBytes), "%0*d", w.job.keyBytes, i)
}

func (w *twin) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestFiguresAreLikeThoseOfARunningSpark(t *testing.T) {
	for _, job := range []replayJob{
		// orders deduplicated by id and time: two longs as key, no value
		{run: "3.4.4/dedupe-hdfs", version: hdfs34, keyBytes: 24, rowBytes: 16, maintenanceOffsetMs: 4_500},
		// windowed counts per customer: a window and a long as key, two longs as value
		{run: "4.1.4/agg-hdfs", version: hdfs41, loadsTwice: true, keyBytes: 48, rowBytes: 24, maintenanceOffsetMs: 3_990},
	} {
		t.Run(strings.ReplaceAll(job.run, "/", "-"), func(t *testing.T) { compareWithCaptured(t, job) })
	}
}

func compareWithCaptured(t *testing.T, job replayJob) {
	batches := readCaptured(t, job.run)
	w := newTwin(t, job)
	var before int64
	nextMaintenance := batches[0].StartMs - batches[0].StartMs%10_000 + job.maintenanceOffsetMs
	var ratios []float64
	for i, c := range batches {
		for nextMaintenance < c.StartMs {
			w.nowMs = nextMaintenance
			for _, s := range w.stores {
				_, err := s.maintain()
				w.must(err)
			}
			nextMaintenance += 10_000
		}
		w.nowMs = c.StartMs
		sum := w.play(int64(i), c, before)
		before = c.Total
		w.compareCounts(i, c, &sum)
		ratios = append(ratios, w.compareSizes(i, c, &sum)...)
	}
	t.Logf("sizes: simulated over reported %.2f on average", math.Exp(meanOf(ratios)))
}

// compareCounts holds figures that depend on nothing but what happened.
func (w *twin) compareCounts(i int, c capturedBatch, sum *Figures) {
	w.t.Helper()
	got := [...]int64{sum.Rows, int64(sum.Custom[event.LoadedMapCacheHitCount]), int64(sum.Custom[event.LoadedMapCacheMissCount])}
	if want := [...]int64{c.Total, c.Hits, c.Misses}; got != want {
		w.t.Errorf("batch %d: rows, hits, misses %v, Spark reported %v", i, got, want)
	}
	if c.HasRepaired != sum.Custom.Has(event.HDFSNumSnapshotsAutoRepaired) || c.HasForceCounts != sum.Custom.Has(event.HDFSForceSnapshotCount) {
		w.t.Errorf("batch %d: other keys than Spark's", i)
	}
	if !c.HasUploaded {
		return
	}
	for p, s := range w.stores {
		// Partitions take turns in a maintenance round: one that commits between
		// is a version ahead of or behind the others.
		if last := s.figures.LastUploaded; last-c.Uploaded[p] > 1 || c.Uploaded[p]-last > 1 {
			// In the batch that runs during a round some have their new version and
			// others have not.
			if !w.duringRound(c) {
				w.t.Errorf("batch %d: partition %d uploaded %d, Spark %d", i, p, last, c.Uploaded[p])
			}
		}
	}
}

func (w *twin) duringRound(c capturedBatch) bool {
	for _, v := range c.Uploaded {
		if v != c.Uploaded[0] && v-c.Uploaded[0] > 1 {
			return true
		}
	}
	return false
}

// compareSizes holds sizes to the estimates of Spark, exactly where the state is
// empty and by order of magnitude elsewhere: Spark looks at samples of large
// maps. It returns the logarithms of both ratios.
func (w *twin) compareSizes(i int, c capturedBatch, sum *Figures) []float64 {
	w.t.Helper()
	var logs []float64
	for name, pair := range map[string][2]float64{
		"memory": {float64(sum.MemoryBytes), float64(c.Memory)},
		"state":  {sum.Custom[event.StateOnCurrentVersionSizeBytes], float64(c.State)},
	} {
		ratio := pair[0] / pair[1]
		if c.Total == 0 && ratio != 1 || ratio < 0.5 || ratio > 2 {
			w.t.Errorf("batch %d with %d rows: %s is %.0f bytes, Spark reported %.0f", i, c.Total, name, pair[0], pair[1])
		}
		if c.Total > 0 {
			logs = append(logs, math.Log(ratio))
		}
	}
	return logs
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
