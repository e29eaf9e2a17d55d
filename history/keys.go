package history

import (
	"encoding/binary"
	"errors"
	"math"
)

// The key space. Every key begins with one of these bytes; numbers are big
// endian, so that keys sort as what they stand for. All of it is part of the
// format: see formatVersion.
const (
	spaceMeta   = 'a' // name -> value
	spaceOffset = 'c' // partition, topic -> next offset
	spaceHour   = 'h' // week, lineage, signal, hour, query -> summary
	spaceLog    = 'l' // step -> where its records are
	spaceQuery  = 'q' // number -> query id and lineage
	spaceRaw    = 'r' // hour, query number, time, step, position -> record
	spaceState  = 's' // kind, key -> step and state
	spaceTally  = 't' // hour, query number -> records
	spaceWord   = 'w' // number -> word
)

const (
	hourMs = 3600_000
	weekMs = 7 * 24 * hourMs
)

var errKey = errors.New("key has the wrong form")

// span is a range of keys, the end not included.
type span struct{ from, to []byte }

// spanOf is the range of all keys that begin with the prefix.
func spanOf(prefix ...byte) span { return span{prefix, after(prefix)} }

// after returns the first key behind all keys that begin with the prefix, nil
// where there is none.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for len(end) > 0 {
		if end[len(end)-1]++; end[len(end)-1] != 0 {
			return end
		}
		end = end[:len(end)-1]
	}
	return nil
}

// bucket is the number of the hour, or week, that a time falls into. Times
// before 1970 and absurdly late ones share the first and the last bucket: events
// are dated by others.
func bucket(ms, width int64) uint32 {
	return uint32(min(max(ms, 0)/width, math.MaxUint32-1))
}

// ordered maps times to numbers that sort the same.
func ordered(ms int64) uint64  { return uint64(ms) ^ 1<<63 }
func unordered(v uint64) int64 { return int64(v ^ 1<<63) }

// rawKey is where one record is.
type rawKey struct {
	query    uint32
	atMs     int64
	seq      uint64
	position uint32 // within the step
}

const (
	rawKeyLen  = 1 + 4 + 4 + 8 + 8 + 3
	maxRecords = 1 << 24 // of one step
)

func (k rawKey) bucket() uint32 { return bucket(k.atMs, hourMs) }

func (k rawKey) append(b []byte) []byte {
	b = appendRawPrefix(b, k.bucket(), k.query)
	b = binary.BigEndian.AppendUint64(b, ordered(k.atMs))
	b = binary.BigEndian.AppendUint64(b, k.seq)
	return append(b, byte(k.position>>16), byte(k.position>>8), byte(k.position))
}

// appendRawPrefix is what the keys of one query in one hour begin with.
func appendRawPrefix(b []byte, hour, query uint32) []byte {
	b = appendHour(b, spaceRaw, hour)
	return binary.BigEndian.AppendUint32(b, query)
}

func appendHour(b []byte, space byte, hour uint32) []byte {
	return binary.BigEndian.AppendUint32(append(b, space), hour)
}

func parseRawKey(b []byte) (hour uint32, k rawKey, err error) {
	if len(b) != rawKeyLen || b[0] != spaceRaw {
		return 0, rawKey{}, errKey
	}
	return binary.BigEndian.Uint32(b[1:]), rawKey{
		query:    binary.BigEndian.Uint32(b[5:]),
		atMs:     unordered(binary.BigEndian.Uint64(b[9:])),
		seq:      binary.BigEndian.Uint64(b[17:]),
		position: uint32(b[25])<<16 | uint32(b[26])<<8 | uint32(b[27]),
	}, nil
}

func logKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceLog}, seq)
}

func parseLogKey(b []byte) (uint64, error) {
	if len(b) != 9 || b[0] != spaceLog {
		return 0, errKey
	}
	return binary.BigEndian.Uint64(b[1:]), nil
}

func queryKey(number uint32) []byte { return appendHour(nil, spaceQuery, number) }
func wordKey(id uint32) []byte      { return appendHour(nil, spaceWord, id) }

func parseNumberKey(b []byte) (uint32, error) {
	if len(b) != 5 {
		return 0, errKey
	}
	return binary.BigEndian.Uint32(b[1:]), nil
}

func tallyKey(hour, query uint32) []byte {
	return binary.BigEndian.AppendUint32(appendHour(nil, spaceTally, hour), query)
}

func parseTallyKey(b []byte) (hour, query uint32, err error) {
	if len(b) != 9 {
		return 0, 0, errKey
	}
	return binary.BigEndian.Uint32(b[1:]), binary.BigEndian.Uint32(b[5:]), nil
}

func metaKey(name string) []byte { return append([]byte{spaceMeta}, name...) }

func offsetKey(topic string, partition int32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{spaceOffset}, uint32(partition))
	return append(b, topic...)
}

func parseOffsetKey(b []byte) (topic string, partition int32, err error) {
	if len(b) < 5 {
		return "", 0, errKey
	}
	return string(b[5:]), int32(binary.BigEndian.Uint32(b[1:])), nil
}

// stateKey begins with the kind and a zero, so that the states of a kind are
// together.
func stateKey(kind, key string) []byte {
	return append(statePrefix(kind), key...)
}

func statePrefix(kind string) []byte {
	return append(append([]byte{spaceState}, kind...), 0)
}

// hourPrefix is what the summaries of one signal in one week begin with.
func hourPrefix(week uint32, lineage, signal string) []byte {
	b := appendHour(nil, spaceHour, week)
	return appendText(appendText(b, lineage), signal)
}

func appendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(text)))
	return append(b, text...)
}

func hourKey(prefix []byte, startMs int64, query string) []byte {
	b := binary.BigEndian.AppendUint32(append([]byte(nil), prefix...), bucket(startMs, hourMs))
	return append(b, query...)
}

// parseHourKey cuts what comes after an hourPrefix.
func parseHourKey(rest []byte) (startMs int64, query []byte, err error) {
	if len(rest) < 4 {
		return 0, nil, errKey
	}
	return int64(binary.BigEndian.Uint32(rest)) * hourMs, rest[4:], nil
}

func cutText(b []byte) (text, rest []byte, err error) {
	if len(b) < 2 {
		return nil, nil, errKey
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return nil, nil, errKey
	}
	return b[2 : 2+n], b[2+n:], nil
}
