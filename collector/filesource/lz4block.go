package filesource

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/pierrec/lz4/v4"
)

// blockMagic begins every block of the framing that Spark's lz4 codec writes. It
// is lz4-java's own and has nothing in common with the lz4 frame format:
//
//	8 bytes  "LZ4Block"
//	1 byte   method (0x10 stored, 0x20 lz4) | log2(block size) - 10
//	4 bytes  packed length, little endian
//	4 bytes  length, little endian
//	4 bytes  XXH32 of the content with a fixed seed, the top 4 bits cleared
//
// A block of length 0 ends a stream; streams may follow one another.
const (
	blockMagic      = "LZ4Block"
	blockHeader     = len(blockMagic) + 1 + 3*4
	blockStored     = 0x10
	blockPacked     = 0x20
	blockSeed       = 0x9747b28c
	blockLimit      = 32 << 20 // the largest block that the token can announce
	checksumVisible = 0x0fffffff
)

var errBlock = errors.New("broken lz4 block")

// blockReader unpacks lz4-java's block stream.
type blockReader struct {
	in     *bufio.Reader
	packed []byte
	plain  []byte
	rest   []byte // part of plain not yet read
}

func (r *blockReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.block(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// block reads the next block into rest. It returns io.EOF at the end of the file.
func (r *blockReader) block() error {
	var h [blockHeader]byte
	if _, err := io.ReadFull(r.in, h[:]); err != nil {
		return err
	}
	if string(h[:8]) != blockMagic {
		return fmt.Errorf("%w: no magic", errBlock)
	}
	packed, plain := binary.LittleEndian.Uint32(h[9:]), binary.LittleEndian.Uint32(h[13:])
	limit := uint32(1) << (10 + h[8]&0x0f)
	if plain > limit || packed > limit || limit > blockLimit || (plain == 0) != (packed == 0) {
		return fmt.Errorf("%w: %d bytes packed, %d unpacked", errBlock, packed, plain)
	}
	if plain == 0 {
		return nil
	}
	r.packed = resize(r.packed, int(packed))
	if _, err := io.ReadFull(r.in, r.packed); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := r.unpack(h[8]&0xf0, int(plain)); err != nil {
		return err
	}
	if sum := xxh32(r.plain, blockSeed) & checksumVisible; sum != binary.LittleEndian.Uint32(h[17:]) {
		return fmt.Errorf("%w: wrong checksum", errBlock)
	}
	r.rest = r.plain
	return nil
}

func (r *blockReader) unpack(method byte, plain int) error {
	r.plain = resize(r.plain, plain)
	switch {
	case method == blockStored && len(r.packed) == plain:
		copy(r.plain, r.packed)
		return nil
	case method == blockPacked:
		n, err := lz4.UncompressBlock(r.packed, r.plain)
		if err != nil || n != plain {
			return fmt.Errorf("%w: it does not unpack", errBlock)
		}
		return nil
	}
	return fmt.Errorf("%w: unknown method %#x", errBlock, method)
}

func resize(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// Primes of XXH32.
const (
	prime1 uint32 = 2654435761
	prime2 uint32 = 2246822519
	prime3 uint32 = 3266489917
	prime4 uint32 = 668265263
	prime5 uint32 = 374761393
)

// xxh32 is the 32-bit xxHash of b.
func xxh32(b []byte, seed uint32) uint32 {
	total := uint32(len(b))
	h := seed + prime5
	if len(b) >= 16 {
		v := [4]uint32{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+binary.LittleEndian.Uint32(b[4*i:])*prime2, 13) * prime1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	h += total
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(b)*prime3, 17) * prime4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}
