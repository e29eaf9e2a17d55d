package operator

import (
	"encoding/binary"

	"github.com/stategauge/stategauge/simulator/seed"
)

// Keys and values have the sizes of Spark's UnsafeRow: a version byte, a word of
// null bits, a word per column (for columns of variable size its place and
// length), then the variable parts, all in words of eight bytes, little endian.
// A long as the only column makes 17 bytes; a key in a window 49.
const (
	word   = 8
	prefix = 1 + word // version byte and null bits
)

// words rounds a size in bytes up to whole words.
func words(n int) int { return (max(n, 0) + word - 1) / word * word }

func appendWord(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }

func wordAt(b []byte, at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }

// appendRow appends a row of up to four columns of one word.
func appendRow(b []byte, columns ...uint64) []byte {
	b = append(b, 0)
	b = appendWord(b, 0)
	for _, c := range columns {
		b = appendWord(b, c)
	}
	return b
}

// micros is a time as Spark's rows have it.
func micros(ms int64) uint64 { return uint64(ms) * 1000 }

func millisAt(b []byte, at int) int64 { return int64(wordAt(b, at)) / 1000 }

// appendSortable appends a number so that bytes sort as numbers do: the encoding
// of columns that are scanned by range, with a byte that says it is not null.
func appendSortable(b []byte, v int64) []byte {
	b = append(b, 1)
	return binary.BigEndian.AppendUint64(b, uint64(v)^1<<63)
}

// sortableBytes is the length of what appendSortable adds.
const sortableBytes = 1 + word

func sortableAt(b []byte, at int) int64 {
	return int64(binary.BigEndian.Uint64(b[at+1:]) ^ 1<<63)
}

// appendPayload appends n bytes (a multiple of eight) that stand for a user's
// columns. Every other word is random, so that they shrink to about half under
// compression, as text and numbers of real rows do.
func appendPayload(b []byte, n int, key uint64) []byte {
	for i := 0; i < n; i += word {
		v := key
		if i/word%2 == 0 {
			v = seed.Mix(key, uint64(i))
		}
		b = appendWord(b, v)
	}
	return b
}

// pad appends payload until a row has size bytes, version byte aside.
func pad(b []byte, size int, key uint64) []byte {
	return appendPayload(b, 1+words(size)-len(b), key)
}

// after returns the first key behind all that begin with p, in memory of b; nil
// where there is none.
func after(b, p []byte) []byte {
	b = append(b[:0], p...)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return nil
}
