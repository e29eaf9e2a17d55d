package history

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
)

// The form of Pebble's log: blocks of chunks, each with a checksum, a length, a
// type, the number of the log and the offset that was synced before.
const (
	logBlock      = 32 << 10
	logNumberAt   = 7  // in a chunk
	logHeaderSize = 19 // of a chunk
)

// unbroken looks whether a log was broken after it was written, rather than cut
// off by a crash. Pebble takes both for the end of the log. But a step is written
// only after the one before it is durable: so where the log goes on, behind its
// end, with a step that is not the next, one that was acknowledged is lost.
func unbroken(log []byte, number, next uint64) error {
	for at := 0; at < len(log); at += logBlock {
		// A batch that begins in this block and goes on in others; and all behind.
		if seq := firstStepFrom(log[at:], number, next); seq > next {
			return lostSteps(number, next, seq)
		}
		if seq := firstStepIn(log[at:min(at+logBlock, len(log))], number, next); seq > next {
			return lostSteps(number, next, seq)
		}
	}
	return nil
}

func lostSteps(number, next, seq uint64) error {
	return fmt.Errorf("log %06d is broken: steps %d to %d cannot be read", number, next, seq-1)
}

// firstStepFrom reads a log from the beginning of a block on, and returns the
// first step of a batch that is later than next, 0 where there is none.
func firstStepFrom(log []byte, number, next uint64) uint64 {
	r := newLogReader(record.NewReader, bytes.NewReader(log), number)
	for {
		batch, err := nextBatch(r)
		if err != nil {
			return 0
		}
		if seq := firstStep(batch); seq > next {
			return seq
		}
	}
}

// firstStepIn tries every place of a block where a chunk can begin.
func firstStepIn(block []byte, number, next uint64) uint64 {
	var mark [4]byte
	binary.LittleEndian.PutUint32(mark[:], uint32(number))
	for at := 0; at+logHeaderSize < len(block); at++ {
		found := bytes.Index(block[at+logNumberAt:], mark[:])
		if found < 0 {
			return 0
		}
		at += found
		if seq := firstStepFrom(block[at:], number, next); seq > next {
			return seq
		}
	}
	return 0
}

// firstStep returns the number of the first step in a batch, 0 where it has none.
func firstStep(batch []byte) uint64 {
	if _, ok := batchrepr.ReadHeader(batch); !ok {
		return 0
	}
	r := batchrepr.Read(batch)
	for {
		_, key, _, ok, err := r.Next()
		if !ok || err != nil {
			return 0
		}
		// Trim's range begins with such a key as well; steps are never 0.
		if seq, err := parseLogKey(key); err == nil && seq > 0 {
			return seq
		}
	}
}

// readLog reads a log that is held in memory.
func (f *frozen) readLog(name string) ([]byte, error) {
	file, err := f.Open(f.PathJoin(f.dir, name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(file)
}
