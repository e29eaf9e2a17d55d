package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The form of an export: a line of text, then a zstd stream of the version of the
// contents, pairs of key and value in order, and an end that counts them and has
// their checksum. Lengths are uvarints.
const (
	exportMagic = "stategauge history export 1\n"
	framePair   = 1
	frameEnd    = 2

	maxKeyBytes   = 256 << 10 // of an import
	maxValueBytes = 256 << 20
)

// ErrExport is returned by Import for a stream that is no export, or not a whole one.
var ErrExport = errors.New("not a whole export of a history")

// Export writes the whole history, as it is at this moment, as one stream that
// Import reads, on whatever machine. The store can be in use meanwhile.
func (s *Store) Export(w io.Writer) error {
	if err := s.writeTallies(); err != nil {
		return err
	}
	if _, err := io.WriteString(w, exportMagic); err != nil {
		return fmt.Errorf("export history %s: %w", s.o.Dir, err)
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	e := exporter{w: bufio.NewWriter(z), sum: crc32.New(castagnoli)}
	e.uint(s.o.format)
	if err := s.visit("export", span{}, e.pair); err != nil {
		return err
	}
	if err := errors.Join(e.end(), z.Close()); err != nil {
		return fmt.Errorf("export history %s: %w", s.o.Dir, err)
	}
	return nil
}

// writeTallies puts what was counted in memory where an export finds it.
func (s *Store) writeTallies() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.ReadOnly {
		return nil
	}
	return s.flushTallies()
}

type exporter struct {
	w     *bufio.Writer // keeps the first error
	sum   hash.Hash32
	pairs uint64
	buf   []byte
}

func (e *exporter) uint(v uint64) {
	e.buf = binary.AppendUvarint(e.buf[:0], v)
	_, _ = e.w.Write(e.buf)
}

func (e *exporter) text(b []byte) {
	e.uint(uint64(len(b)))
	_, _ = e.w.Write(b)
	_, _ = e.sum.Write(e.buf)
	_, _ = e.sum.Write(b)
}

func (e *exporter) pair(key, value []byte) error {
	if key[0] == spaceMeta && string(key[1:]) == metaFormat {
		return nil // in the head
	}
	e.pairs++
	err := e.w.WriteByte(framePair)
	e.text(key)
	e.text(value)
	return err
}

func (e *exporter) end() error {
	_ = e.w.WriteByte(frameEnd)
	e.uint(e.pairs)
	e.uint(uint64(e.sum.Sum32()))
	return e.w.Flush()
}

// Import makes a history of an export, in a directory that has none. The stream is
// read and checked to its end before anything is put in place. A stream of an older
// format is converted.
func Import(o Options, r io.Reader) (Report, error) {
	o = o.withDefaults()
	p := place{o.FS, o.Dir}
	report, err := p.importFrom(o, r)
	if err != nil {
		return report, fmt.Errorf("import history %s: %w", o.Dir, err)
	}
	return report, nil
}

func (p place) importFrom(o Options, r io.Reader) (Report, error) {
	lock, err := p.acquire()
	if err != nil {
		return Report{}, err
	}
	defer func() { _ = lock.Close() }()
	if err := p.tidy(); err != nil {
		return Report{}, err
	}
	if found, err := p.exists(dataName); err != nil || found {
		return Report{}, errors.Join(err, errors.New("a history is here already"))
	}
	if err := p.fill(o, r); err != nil {
		return Report{}, err
	}
	if err := p.rename(readyName, dataName); err != nil {
		return Report{}, err
	}
	return Check(o)
}

// fill makes a new database of a stream, and leaves it ready.
func (p place) fill(o Options, r io.Reader) error {
	b, err := p.build(o)
	if err != nil {
		return err
	}
	if err := readExport(r, o, b.put); err != nil {
		b.abandon()
		return errors.Join(err, p.fs.RemoveAll(p.path(makingName)))
	}
	return b.finish()
}

// readExport hands over the pairs of a stream, in the present format.
func readExport(r io.Reader, o Options, put func(key, value []byte) error) error {
	magic := make([]byte, len(exportMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != exportMagic {
		return fmt.Errorf("%w: it does not begin like one", ErrExport)
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return err
	}
	defer z.Close()
	i := importer{r: bufio.NewReader(z), sum: crc32.New(castagnoli), put: put}
	version, err := i.uint()
	if err == nil {
		err = o.admit(version)
	}
	if err == nil {
		i.convert, err = o.chain(version)
	}
	for err == nil && !i.ended {
		err = i.frame()
	}
	if err != nil && i.failed == nil && !errors.Is(err, ErrNewer) {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	return err
}

type importer struct {
	r          *bufio.Reader
	sum        hash.Hash32
	put        func(key, value []byte) error
	convert    conversion
	pairs      uint64
	ended      bool
	failed     error // of put
	buf        []byte
	key, value []byte
}

func (i *importer) uint() (uint64, error) {
	v, err := binary.ReadUvarint(i.r)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return v, err
}

// text reads a text into b. It takes memory only for what is there.
func (i *importer) text(b []byte, most uint64) ([]byte, error) {
	n, err := i.uint()
	if err != nil {
		return b, err
	}
	if n > most {
		return b, fmt.Errorf("text of %d bytes is too long", n)
	}
	i.buf = binary.AppendUvarint(i.buf[:0], n)
	_, _ = i.sum.Write(i.buf)
	b = b[:0]
	for n > 0 {
		at := len(b)
		b = append(b, make([]byte, min(n, 64<<10))...)
		if _, err := io.ReadFull(i.r, b[at:]); err != nil {
			return b, io.ErrUnexpectedEOF
		}
		n -= uint64(len(b) - at)
	}
	_, _ = i.sum.Write(b)
	return b, nil
}

func (i *importer) frame() error {
	kind, err := i.r.ReadByte()
	switch {
	case err != nil:
		return io.ErrUnexpectedEOF
	case kind == framePair:
		return i.pair()
	case kind == frameEnd:
		return i.end()
	}
	return fmt.Errorf("unknown frame %d", kind)
}

func (i *importer) pair() (err error) {
	if i.key, err = i.text(i.key, maxKeyBytes); err != nil {
		return err
	}
	if i.value, err = i.text(i.value, maxValueBytes); err != nil {
		return err
	}
	if len(i.key) == 0 {
		return errKey
	}
	i.pairs++
	return i.convert(i.key, i.value, func(key, value []byte) error {
		v := surveyor{r: &Report{}}
		if err := v.look(key, value); err != nil {
			return fmt.Errorf("key %x: %w", key, err)
		}
		i.failed = i.put(key, value)
		return i.failed
	})
}

func (i *importer) end() error {
	pairs, err := i.uint()
	if err != nil {
		return err
	}
	sum, err := i.uint()
	if err != nil {
		return err
	}
	if pairs != i.pairs || sum != uint64(i.sum.Sum32()) {
		return errors.New("checksum or count does not fit")
	}
	if _, err := i.r.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the end")
	}
	i.ended = true
	return nil
}
