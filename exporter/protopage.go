package exporter

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// writeProto appends all families to the page as delimited protobuf messages. The
// caller holds mu and took the snapshot.
func (x *Exporter) writeProto(sc *scrape) {
	for _, f := range x.families {
		if len(f.series) == 0 {
			continue
		}
		start := len(sc.page)
		wrote := false
		sc.page = appendSized(sc.page, f.guessWidth(), func(b []byte) []byte {
			b = append(b, f.proto...)
			begun := len(b)
			if f.kind == histogram {
				b = f.protoHistograms(b, sc)
			} else {
				b = f.protoSamples(b, sc)
			}
			wrote = len(b) > begun
			return b
		})
		if !wrote {
			sc.page = sc.page[:start]
		}
		sc.pack()
	}
}

// guessWidth guesses how many bytes the length of f's message takes, so that the
// message need not be moved once its length is known.
func (f *family) guessWidth() int {
	first := &f.series[0]
	each := len(first.labels.proto) + 24
	if first.extra != nil {
		each += len(first.extra.proto)
	}
	if f.kind == histogram {
		each += 40 * len(f.bucketText)
	}
	return varintLen(uint64(len(f.proto) + each*len(f.series)))
}

// protoSamples appends the Metric messages of a gauge or counter family. They are
// the shared bytes of the labels and a value, so the lengths are known beforehand.
func (f *family) protoSamples(b []byte, sc *scrape) []byte {
	tag := byte(tagMetricGauge)
	if f.kind == counter {
		tag = tagMetricCounter
	}
	const valueLen = 9 // tag and double
	for i := range f.series {
		s := &f.series[i]
		v := sc.value(s)
		if v != v {
			continue
		}
		n, body := len(s.labels.proto)+2+valueLen, valueLen
		if s.extra != nil {
			n += len(s.extra.proto)
		}
		if s.born != nil {
			body += 1 + len(s.born.proto)
			n += 1 + len(s.born.proto)
		}
		b = appendVarint(append(b, tagFamilyMetric), uint64(n))
		b = append(b, s.labels.proto...)
		if s.extra != nil {
			b = append(b, s.extra.proto...)
		}
		b = append(b, tag, byte(body), tagValue)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v/f.scale.div))
		if s.born != nil {
			b = append(append(b, tagCounterCreated), s.born.proto...)
		}
	}
	return b
}

// protoHistograms appends the Metric messages of a histogram family, with classic
// and native buckets.
func (f *family) protoHistograms(b []byte, sc *scrape) []byte {
	for i := range f.series {
		s := &f.series[i]
		h := sc.hist(s)
		b = appendNested(b, tagFamilyMetric, func(b []byte) []byte {
			b = append(b, s.labels.proto...)
			if s.extra != nil {
				b = append(b, s.extra.proto...)
			}
			return appendNested(b, tagMetricHistogram, func(b []byte) []byte { return f.protoHistogram(b, s, h) })
		})
	}
	return b
}

// Fields of Histogram and its parts.
const (
	tagHistCount   = 1 << 3
	tagHistSum     = 2<<3 | 1
	tagHistBucket  = 3<<3 | 2
	tagHistSchema  = 5 << 3
	tagHistZero    = 6<<3 | 1
	tagHistZeros   = 7 << 3
	tagHistSpan    = 12<<3 | 2
	tagHistDelta   = 13 << 3
	tagHistCreated = 15<<3 | 2

	tagBucketCount    = 1 << 3
	tagBucketBound    = 2<<3 | 1
	tagBucketExemplar = 3<<3 | 2

	tagSpanOffset = 1 << 3
	tagSpanLength = 2 << 3

	tagExemplarLabel = 1<<3 | 2
	tagExemplarValue = 2<<3 | 1
	tagExemplarTime  = 3<<3 | 2
)

// protoHistogram appends the content of a Histogram message.
func (f *family) protoHistogram(b []byte, s *series, h *hist) []byte {
	b = appendVarint(append(b, tagHistCount), h.count)
	b = appendDouble(b, tagHistSum, f.scale.of(h.sum))
	total := uint64(0)
	for i := range f.bucketText {
		total += h.counts[i]
		bound := math.Inf(1)
		if i < len(f.bounds) {
			bound = f.scale.of(f.bounds[i])
		}
		b = appendNested(b, tagHistBucket, func(b []byte) []byte {
			b = appendVarint(append(b, tagBucketCount), total)
			b = appendDouble(b, tagBucketBound, bound)
			return h.exemplars[i].appendProto(b)
		})
	}
	b = appendNative(b, h)
	if s.born != nil {
		b = append(append(b, tagHistCreated), s.born.proto...)
	}
	return b
}

// appendProto appends the exemplar of a bucket, if there is one. Scrapers of native
// histograms take exemplars from the classic buckets too.
func (e *exemplar) appendProto(b []byte) []byte {
	if !e.set {
		return b
	}
	return appendNested(b, tagBucketExemplar, func(b []byte) []byte {
		var digits [20]byte
		id := strconv.AppendInt(digits[:0], e.batch, 10)
		b = append(b, tagExemplarLabel, byte(2+len("batch_id")+2+len(id)))
		b = appendString(b, tagPairName, "batch_id")
		b = append(append(b, tagPairValue, byte(len(id))), id...)
		b = appendDouble(b, tagExemplarValue, e.value)
		if e.atMs > 0 && e.atMs != event.Absent {
			b = appendTimestamp(b, tagExemplarTime, e.atMs)
		}
		return b
	})
}

// appendNative appends the native buckets: runs of neighbouring buckets as spans,
// counts as differences from bucket to bucket. A short gap is cheaper as empty
// buckets than as a new span.
func appendNative(b []byte, h *hist) []byte {
	b = appendVarint(append(b, tagHistSchema), zigzag(nativeSchema))
	b = appendDouble(b, tagHistZero, nativeZero)
	b = appendVarint(append(b, tagHistZeros), h.zeros)
	if len(h.native) == 0 {
		// An empty span tells a native histogram without observations from a classic one.
		return appendSpan(b, 0, 0)
	}
	next := int32(0)
	for i := 0; i < len(h.native); {
		first := h.native[i].index
		i++
		for i < len(h.native) && h.native[i].index-h.native[i-1].index <= maxGap+1 {
			i++
		}
		end := h.native[i-1].index + 1
		b = appendSpan(b, first-next, int(end-first))
		next = end
	}
	return appendDeltas(b, h)
}

// maxGap is the longest run of empty buckets within a span.
const maxGap = 2

// appendDeltas appends the counts within all spans, each as the difference to the
// one before.
func appendDeltas(b []byte, h *hist) []byte {
	was := int64(0)
	for i, n := range h.native {
		if i > 0 {
			for gap := n.index - h.native[i-1].index - 1; gap > 0 && gap <= maxGap; gap-- {
				b = appendVarint(append(b, tagHistDelta), zigzag(-was))
				was = 0
			}
		}
		b = appendVarint(append(b, tagHistDelta), zigzag(int64(n.count)-was))
		was = int64(n.count)
	}
	return b
}

// appendSpan appends a run of buckets: how far behind the last one it begins, and
// how long it is.
func appendSpan(b []byte, offset int32, length int) []byte {
	o := zigzag(int64(offset))
	b = append(b, tagHistSpan, byte(2+varintLen(o)+varintLen(uint64(length))))
	b = appendVarint(append(b, tagSpanOffset), o)
	return appendVarint(append(b, tagSpanLength), uint64(length))
}
