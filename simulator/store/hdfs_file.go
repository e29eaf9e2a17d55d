package store

import (
	"encoding/binary"
	"fmt"

	"github.com/stategauge/stategauge/simulator/checkpoint"
)

// A delta or snapshot file is a list of records as Spark writes them, without
// its compression: key size, key, value size, value, sizes being big-endian
// 32-bit numbers. A value size of -1 is a removal, a key size of -1 the end.
const (
	sizeBytes = 4
	noSize    = ^uint32(0)
)

func appendPut(b, key, value []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(key)))
	b = append(b, key...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

func appendRemoval(b, key []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(key)))
	b = append(b, key...)
	return binary.BigEndian.AppendUint32(b, noSize)
}

func appendEnd(b []byte) []byte { return binary.BigEndian.AppendUint32(b, noSize) }

// readRecords calls put or remove for each record and returns how many there
// are. A file that does not end as one should is damaged: nothing says that what
// it begins with is whole.
func readRecords(data []byte, put func(key, value []byte), remove func(key []byte)) (int64, error) {
	for n := int64(0); ; n++ {
		key, end, rest, err := cutSized(data)
		if err != nil {
			return n, fmt.Errorf("record %d: key %w", n, err)
		}
		if end {
			if len(rest) > 0 {
				return n, fmt.Errorf("%d bytes after the end: %w", len(rest), checkpoint.ErrDamaged)
			}
			return n, nil
		}
		value, removal, rest, err := cutSized(rest)
		if err != nil {
			return n, fmt.Errorf("record %d: value %w", n, err)
		}
		if removal {
			remove(key)
		} else {
			put(key, value)
		}
		data = rest
	}
}

// cutSized splits off what a size at the beginning says; none is true for the
// size -1, after which nothing belongs to it.
func cutSized(data []byte) (part []byte, none bool, rest []byte, err error) {
	if len(data) < sizeBytes {
		return nil, false, nil, fmt.Errorf("size is cut off: %w", checkpoint.ErrDamaged)
	}
	size, data := binary.BigEndian.Uint32(data), data[sizeBytes:]
	if size == noSize {
		return nil, true, data, nil
	}
	if uint64(size) > uint64(len(data)) {
		return nil, false, nil, fmt.Errorf("of %d bytes is cut off after %d: %w", size, len(data), checkpoint.ErrDamaged)
	}
	return data[:size], false, data[size:], nil
}
