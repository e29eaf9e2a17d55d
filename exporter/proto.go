package exporter

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/stategauge/stategauge/event"
)

// Tags of io.prometheus.client: field number << 3 | wire type.
const (
	tagFamilyName   = 1<<3 | 2
	tagFamilyHelp   = 2<<3 | 2
	tagFamilyType   = 3 << 3
	tagFamilyMetric = 4<<3 | 2
	tagFamilyUnit   = 5<<3 | 2

	tagMetricLabel     = 1<<3 | 2
	tagMetricGauge     = 2<<3 | 2
	tagMetricCounter   = 3<<3 | 2
	tagMetricHistogram = 7<<3 | 2

	tagPairName  = 1<<3 | 2
	tagPairValue = 2<<3 | 2

	tagValue          = 1<<3 | 1
	tagCounterCreated = 3<<3 | 2
)

// The encoders below append and return like the built-in does; a page is a hundred
// thousand of them, so none goes through reflection or a message object.

func appendVarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func varintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func appendString(b []byte, tag byte, s string) []byte {
	b = append(b, tag)
	b = appendVarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendDouble(b []byte, tag byte, v float64) []byte {
	b = append(b, tag)
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendLabelPair(b []byte, tag byte, p event.Label) []byte {
	n := 2 + varintLen(uint64(len(p.Name))) + len(p.Name) + varintLen(uint64(len(p.Value))) + len(p.Value)
	b = append(b, tag)
	b = appendVarint(b, uint64(n))
	b = appendString(b, tagPairName, p.Name)
	return appendString(b, tagPairValue, p.Value)
}

// appendTimestamp appends ms, Unix milliseconds, as a google.protobuf.Timestamp.
func appendTimestamp(b []byte, tag byte, ms int64) []byte {
	sec, nanos := uint64(ms/1000), uint64(ms%1000)*1e6
	n := 1 + varintLen(sec)
	if nanos != 0 {
		n += 1 + varintLen(nanos)
	}
	b = append(b, tag, byte(n), 1<<3)
	b = appendVarint(b, sec)
	if nanos == 0 {
		return b
	}
	return appendVarint(append(b, 2<<3), nanos)
}

// appendNested appends a message whose length is known only once it is written:
// body appends it to what it is given.
func appendNested(b []byte, tag byte, body func([]byte) []byte) []byte {
	b = append(b, tag)
	return appendSized(b, 2, body)
}

// appendSized appends a length and the bytes that body appends. guess is the
// width of the length in bytes; a wrong guess costs one move of the body.
func appendSized(b []byte, guess int, body func([]byte) []byte) []byte {
	at := len(b)
	for range guess {
		b = append(b, 0)
	}
	b = body(b)
	n := len(b) - at - guess
	if width := varintLen(uint64(n)); width != guess {
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		copy(b[at+width:at+width+n], b[at+guess:at+guess+n])
		b = b[:at+width+n]
	}
	binary.PutUvarint(b[at:], uint64(n))
	return b
}
