package history

import (
	"encoding/binary"
	"errors"
)

var errValue = errors.New("value has the wrong form")

// entry is where one record of a step is.
type entry struct {
	query uint32
	atMs  int64
}

// appendEntries encodes the log's value of a step: for each record its query
// and the difference of its time from the one before.
func appendEntries(b []byte, entries []entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(entries)))
	last := int64(0)
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(e.query))
		b = binary.AppendVarint(b, e.atMs-last) // wraps around, and back when read
		last = e.atMs
	}
	return b
}

func parseEntries(b []byte, out []entry) ([]entry, error) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return nil, errValue
	}
	b = b[n:]
	out = out[:0]
	last := int64(0)
	for range count {
		query, n := binary.Uvarint(b)
		if n <= 0 || query > 1<<32-1 {
			return nil, errValue
		}
		delta, m := binary.Varint(b[n:])
		if m <= 0 {
			return nil, errValue
		}
		b = b[n+m:]
		last += delta
		out = append(out, entry{uint32(query), last})
	}
	if len(b) > 0 {
		return nil, errValue
	}
	return out, nil
}

// appendQuery encodes an id and a lineage.
func appendQuery(b []byte, id, lineage string) []byte {
	b = binary.AppendUvarint(b, uint64(len(id)))
	b = append(b, id...)
	return append(b, lineage...)
}

func parseQuery(b []byte) (id, lineage string, err error) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return "", "", errValue
	}
	b = b[n:]
	return string(b[:length]), string(b[length:]), nil
}

func parseUint(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, errValue
	}
	return binary.BigEndian.Uint64(b), nil
}

func appendUint(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

func parseTally(b []byte) (uint64, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 || n != len(b) {
		return 0, errValue
	}
	return v, nil
}
