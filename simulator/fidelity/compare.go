package fidelity

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Comparison is what a captured run and its twin have in common.
type Comparison struct {
	Run     *Run
	Batches int // compared; both runs have as many
	// Missing and Extra are keys that the twin lacks in some batch, or has beyond
	// those of the captured run.
	Missing, Extra []string
	Figures        []Figure
	Sums           []Sum
}

// Figure is one number of the reports over a run.
type Figure struct {
	Path string
	Kind Kind
	// Nonzero counts the batches in which Spark and the twin had it.
	NonzeroSpark, NonzeroTwin int
	// Odd counts the batches in which it was 0 for one of the two only.
	Odd int
	// Ratio is the twin's median over Spark's, of the batches where it was not 0;
	// 0 where that was in fewer than five batches of either.
	Ratio float64
}

// Kind groups figures by how near to Spark's a simulated one can be.
type Kind uint8

// The kinds.
const (
	KindRows   Kind = iota // rows, keys, calls: follow from the job
	KindBytes              // what is written and read by the job's own calls
	KindTree               // what the LSM tree does by itself: files, cache, compaction, memory
	KindTime               // milliseconds; the devices of the captured runs are not known
	KindMoment             // times of day
	numKinds
)

var kindNames = [numKinds]string{"rows and calls", "bytes of rows", "tree, files and memory", "times", "event time"}

// String returns the kind in words.
func (k Kind) String() string { return kindNames[k] }

// Factor is how many times larger or smaller a median may be. Times of day are
// not compared so.
func (k Kind) Factor() float64 { return [numKinds]float64{1.35, 1.5, 4, 8, 0}[k] }

// trees are the figures of KindTree by the name behind rocksdb.
var trees = map[string]bool{
	"BytesCopied": true, "FilesCopied": true, "FilesReused": true, "ZipFileBytesUncompressed": true, "SstFileSize": true,
	"ReadBlockCacheHitCount": true, "ReadBlockCacheMissCount": true, "PinnedBlocksMemoryUsage": true,
	uploaded: true, "TotalBytesReadByCompaction": true, "TotalBytesWrittenByCompaction": true, "TotalBytesWrittenByFlush": true,
}

// kindOf tells what a path's figure is, false for those that say nothing about the
// simulator: ids, rates, which follow from others, and offsets.
func kindOf(path string) (Kind, bool) {
	name := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case strings.HasSuffix(name, "Offset"), strings.HasSuffix(name, "PerSecond"), name == "batchId":
		return 0, false
	case strings.HasPrefix(path, "eventTime."):
		return KindMoment, true
	case strings.HasPrefix(path, "durationMs."), name == "batchDuration":
		return KindTime, true
	case trees[strings.TrimPrefix(name, "rocksdb")], name == "memoryUsedBytes":
		return KindTree, true
	}
	key := strings.TrimPrefix(path[min(len(path), len("stateOperators.0.")):], "customMetrics.")
	if id, ok := event.ByKey(event.ScopeOperator, []byte(key)); ok {
		switch event.Lookup(id).Unit {
		case event.UnitSeconds:
			return KindTime, true
		case event.UnitBytes:
			return KindBytes, true
		}
	}
	return KindRows, true
}

// Compare sets what the twin said beside what Spark said, batch by batch.
func Compare(r *Run, twin []Batch) *Comparison {
	c := &Comparison{Run: r, Batches: min(len(r.Batches), len(twin))}
	spark, twin := r.Batches[:c.Batches], twin[:c.Batches]
	c.Missing = lacking(spark, twin)
	c.Extra = lacking(twin, spark)
	for _, path := range paths(spark, twin) {
		if kind, ok := kindOf(path); ok {
			c.Figures = append(c.Figures, figure(path, kind, spark, twin))
		}
	}
	for i := range relations {
		if s, ok := relations[i].hold(r, spark, twin); ok {
			c.Sums = append(c.Sums, s)
		}
	}
	return c
}

// lacking lists the keys that a has in some batch and b has not in the same one.
func lacking(a, b []Batch) (out []string) {
	seen := map[string]bool{}
	for i := range a {
		for _, k := range a[i].Keys {
			if !seen[k] && !b[i].has(k) {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sort.Strings(out)
	return out
}

// paths lists all figures, sorted.
func paths(runs ...[]Batch) (out []string) {
	seen := map[string]bool{}
	for _, batches := range runs {
		for i := range batches {
			for k := range batches[i].Values {
				if !seen[k] {
					seen[k] = true
					out = append(out, k)
				}
			}
		}
	}
	sort.Strings(out)
	return out
}

// floored is how many milliseconds a timer may have in one run and not at all in
// the other: each store cuts its time to whole ones, and those of a few
// milliseconds come to 0 in one batch and not in the next. It is for each store.
const floored = 6

// few is how many batches a median needs, and how many rows may come by chance in
// one batch and not in the other's.
const few = 5

// byChance are rows whose number in a batch is a matter of which keys come: late
// ones, first ones of a key, and what a timer or a time to live ends.
var byChance = map[string]bool{
	"numRowsDroppedByWatermark": true, "numRegisteredTimers": true, "numDeletedTimers": true, "numValuesRemovedDueToTTLExpiry": true,
	"numRowsRemoved": true,
}

func figure(path string, kind Kind, spark, twin []Batch) Figure {
	f := Figure{Path: path, Kind: kind}
	var ofSpark, ofTwin []float64
	for i := range spark {
		x, y := spark[i].Values[path], twin[i].Values[path]
		if x != 0 {
			ofSpark = append(ofSpark, x)
		}
		if y != 0 {
			ofTwin = append(ofTwin, y)
		}
		if (x == 0) == (y == 0) || kind == KindTime && math.Max(x, y) <= floored*stores(&spark[i]) {
			continue
		}
		if byChance[f.Name()] && math.Max(x, y) <= few {
			continue
		}
		f.Odd++
	}
	if kind == KindTime && math.Max(typical(ofSpark), typical(ofTwin)) <= floored*stores(&spark[0]) {
		f.Odd = 0 // a few milliseconds as a rule; the rest is a pause of the machine
	}
	f.NonzeroSpark, f.NonzeroTwin = len(ofSpark), len(ofTwin)
	if kind != KindMoment && len(ofSpark) >= few && len(ofTwin) >= few {
		f.Ratio = median(ofTwin) / median(ofSpark)
		if byChance[f.Name()] && math.Abs(median(ofTwin)-median(ofSpark)) <= few {
			f.Ratio = 0
		}
	}
	return f
}

// stores is how many stores a batch's operators have, 1 where there are none.
func stores(b *Batch) float64 {
	var n float64
	for i := range b.Operators() {
		n += b.Values[operatorPath(i)+"numStateStoreInstances"]
	}
	return math.Max(n, 1)
}

// typical is the median, 0 of nothing.
func typical(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return median(v)
}

func median(v []float64) float64 {
	sort.Float64s(v)
	return v[len(v)/2]
}

// Far tells whether the ratio of medians is beyond a factor.
func (f *Figure) Far(factor float64) bool {
	return f.Ratio != 0 && factor > 0 && (f.Ratio > factor || f.Ratio < 1/factor)
}

// OddAllowed is in how many of so many batches a figure may be 0 for one of the
// two only: one in twenty, and three in a short run.
func OddAllowed(batches int) int { return max(batches/20, 3) }

// Name is the figure's key with the operator's place where there are several.
func (f *Figure) Name() string {
	return strings.TrimPrefix(strings.TrimPrefix(f.Path, "stateOperators.0."), "customMetrics.")
}

// String tells the figure's numbers.
func (f *Figure) String() string {
	return fmt.Sprintf("%s: not 0 in %d batches, %d of the twin; 0 for one only in %d; median times %.2f", f.Name(), f.NonzeroSpark, f.NonzeroTwin, f.Odd, f.Ratio)
}
