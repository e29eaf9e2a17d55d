package exporter

import (
	"math"
	"slices"
	"sort"

	"github.com/stategauge/stategauge/event"
)

// maxBuckets is the number of classic buckets of any histogram, +Inf included.
const maxBuckets = 15

// batchBounds and syncBounds are the classic upper bounds, in seconds.
var (
	batchBounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600}
	syncBounds  = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
)

// hist is a histogram in both forms: classic buckets and sparse native ones of
// schema 3, which are 9 % wide. Its content is guarded by the query's mu.
type hist struct {
	family    *family
	counts    [maxBuckets]uint64 // per bucket, not cumulative
	exemplars [maxBuckets]exemplar
	sum       float64 // raw
	count     uint64
	zeros     uint64         // native: observations of 0
	native    []nativeBucket // sorted by index
	// boundsMark says with which bounds a saved one was filled.
	boundsMark uint64
}

type nativeBucket struct {
	index int32
	count uint64
}

// exemplar is the batch that a bucket saw last.
type exemplar struct {
	batch int64
	value float64 // exported unit
	atMs  int64   // end of the batch; event.Absent where not known
	set   bool
}

// observation is one value on its way into a histogram.
type observation struct {
	hist  uint32
	raw   float64
	batch int64 // event.Absent where the carrier names none
	endMs int64
}

func newHist(f *family) *hist { return &hist{family: f} }

func (h *hist) observe(o *observation) {
	f := h.family
	i := f.bucketOf(o.raw)
	h.counts[i]++
	h.sum += o.raw
	h.count++
	v := f.scale.of(o.raw)
	if o.batch != event.Absent {
		h.exemplars[i] = exemplar{batch: o.batch, value: v, atMs: o.endMs, set: true}
	}
	h.observeNative(v)
}

// bucketOf returns the classic bucket of a raw value.
func (f *family) bucketOf(raw float64) int { return sort.SearchFloat64s(f.bounds, raw) }

func (h *hist) observeNative(v float64) {
	if v <= nativeZero {
		h.zeros++
		return
	}
	key := nativeIndex(v)
	i, found := slices.BinarySearchFunc(h.native, key, func(b nativeBucket, k int32) int { return int(b.index) - int(k) })
	if found {
		h.native[i].count++
		return
	}
	h.native = slices.Insert(h.native, i, nativeBucket{index: key, count: 1})
}

// nativeSchema is the resolution of native histograms: 2^3 buckets per doubling.
const nativeSchema = 3

// nativeZero is the width of the zero bucket: 2^-128, as client_golang has it.
const nativeZero = 2.938735877055719e-39

// nativeBounds are the upper bounds of schema 3 within [0.5, 1), exact.
var nativeBounds = []float64{
	0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
}

// nativeIndex returns the bucket of v, which is above the zero bucket.
func nativeIndex(v float64) int32 {
	frac, exp := math.Frexp(v)
	return int32(sort.SearchFloat64s(nativeBounds, frac) + (exp-1)*len(nativeBounds))
}
