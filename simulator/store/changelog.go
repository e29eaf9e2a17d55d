package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/snappy"
)

// Versions of changelog files. The first has no header; the others begin with
// theirs. Families came with the second, the lineage that checkpoint format 2
// needs with the third and fourth.
const (
	changelogFamilies        = "v2"
	changelogLineage         = "v3"
	changelogFamiliesLineage = "v4"
)

// What a record does.
const (
	recordPut    = 1
	recordDelete = 0x10
)

// endOfChangelog stands where a length would.
const endOfChangelog = -1

// maxUnpacked is how many bytes one can hold that were one compressed; a file
// that claims more is none.
const maxUnpacked = 32

var errChangelog = errors.New("not a changelog")

// versionID tells apart files of one version.
type versionID struct {
	Version int64  `json:"version"`
	ID      string `json:"checkpointUniqueId"`
}

// changelog gathers the records of a batch: lengths and bytes one after the
// other, as Spark's files have them inside.
type changelog struct {
	buf      []byte
	records  int64
	families bool
	packed   []byte
}

// reset begins a new file.
func (c *changelog) reset() { c.buf, c.records = c.buf[:0], 0 }

// begin writes what comes before the records.
func (c *changelog) begin(families bool, lineage []versionID, withLineage bool) error {
	c.reset()
	c.families = families
	version := ""
	switch {
	case families && withLineage:
		version = changelogFamiliesLineage
	case withLineage:
		version = changelogLineage
	case families:
		version = changelogFamilies
	default:
		return nil
	}
	c.text(version)
	if !withLineage {
		return nil
	}
	line, err := json.Marshal(lineage)
	if err != nil {
		return fmt.Errorf("lineage: %w", err)
	}
	c.bytes(line)
	return nil
}

// text writes a short string as Java's writeUTF does.
func (c *changelog) text(s string) {
	c.buf = binary.BigEndian.AppendUint16(c.buf, uint16(len(s)))
	c.buf = append(c.buf, s...)
}

func (c *changelog) bytes(b []byte) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(len(b)))
	c.buf = append(c.buf, b...)
}

func (c *changelog) put(family string, key, value []byte) {
	c.records++
	if c.families {
		c.buf = append(c.buf, recordPut)
	}
	c.bytes(key)
	c.bytes(value)
	if c.families {
		c.bytes([]byte(family))
	}
}

func (c *changelog) delete(family string, key []byte) {
	c.records++
	if c.families {
		c.buf = append(c.buf, recordDelete)
	}
	c.bytes(key)
	if c.families {
		c.bytes([]byte(family))
		return
	}
	c.length(endOfChangelog)
}

func (c *changelog) length(n int32) {
	c.buf = binary.BigEndian.AppendUint32(c.buf, uint32(n))
}

// pack ends the file and returns it compressed. It is valid until the next call.
func (c *changelog) pack() []byte {
	c.length(endOfChangelog)
	c.packed = snappy.Encode(c.packed[:cap(c.packed)], c.buf)
	return c.packed
}

// changelogReader takes a file apart.
type changelogReader struct {
	rest     []byte
	families bool
	lineage  []versionID
}

// openChangelog reads what comes before the records.
func openChangelog(data []byte) (*changelogReader, error) {
	n, err := snappy.DecodedLen(data)
	if err != nil || n > maxUnpacked*(len(data)+1) {
		return nil, fmt.Errorf("%w: not compressed as one", errChangelog)
	}
	raw, err := snappy.Decode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errChangelog, err)
	}
	r := &changelogReader{rest: raw}
	return r, r.header()
}

// header reads the version, where there is one. A file without begins with the
// length of a key, which looks like a version only above 128 KiB.
func (r *changelogReader) header() error {
	if len(r.rest) < 4 || binary.BigEndian.Uint16(r.rest) != 2 || r.rest[2] != 'v' {
		return nil
	}
	version := string(r.rest[2:4])
	r.rest = r.rest[4:]
	switch version {
	case changelogFamilies:
		r.families = true
		return nil
	case changelogLineage, changelogFamiliesLineage:
		r.families = version == changelogFamiliesLineage
	default:
		return fmt.Errorf("%w: version %q is not known", errChangelog, version)
	}
	line, _, err := r.bytes()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &r.lineage); err != nil {
		return fmt.Errorf("%w: lineage: %w", errChangelog, err)
	}
	return nil
}

// bytes reads a length and so many bytes; end is true for the length that stands
// for nothing.
func (r *changelogReader) bytes() (b []byte, end bool, err error) {
	if len(r.rest) < 4 {
		return nil, false, fmt.Errorf("%w: ends early", errChangelog)
	}
	n := int32(binary.BigEndian.Uint32(r.rest))
	r.rest = r.rest[4:]
	if n == endOfChangelog {
		return nil, true, nil
	}
	if n < 0 || int(n) > len(r.rest) {
		return nil, false, fmt.Errorf("%w: %d bytes where %d are left", errChangelog, n, len(r.rest))
	}
	b, r.rest = r.rest[:n:n], r.rest[n:]
	return b, false, nil
}

// record is one change; a nil value removes.
type record struct {
	family     string
	key, value []byte
	remove     bool
}

// next returns the next record; ok is false at the end.
func (r *changelogReader) next() (rec record, ok bool, err error) {
	if r.families {
		return r.nextWithFamily()
	}
	key, end, err := r.bytes()
	if err != nil || end {
		return rec, false, err
	}
	value, remove, err := r.bytes()
	return record{key: key, value: value, remove: remove}, err == nil, err
}

func (r *changelogReader) nextWithFamily() (rec record, ok bool, err error) {
	if len(r.rest) > 0 && (r.rest[0] == recordPut || r.rest[0] == recordDelete) {
		rec.remove = r.rest[0] == recordDelete
		r.rest = r.rest[1:]
	} else if _, end, err := r.bytes(); err != nil || end {
		return rec, false, err
	} else {
		return rec, false, fmt.Errorf("%w: unknown kind of record", errChangelog)
	}
	if rec.key, err = r.field(); err != nil {
		return rec, false, err
	}
	if !rec.remove {
		if rec.value, err = r.field(); err != nil {
			return rec, false, err
		}
	}
	name, err := r.field()
	rec.family = string(name)
	return rec, err == nil, err
}

// field reads bytes that must be there.
func (r *changelogReader) field() ([]byte, error) {
	b, end, err := r.bytes()
	if err == nil && end {
		err = fmt.Errorf("%w: a record ends early", errChangelog)
	}
	return b, err
}
