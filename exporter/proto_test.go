package exporter

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stategauge/stategauge/event"
)

func TestVarintsAreAsLongAsTheySay(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 16383, 16384, 1<<21 - 1, 1 << 21, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		b := appendVarint(nil, v)
		if len(b) != varintLen(v) || !bytes.Equal(b, protowire.AppendVarint(nil, v)) {
			t.Errorf("%d takes %d bytes, not %d", v, len(b), varintLen(v))
		}
	}
	for _, v := range []int64{0, -1, 1, -64, 64, math.MaxInt64, math.MinInt64} {
		if zigzag(v) != protowire.EncodeZigZag(v) {
			t.Errorf("zigzag of %d is %d", v, zigzag(v))
		}
	}
}

func TestTimestampsAreWhatTheLibraryReads(t *testing.T) {
	for _, ms := range []int64{1000, 1001, 1999, t0, t0 + 5, t0 + 500, 4_000_000_000_123} {
		b := appendTimestamp(nil, tagExemplarTime, ms)
		var e dto.Exemplar
		if err := proto.Unmarshal(b, &e); err != nil || e.Timestamp.AsTime().UnixMilli() != ms {
			t.Errorf("%d is read as %v, %v", ms, e.Timestamp.AsTime(), err)
		}
		want, err := proto.Marshal(&dto.Exemplar{Timestamp: timestamppb.New(time.UnixMilli(ms))})
		if err != nil || !bytes.Equal(b, want) {
			t.Errorf("%d is % x, the library writes % x", ms, b, want)
		}
	}
}

func TestLabelPairsAreWhatTheLibraryWrites(t *testing.T) {
	for _, v := range []string{"", "x", strings.Repeat("y", 127), strings.Repeat("z", 128), strings.Repeat("\u00fc", 200)} {
		got := appendLabelPair(nil, tagMetricLabel, event.Label{Name: "name", Value: v})
		want, err := proto.Marshal(&dto.Metric{Label: []*dto.LabelPair{{Name: new("name"), Value: &v}}})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("a value of %d bytes: % x, want % x", len(v), got, want)
		}
	}
}

// A wrong guess at the width of a length costs a move, never the message.
func TestLengthsAreRightWhateverWasGuessed(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 16383, 16384, 1 << 21} {
		for guess := 1; guess <= 5; guess++ {
			b := appendSized([]byte("before"), guess, func(b []byte) []byte { return append(b, bytes.Repeat([]byte{'x'}, n)...) })
			want := append(protowire.AppendVarint([]byte("before"), uint64(n)), bytes.Repeat([]byte{'x'}, n)...)
			if !bytes.Equal(b, want) {
				t.Errorf("%d bytes with a guess of %d are %d long, want %d", n, guess, len(b), len(want))
			}
		}
	}
}

func TestStampsOfUnknownTimesAreNone(t *testing.T) {
	if newStamp(0) != nil || newStamp(-1) != nil {
		t.Error("a time that is not known has a stamp")
	}
	s := newStamp(1_700_000_000_250)
	if string(s.text) != "1700000000.25" || s.dto().AsTime().UnixMilli() != 1_700_000_000_250 {
		t.Errorf("stamp reads %s and %v", s.text, s.dto().AsTime())
	}
	if (*stamp)(nil).dto() != nil {
		t.Error("no stamp has a time")
	}
}

func TestNativeBucketsOfTheLibrary(t *testing.T) {
	// Upper bounds belong to their bucket, as in the library.
	for i, b := range nativeBounds {
		if got := nativeIndex(b); got != int32(i)-8 {
			t.Errorf("bound %g is in bucket %d, want %d", b, got, i-8)
		}
		if got := nativeIndex(math.Nextafter(b, 2)); got != int32(i)-7 {
			t.Errorf("just above %g is in bucket %d, want %d", b, got, i-7)
		}
	}
	for _, c := range []struct {
		v    float64
		want int32
	}{{1, 0}, {2, 8}, {4, 16}, {0.25, -16}, {1.0001, 1}, {1024, 80}} {
		if got := nativeIndex(c.v); got != c.want {
			t.Errorf("%g is in bucket %d, want %d", c.v, got, c.want)
		}
	}
}

func TestGapsBetweenNativeBuckets(t *testing.T) {
	f := func(indexes []int32, spans string) {
		t.Helper()
		h := &hist{family: newHistogram("h", "H.", "", scaleOf(1), nil)}
		for i, at := range indexes {
			h.native = append(h.native, nativeBucket{at, uint64(i + 1)})
		}
		var got dto.Histogram
		if err := proto.Unmarshal(appendNative(nil, h), &got); err != nil {
			t.Fatal(err)
		}
		var want dto.Histogram
		dtoNative(&want, h)
		var b strings.Builder
		at := int32(0)
		for _, s := range got.PositiveSpan {
			at += s.GetOffset()
			b.WriteString(strings.TrimSpace(" "+itoa(at)+"+"+itoa(int32(s.GetLength()))) + " ")
			at += int32(s.GetLength())
		}
		if strings.TrimSpace(b.String()) != spans {
			t.Errorf("%v make spans %s, want %s", indexes, b.String(), spans)
		}
		if !proto.Equal(&dto.Histogram{PositiveSpan: got.PositiveSpan, PositiveDelta: got.PositiveDelta}, &want) {
			t.Errorf("%v: page %v, Collector %v", indexes, &got, &want)
		}
	}
	f(nil, "0+0")
	f([]int32{5}, "5+1")
	f([]int32{5, 6, 7}, "5+3")
	f([]int32{5, 7}, "5+3")
	f([]int32{5, 8}, "5+4")
	f([]int32{5, 9}, "5+1 9+1")
	f([]int32{-9, -8, 0, 3, 100}, "-9+2 0+4 100+1")
}

func itoa(n int32) string { return string(scaleOf(1).append(nil, float64(n))) }

func TestExemplarsShowTheNewestBatchOfABucket(t *testing.T) {
	h := newHist(newHistogram("h", "H.", "", scaleOf(1e-3), batchBounds))
	h.observe(&observation{raw: 40, batch: 1, endMs: t0})
	h.observe(&observation{raw: 45, batch: 2, endMs: t0 + 1})
	h.observe(&observation{raw: 48, batch: event.Absent})
	h.observe(&observation{raw: 700_000, batch: 3, endMs: event.Absent})
	if e := h.exemplars[0]; e.batch != 2 || e.value != 0.045 || e.atMs != t0+1 {
		t.Errorf("first bucket shows %+v", e)
	}
	last := h.exemplars[len(batchBounds)]
	if got := string(last.appendText(nil)); got != ` # {batch_id="3"} 700` {
		t.Errorf("an exemplar without a time is written %s", got)
	}
	if last.dto().Timestamp != nil {
		t.Error("an exemplar without a time has one for the Collector")
	}
	if h.exemplars[5].set || h.exemplars[5].dto() != nil {
		t.Error("a bucket without observations has an exemplar")
	}
	if h.count != 4 || h.counts[0] != 3 || h.sum != 700_133 {
		t.Errorf("count %d, first bucket %d, sum %g", h.count, h.counts[0], h.sum)
	}
}
