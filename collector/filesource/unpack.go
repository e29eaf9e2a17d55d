package filesource

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// errCorrupt marks compressed data that cannot be unpacked.
var errCorrupt = errors.New("corrupt compressed data")

// zstdWindow bounds what one zstd stream may make us allocate, bytes. Spark's
// writer uses windows of at most 8 MiB at any level.
const zstdWindow = 64 << 20

// unpack returns the text of a file, unpacked as its first bytes say: gzip, zstd,
// lz4 frames, or the lz4 blocks that Spark's own codec writes; UTF-16 with a byte
// order mark, as some shells write it, becomes UTF-8.
func unpack(in io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, err := b.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the first bytes: %w", err)
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return io.NopCloser(corruptReader{z, "gzip"}), nil
	case isZstd(head):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return zstdText{corruptReader{z, "zstd"}, z}, nil
	case bytes.HasPrefix(head, []byte{0x04, 0x22, 0x4d, 0x18}):
		return io.NopCloser(corruptReader{lz4.NewReader(b), "lz4"}), nil
	case bytes.HasPrefix(head, []byte(blockMagic)):
		return io.NopCloser(corruptReader{&blockReader{in: b}, "lz4"}), nil
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return io.NopCloser(&utf16Reader{in: b, low: 0}), nil
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return io.NopCloser(&utf16Reader{in: b, low: 1}), nil
	}
	return io.NopCloser(b), nil
}

// isZstd knows the magic of frames and of the skippable frames that may come first.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

type zstdText struct {
	io.Reader
	z *zstd.Decoder
}

func (t zstdText) Close() error {
	t.z.Close()
	return nil
}

// corruptReader marks the errors of a decompressor, those of a text that merely
// ends too early left out.
type corruptReader struct {
	in     io.Reader
	format string
}

func (r corruptReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	return n, fmt.Errorf("%w (%s): %w", errCorrupt, r.format, err)
}

// isBinary reports whether a text begins with bytes that no text has.
func isBinary(in *bufio.Reader) bool {
	head, _ := in.Peek(512)
	return bytes.IndexByte(head, 0) >= 0
}

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	in  *bufio.Reader
	low int // index of the low byte in a unit
	out []byte
}

func (r *utf16Reader) Read(p []byte) (n int, err error) {
	for len(r.out) == 0 {
		c, err := r.char()
		if err != nil {
			return 0, err
		}
		r.out = utf8.AppendRune(r.out[:0], c)
	}
	n = copy(p, r.out)
	r.out = r.out[n:]
	for n < len(p)-utf8.UTFMax && r.in.Buffered() >= 4 {
		c, err := r.char()
		if err != nil {
			return n, err
		}
		n += utf8.EncodeRune(p[n:], c)
	}
	return n, nil
}

// char reads one character. Half a surrogate pair becomes U+FFFD.
func (r *utf16Reader) char() (rune, error) {
	c, err := r.unit()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	next, _ := r.in.Peek(2)
	if len(next) < 2 {
		return utf8.RuneError, nil
	}
	pair := utf16.DecodeRune(c, rune(next[r.low])|rune(next[1-r.low])<<8)
	if pair != utf8.RuneError {
		_, _ = r.in.Discard(2) // peeked at
	}
	return pair, nil
}

func (r *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(r.in, b[:]); err != nil {
		return 0, io.EOF // half a unit at the end is no character
	}
	return rune(b[r.low]) | rune(b[1-r.low])<<8, nil
}
