package httpsource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/collector"
)

const (
	// firstBuffer is what a request without a kept buffer begins with; it doubles
	// as bytes arrive, whatever length the request announces.
	firstBuffer = 32 << 10
	// keptBuffer is the largest buffer that waits for the next request.
	keptBuffer = 4 << 20
	// zstdWindow is the largest window that a zstd frame may ask for, the one that
	// the format says every decoder should support.
	zstdWindow = 8 << 20
	// gzipBytes and zstdBytes are what a decompressor counts for in the budget.
	gzipBytes = 64 << 10
	zstdBytes = zstdWindow + 1<<20
)

var (
	errBudget  = errors.New("bodies under way take all memory they may")
	errDecoded = errors.New("decompressed body exceeds the limit")
)

// encoding is how a body is compressed.
type encoding uint8

const (
	identity encoding = iota
	gzipped
	zstandard
	unknown
)

func encodingOf(r *http.Request) encoding {
	name := strings.Join(r.Header.Values("Content-Encoding"), ",")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "", "identity":
		return identity
	case "gzip", "x-gzip":
		return gzipped
	case "zstd":
		return zstandard
	}
	return unknown
}

// lease is the memory that a request holds: its buffer and what it counts for.
type lease struct {
	buf   []byte
	taken int64
}

// borrow begins with a buffer that an earlier request left.
func (s *Source) borrow(l *lease) error {
	kept := s.buffers.Get().(*[]byte)
	if err := s.charge(l, int64(cap(*kept))); err != nil {
		return err
	}
	l.buf = (*kept)[:0]
	return nil
}

// grow makes room for more bytes, within the budget of all requests.
func (s *Source) grow(l *lease) error {
	size := min(max(2*cap(l.buf), firstBuffer), int(s.o.DecodedBytes)+1)
	if err := s.charge(l, int64(size-cap(l.buf))); err != nil {
		return err
	}
	buf := make([]byte, len(l.buf), size)
	copy(buf, l.buf)
	l.buf = buf
	return nil
}

func (s *Source) charge(l *lease, n int64) error {
	if s.bytes.Add(n) > s.o.InFlightBytes {
		s.bytes.Add(-n)
		return errBudget
	}
	l.taken += n
	s.metrics.InFlight.Add(float64(n))
	return nil
}

func (s *Source) giveBack(l *lease) {
	s.bytes.Add(-l.taken)
	s.metrics.InFlight.Sub(float64(l.taken))
	if 0 < cap(l.buf) && cap(l.buf) <= keptBuffer {
		buf := l.buf[:0]
		s.buffers.Put(&buf)
	}
}

// read fills l with the decompressed body.
func (s *Source) read(w http.ResponseWriter, r *http.Request, l *lease) error {
	if err := s.borrow(l); err != nil {
		return err
	}
	body := &slowReader{
		src: http.MaxBytesReader(w, r.Body, s.o.BodyBytes), rc: http.NewResponseController(w),
		until: time.Now().Add(s.o.ReadTimeout), idle: s.o.IdleTimeout,
	}
	err := s.unpack(r, body, l)
	body.done()
	s.metrics.WireSize.Add(float64(body.n))
	if body.err != nil {
		return &wireError{body.err}
	}
	return err
}

func (s *Source) unpack(r *http.Request, body *slowReader, l *lease) error {
	switch encodingOf(r) {
	case gzipped:
		if err := s.charge(l, gzipBytes); err != nil {
			return err
		}
		z, err := s.unzip.gzip(body)
		if err != nil {
			return err
		}
		defer s.unzip.putGzip(z)
		return s.fill(z, l)
	case zstandard:
		return s.unpackZstd(body, l)
	}
	return s.fill(body, l)
}

// unpackZstd reads the whole body before it decompresses it: a decoder takes too
// much memory to wait for a slow sender.
func (s *Source) unpackZstd(body io.Reader, l *lease) error {
	var raw lease
	defer s.giveBack(&raw)
	if err := s.borrow(&raw); err != nil {
		return err
	}
	if err := s.fill(body, &raw); err != nil {
		return err
	}
	if err := s.charge(&raw, zstdBytes); err != nil {
		return err
	}
	z, err := s.unzip.zstd(bytes.NewReader(raw.buf))
	if err != nil {
		return err
	}
	defer s.unzip.putZstd(z)
	return s.fill(z, l)
}

// fill reads src to its end, or to the limit.
func (s *Source) fill(src io.Reader, l *lease) error {
	for {
		if len(l.buf) == cap(l.buf) {
			if err := s.grow(l); err != nil {
				return err
			}
		}
		n, err := src.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if int64(len(l.buf)) > s.o.DecodedBytes {
			return errDecoded
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// slowReader reads a body under two deadlines and remembers what went wrong with
// it, because a decompressor may hide that.
type slowReader struct {
	src   io.Reader
	rc    *http.ResponseController
	until time.Time
	idle  time.Duration
	n     int64
	err   error // neither nil nor io.EOF
}

func (s *slowReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(s.idle)
	if deadline.After(s.until) {
		deadline = s.until
	}
	// A connection that knows no deadlines is bounded by its server.
	_ = s.rc.SetReadDeadline(deadline)
	n, err := s.src.Read(p)
	s.n += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// done lifts the deadline, which would otherwise strike while the events are
// handled and make the server take the client for gone.
func (s *slowReader) done() {
	if s.err == nil {
		_ = s.rc.SetReadDeadline(time.Time{})
	}
}

// unpackers keeps decompressors for the next request. They run in the caller's
// goroutine and own none.
type unpackers struct {
	gz  sync.Pool // *gzip.Reader
	zst sync.Pool // *zstd.Decoder
}

func (u *unpackers) gzip(src io.Reader) (*gzip.Reader, error) {
	z, _ := u.gz.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	if err := z.Reset(src); err != nil {
		u.gz.Put(z)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return z, nil
}

func (u *unpackers) putGzip(z *gzip.Reader) { u.gz.Put(z) }

func (u *unpackers) zstd(src io.Reader) (*zstd.Decoder, error) {
	if z, _ := u.zst.Get().(*zstd.Decoder); z != nil {
		return z, z.Reset(src)
	}
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
}

func (u *unpackers) putZstd(z *zstd.Decoder) {
	// Let go of the request's body.
	if z.Reset(nil) == nil {
		u.zst.Put(z)
	}
}

// wireError is a body that could not be read, as opposed to one that could not
// be decompressed.
type wireError struct{ err error }

func (w *wireError) Error() string { return "read body: " + w.err.Error() }
func (w *wireError) Unwrap() error { return w.err }

// unreadable answers a body that could not be read to its end.
func (s *Source) unreadable(err error) *answer {
	var tooLarge *http.MaxBytesError
	var wire *wireError
	switch {
	case errors.As(err, &tooLarge):
		return fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("body exceeds the limit of %d bytes", s.o.BodyBytes))
	case errors.Is(err, errDecoded):
		return fault(http.StatusRequestEntityTooLarge, fmt.Sprintf("decompressed body exceeds the limit of %d bytes", s.o.DecodedBytes))
	case errors.Is(err, errBudget):
		return fault(http.StatusTooManyRequests, "the intake is full")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fault(http.StatusRequestTimeout, "the body came too slowly")
	case errors.As(err, &wire):
		// The client is gone, most likely: nobody reads this answer.
		return fault(http.StatusBadRequest, "the body broke off")
	}
	reason := collector.ReasonEncoding
	if errors.Is(err, io.ErrUnexpectedEOF) {
		reason = collector.ReasonTruncated
	}
	s.rejects[reason].Inc()
	return &answer{code: http.StatusBadRequest, rejected: []rejected{{Error: fmt.Sprintf("decompress body: %v", err)}}}
}
