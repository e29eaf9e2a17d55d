package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// table takes what can be read of a table.
func (s *salvager) table(name string) error {
	file, err := s.fs.Open(s.fs.PathJoin(s.dir, name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	t := tableSalvager{s: s, name: name}
	bad, _ := brokenBlocks(file) // where that fails, so does what follows
	err = readTable(&patchy{File: file, bad: bad}, t.read)
	if t.failed != nil {
		return t.failed // of the new database
	}
	if err != nil {
		s.r.fault("table %s: %v", name, err)
	}
	return nil
}

type tableSalvager struct {
	s      *salvager
	name   string
	last   []byte // key that was read last
	failed error
}

// read walks over the table; where a block is broken, it goes on behind it.
func (t *tableSalvager) read(r *sstable.Reader) error {
	from := []byte{}
	for {
		err := t.walk(r, from)
		if err == nil || t.failed != nil {
			return err
		}
		next, ok := t.behind(r, max(string(t.last), string(from)))
		t.s.r.fault("table %s: %v: keys from %x to %s are lost", t.name, err, t.last, describe(next, ok))
		if !ok {
			return nil
		}
		from = next
	}
}

func describe(key []byte, ok bool) string {
	if !ok {
		return "the end"
	}
	return fmt.Sprintf("%x", bytes.TrimRight(key, "\x00"))
}

func (t *tableSalvager) walk(r *sstable.Reader, from []byte) error {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return err
	}
	defer func() { _ = it.Close() }()
	for kv := it.SeekGE(from, 0); kv != nil; kv = it.Next() {
		value, _, err := kv.Value(nil)
		if err != nil {
			return err
		}
		t.last = append(t.last[:0], kv.K.UserKey...)
		if t.failed = t.s.take(kv.Kind(), kv.K.UserKey, value, uint64(kv.SeqNum())); t.failed != nil {
			return t.failed
		}
	}
	return it.Error()
}

// searchBytes is how much of a key the search for the next good block looks at: a
// record's hour, query and time.
const searchBytes = 17

// behind finds the first key behind a broken block: it doubles the distance until
// a seek succeeds, and then halves it.
func (t *tableSalvager) behind(r *sstable.Reader, from string) ([]byte, bool) {
	bad := number([]byte(from))
	end := number(bytes.Repeat([]byte{0xff}, searchBytes))
	step := big.NewInt(1)
	good := new(big.Int).Add(bad, step)
	for !readable(r, good) {
		bad.Set(good)
		step.Lsh(step, 1)
		if good.Add(good, step); good.Cmp(end) > 0 {
			return nil, false
		}
	}
	for {
		middle := new(big.Int).Add(bad, good)
		if middle.Rsh(middle, 1); middle.Cmp(bad) == 0 {
			return keyOf(good), true
		}
		if readable(r, middle) {
			good = middle
		} else {
			bad = middle
		}
	}
}

func number(key []byte) *big.Int {
	var b [searchBytes]byte
	copy(b[:], key)
	return new(big.Int).SetBytes(b[:])
}

func keyOf(n *big.Int) []byte { return n.FillBytes(make([]byte, searchBytes)) }

// readable reports whether a seek leads to a good block, or behind the last key.
func readable(r *sstable.Reader, n *big.Int) bool {
	it, err := r.NewIter(sstable.NoTransforms, nil, nil, sstable.AssertNoBlobHandles)
	if err != nil {
		return false
	}
	defer func() { _ = it.Close() }()
	it.SeekGE(keyOf(n), 0)
	return it.Error() == nil
}

// patchy is a table whose broken blocks are known. Left to itself, the reader
// spends a second on each to find out whether a single bit was flipped.
type patchy struct {
	vfs.File
	bad []stretch
}

// stretch is a part of a file.
type stretch struct{ from, to int64 }

var errBroken = errors.New("block is broken")

// ReadAt implements vfs.File.
func (f *patchy) ReadAt(b []byte, at int64) (int, error) {
	for _, s := range f.bad {
		if at < s.to && at+int64(len(b)) > s.from {
			return 0, errBroken
		}
	}
	return f.File.ReadAt(b, at)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	trailerBytes = 5 // of a block: how it is packed, and the checksum
	crcMask      = 0xa282ead8
)

// verifyTable reads every block of a table.
func verifyTable(file vfs.File) error {
	bad, err := brokenBlocks(file)
	if err == nil && len(bad) > 0 {
		return fmt.Errorf("%w at offset %d (%d such)", errBroken, bad[0].from, len(bad))
	}
	return err
}

// brokenBlocks compares the checksums of a table's blocks. An error says that the
// layout of the table cannot be read.
func brokenBlocks(file vfs.File) (bad []stretch, err error) {
	err = readTable(file, func(r *sstable.Reader) error {
		layout, err := r.Layout()
		if err != nil {
			return err
		}
		var b []byte
		for _, s := range stretches(layout) {
			b = slices.Grow(b[:0], int(s.to-s.from))[:s.to-s.from]
			if _, err := file.ReadAt(b, s.from); err != nil || !sound(b) {
				bad = append(bad, s)
			}
		}
		return nil
	})
	return bad, err
}

// stretches are the blocks of a table with their trailers.
func stretches(l *sstable.Layout) (out []stretch) {
	add := func(offset, length uint64) {
		if length > 0 {
			out = append(out, stretch{int64(offset), int64(offset + length + trailerBytes)})
		}
	}
	for i := range l.Data {
		add(l.Data[i].Offset, l.Data[i].Length)
	}
	for i := range l.Index {
		add(l.Index[i].Offset, l.Index[i].Length)
	}
	for i := range l.ValueBlock {
		add(l.ValueBlock[i].Offset, l.ValueBlock[i].Length)
	}
	for i := range l.Filter {
		add(l.Filter[i].Offset, l.Filter[i].Length)
	}
	add(l.TopIndex.Offset, l.TopIndex.Length)
	add(l.RangeDel.Offset, l.RangeDel.Length)
	add(l.RangeKey.Offset, l.RangeKey.Length)
	add(l.ValueIndex.Offset, l.ValueIndex.Length)
	add(l.Properties.Offset, l.Properties.Length)
	add(l.MetaIndex.Offset, l.MetaIndex.Length)
	return out
}

// sound compares the checksum at the end of a block.
func sound(b []byte) bool {
	n := len(b) - 4
	c := crc32.Checksum(b[:n], castagnoli)
	return binary.LittleEndian.Uint32(b[n:]) == (c>>15|c<<17)+crcMask
}
