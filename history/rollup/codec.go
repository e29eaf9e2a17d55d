package rollup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// Version is the first byte of an encoded Hour. It rises whenever the bytes of the
// same Hour change; earlier versions stay readable.
const Version = 1

// maxCount bounds the count of an encoded Hour, so that counts can be added up.
const maxCount = 1 << 40

var errCut = errors.New("cut off")

// Append appends the encoded form of h to dst: the version, the number of the hour
// since 1970, the count, and the figures from min to max and then last, each as
// what it differs by from the one before it, bit by bit and without the zero bytes
// on both sides. Nothing is rounded. h must be of a whole hour and hold what Of
// gave.
func Append(dst []byte, h *Hour) []byte {
	dst = append(dst, Version)
	dst = binary.AppendVarint(dst, h.StartMs/HourMs)
	dst = binary.AppendUvarint(dst, uint64(h.Count))
	before := uint64(0)
	for _, v := range [...]float64{h.Min, h.Median, h.P95, h.Max, h.Last} {
		now := math.Float64bits(v)
		dst = appendDifference(dst, now^before)
		before = now
	}
	return dst
}

// appendDifference writes how many zero bytes stand at the low end and how many
// bytes follow, in one byte, and these bytes.
func appendDifference(dst []byte, x uint64) []byte {
	if x == 0 {
		return append(dst, 0)
	}
	low := bits.TrailingZeros64(x) / 8
	n := 8 - low - bits.LeadingZeros64(x)/8
	dst = append(dst, byte(low<<4|n))
	for x >>= 8 * low; n > 0; n-- {
		dst = append(dst, byte(x))
		x >>= 8
	}
	return dst
}

// Decode reads what Append wrote. The error says what is wrong with the bytes;
// whatever they are, Decode does not panic, and an Hour that it returns holds
// together: it has values, all of them finite, and they are in order.
func Decode(b []byte) (Hour, error) {
	if len(b) == 0 {
		return Hour{}, errors.New("decode hour: it is empty")
	}
	if b[0] != Version {
		return Hour{}, fmt.Errorf("decode hour: version %d, this program reads %d", b[0], Version)
	}
	h, err := decodeV1(b[1:])
	if err == nil {
		err = h.check()
	}
	if err != nil {
		return Hour{}, fmt.Errorf("decode hour: %w", err)
	}
	return h, nil
}

func decodeV1(b []byte) (h Hour, err error) {
	number, n := binary.Varint(b)
	if n <= 0 {
		return h, errCut
	}
	count, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return h, errCut
	}
	if count == 0 || count > maxCount || number > math.MaxInt64/HourMs || number < math.MinInt64/HourMs {
		return h, fmt.Errorf("%d values in hour %d are not possible", count, number)
	}
	h.StartMs, h.Count = number*HourMs, int(count)
	b = b[n+m:]
	before := uint64(0)
	for _, v := range [...]*float64{&h.Min, &h.Median, &h.P95, &h.Max, &h.Last} {
		var x uint64
		if x, b, err = difference(b); err != nil {
			return h, err
		}
		before ^= x
		*v = math.Float64frombits(before)
	}
	if len(b) > 0 {
		return h, fmt.Errorf("%d bytes too many", len(b))
	}
	return h, nil
}

func difference(b []byte) (x uint64, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, errCut
	}
	low, n := int(b[0]>>4), int(b[0]&15)
	if low+n > 8 {
		return 0, nil, fmt.Errorf("figure of %d bytes before %d", n, low)
	}
	if b = b[1:]; len(b) < n {
		return 0, nil, errCut
	}
	for i := n - 1; i >= 0; i-- {
		x = x<<8 | uint64(b[i])
	}
	return x << (8 * low), b[n:], nil
}

// check reports what cannot be in an hour.
func (h *Hour) check() error {
	ordered := h.Min <= h.Median && h.Median <= h.P95 && h.P95 <= h.Max && h.Min <= h.Last && h.Last <= h.Max
	if !ordered || !finite(h.Min) || !finite(h.Max) {
		return fmt.Errorf("figures are not in order: min %v, median %v, 95th percentile %v, max %v, last %v", h.Min, h.Median, h.P95, h.Max, h.Last)
	}
	return nil
}
