package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// spaceVersions is where a salvage keeps the versions of keys whose values
// change, until it has seen all of them. It is never in a finished database.
const spaceVersions = 'z'

// salvager reads the files of a broken database one by one, without its
// manifest, and puts what it finds into a new one. Records and the log never
// change once they are written, so they are taken from wherever they are; of
// everything else the newest version counts. What was deleted by ranges can come
// back: retention deletes it again.
type salvager struct {
	o      Options
	fs     vfs.FS
	dir    string
	to     *builder
	r      *Report
	newest uint64 // step
	found  int64  // keys
	named  map[uint32]bool
}

// all reads every table and then the log.
func (s *salvager) all() error {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if isTable(name) {
			if err := s.table(name); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if _, ok := logNumber(name); ok {
			if err := s.log(name); err != nil {
				return err
			}
		}
	}
	if s.found == 0 {
		return errors.New("nothing can be read")
	}
	return s.settle()
}

// take keeps one version of a key.
func (s *salvager) take(kind pebble.InternalKeyKind, key, value []byte, seq uint64) error {
	if len(key) == 0 {
		return nil
	}
	deleted := false
	switch kind {
	case pebble.InternalKeyKindSet, pebble.InternalKeyKindSetWithDelete:
	case pebble.InternalKeyKindDelete, pebble.InternalKeyKindSingleDelete, pebble.InternalKeyKindDeleteSized:
		deleted = true
	default:
		return nil
	}
	s.found++
	switch key[0] {
	case spaceRaw, spaceLog, spaceWord, spaceQuery:
		if deleted {
			return nil
		}
		s.note(key)
		return s.to.put(key, value)
	case spaceTally:
		return nil // counted anew
	}
	if deleted {
		return s.to.put(versionKey(key, seq), []byte{0})
	}
	return s.to.put(versionKey(key, seq), append([]byte{1}, value...))
}

// note remembers what the rest has to fit to.
func (s *salvager) note(key []byte) {
	if _, k, err := parseRawKey(key); err == nil {
		s.newest = max(s.newest, k.seq)
	}
	if seq, err := parseLogKey(key); err == nil {
		s.newest = max(s.newest, seq)
	}
	if n, err := parseNumberKey(key); err == nil && key[0] == spaceQuery {
		s.named[n] = true
	}
}

// versionKey sorts the versions of a key together, the newest first. Zeros in the
// key are escaped so that the end of it sorts before all else.
func versionKey(key []byte, seq uint64) []byte {
	b := []byte{spaceVersions}
	for _, c := range key {
		b = append(b, c)
		if c == 0 {
			b = append(b, 0xff)
		}
	}
	b = append(b, 0, 1)
	return binary.BigEndian.AppendUint64(b, math.MaxUint64-seq)
}

func parseVersionKey(b []byte) (key []byte, err error) {
	if len(b) < 1+2+8 {
		return nil, errKey
	}
	return bytes.ReplaceAll(b[1:len(b)-2-8], []byte{0, 0xff}, []byte{0}), nil
}

// log takes the batches of a log up to where it is broken or ends.
func (s *salvager) log(name string) error {
	file, err := s.fs.Open(s.fs.PathJoin(s.dir, name))
	if errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	n, _ := logNumber(name)
	r := newLogReader(record.NewReader, file, n)
	for {
		batch, err := nextBatch(r)
		if errors.Is(err, io.EOF) || errors.Is(err, record.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			s.r.fault("log %s: %v: what follows in it is lost", name, err)
			return nil
		}
		if err := s.batch(batch); err != nil {
			return err
		}
	}
}

// newLogReader names the type of a log's number, which Pebble keeps to itself.
func newLogReader[N ~uint64](make func(io.Reader, N) *record.Reader, from io.Reader, number uint64) *record.Reader {
	return make(from, N(number))
}

func nextBatch(r *record.Reader) ([]byte, error) {
	rec, err := r.Next()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(rec)
}

func (s *salvager) batch(repr []byte) error {
	header, ok := batchrepr.ReadHeader(repr)
	if !ok {
		s.r.fault("log: a batch has no header")
		return nil
	}
	r := batchrepr.Read(repr)
	for seq := uint64(header.SeqNum); ; seq++ {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			s.r.fault("log: %v", err)
			return nil
		}
		if !ok {
			return nil
		}
		if err := s.take(kind, key, value, seq); err != nil {
			return err
		}
	}
}

// settle takes the newest version of each key that has several, and makes the
// rest fit: the log begins behind what was trimmed and ends with the newest step.
func (s *salvager) settle() error {
	var last []byte
	var trimmed uint64
	if err := s.to.scan(spanOf(spaceVersions), func(k, v []byte) error {
		key, err := parseVersionKey(k)
		if err != nil || bytes.Equal(key, last) || len(v) == 0 {
			return err
		}
		last = key
		if v[0] == 0 {
			return nil
		}
		switch string(key) {
		case string(metaKey(metaTrimmed)):
			trimmed, _ = parseUint(v[1:])
		case string(metaKey(metaFormat)):
			if err := s.format(v[1:]); err != nil {
				return err
			}
		}
		if key[0] == spaceState {
			seq, _ := parseUint(v[1:])
			s.newest = max(s.newest, seq)
		}
		return s.to.put(key, v[1:])
	}); err != nil {
		return err
	}
	if err := s.to.drop(spanOf(spaceVersions)); err != nil {
		return err
	}
	if err := s.to.drop(span{logKey(0), logKey(trimmed + 1)}); err != nil {
		return err
	}
	return errors.Join(s.closeLog(trimmed), s.tally())
}

// format keeps the version of what was found: the next opening converts it.
func (s *salvager) format(value []byte) error {
	version, err := parseUint(value)
	if err == nil {
		err = s.o.admit(version)
	}
	s.to.version = max(version, 1)
	return err
}

// closeLog makes the newest step part of the log, without records if it was lost,
// so that its number is not used again.
func (s *salvager) closeLog(trimmed uint64) error {
	if s.newest <= trimmed {
		return nil
	}
	known := false
	if err := s.to.scan(span{logKey(s.newest), logKey(s.newest + 1)}, func([]byte, []byte) error {
		known = true
		return nil
	}); err != nil || known {
		return err
	}
	return s.to.put(logKey(s.newest), appendEntries(nil, nil))
}

// name makes an entry for a query that has lost its own.
func (s *salvager) name(query uint32) error {
	if s.named[query] {
		return nil
	}
	s.named[query] = true
	id := fmt.Sprint("lost-", query)
	s.r.fault("the id of query number %d is lost: it is %s now", query, id)
	return s.to.put(queryKey(query), appendQuery(nil, id, id))
}

// tally counts the records of each query and hour.
func (s *salvager) tally() error {
	var id tallyID
	var n uint64
	write := func() error {
		if n == 0 {
			return nil
		}
		if err := s.name(id.query); err != nil {
			return err
		}
		return s.to.put(tallyKey(id.hour, id.query), binary.AppendUvarint(nil, n))
	}
	err := s.to.scan(spanOf(spaceRaw), func(key, _ []byte) error {
		hour, k, err := parseRawKey(key)
		if err != nil {
			return err
		}
		if at := (tallyID{hour, k.query}); at != id {
			if err := write(); err != nil {
				return err
			}
			id, n = at, 0
		}
		n++
		return nil
	})
	return errors.Join(err, write())
}
