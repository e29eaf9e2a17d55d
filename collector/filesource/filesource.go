// Package filesource reads events from files, folders and standard input: NDJSON,
// pretty JSON, text logs and whatever else package salvage understands, and Spark
// event logs, single files or rolling folders, plain or compressed. What a file
// is, its content decides, never its name.
//
// Lines are read one at a time in bounded memory. A line that is JSON goes to the
// strict decoder directly; everything else goes through salvage. A line without
// an event is counted as skipped; a piece that should have been an event becomes a
// reject that names file and line, and costs nothing else.
package filesource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/decode/salvage"
	"github.com/stategauge/stategauge/event"
)

// Stdin is the path that stands for standard input, and the name under which its
// lines are reported.
const Stdin = "-"

// SourceName is the Origin.Source of every event of this package.
const SourceName = "file"

// Config says what to read and how much of it at a time.
type Config struct {
	// Paths are files, folders, or Stdin. Folders are read whole, files in order of
	// their names and the parts of a rolling event log in order of their numbers.
	Paths []string
	// ByTime reads the logs in order of their first dated event instead, standard
	// input last: who judges by time wants the past first. Each file is opened twice.
	ByTime bool
	// Stdin is read for the path "-"; nil means the process's own.
	Stdin io.Reader
	// Pool decodes; nil means one with default limits.
	Pool *decode.Pool
	// Salvage bounds the tolerant reading; zero means its defaults.
	Salvage salvage.Limits
	// LineBytes is the longest line that is read; longer ones are passed over.
	LineBytes int
	// StepEvents is how many events one step holds at most.
	StepEvents int
	// Retry is how long to wait when the handler's queues are full.
	Retry time.Duration
	// NowMs is the clock for Origin.ReceivedMs, Unix milliseconds; nil means the
	// wall clock.
	NowMs func() int64
}

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	if c.Stdin == nil {
		c.Stdin = os.Stdin
	}
	if c.Pool == nil {
		c.Pool = decode.NewPool(decode.DefaultLimits())
	}
	if c.Salvage == (salvage.Limits{}) {
		c.Salvage = salvage.DefaultLimits()
	}
	if c.LineBytes <= 0 {
		c.LineBytes = 16 << 20
	}
	if c.StepEvents <= 0 {
		c.StepEvents = 128
	}
	if c.Retry <= 0 {
		c.Retry = 50 * time.Millisecond
	}
	if c.NowMs == nil {
		c.NowMs = func() int64 { return time.Now().UnixMilli() }
	}
	return c
}

// Rejected is a reject and the file that it stands in. Its Index is the line
// number, counted from 1; 0 concerns the file as a whole.
type Rejected struct {
	File string
	collector.Reject
}

// Summary counts what was read.
type Summary struct {
	Files    int // files opened, those without any event included
	Events   int // events handed to the handler
	Skipped  int // lines that hold no event and no part of one, blank lines left out
	Rejected int // pieces that should have been an event
	Repaired int // one-character repairs made to events
}

// Source reads the files of its Config. It is not safe for concurrent use.
type Source struct {
	cfg  Config
	only []listed // the files of one log; nil: all that the paths lead to
}

// New returns a Source. Nothing is opened before Run.
func New(cfg Config) *Source { return &Source{cfg: cfg.withDefaults()} }

// Run reads everything once, in order, handing steps to handle and rejects to
// report. A path that cannot be read does not keep the others from being read:
// the error joins all of them. Any error of handle other than collector.ErrFull,
// which is waited out, and the end of ctx stop the reading.
func (s *Source) Run(ctx context.Context, handle collector.Handler, report func(Rejected)) (Summary, error) {
	r := &reader{cfg: s.cfg, ctx: ctx, handle: handle, report: report, dec: s.cfg.Pool.Get()}
	defer s.cfg.Pool.Put(r.dec)
	files, err := s.list(ctx)
	errs := []error{err}
	for _, f := range files {
		if err := r.file(f); err != nil {
			errs = append(errs, err)
		}
		if r.stopped != nil {
			break
		}
	}
	return r.sum, errors.Join(errs...)
}

// list returns the files to read, in order, and what of the paths cannot be listed.
func (s *Source) list(ctx context.Context) (files []listed, err error) {
	if s.only != nil {
		return s.only, nil
	}
	var errs []error
	for _, path := range s.cfg.Paths {
		more, err := expand(path)
		if err != nil {
			errs = append(errs, err)
		}
		files = append(files, more...)
	}
	if s.cfg.ByTime && len(files) > 1 {
		files = s.byTime(ctx, files)
	}
	return files, errors.Join(errs...)
}

// file reads one file of a list; first tells the beginning of an application, so
// that parts of one rolling log share what its first part says.
func (r *reader) file(f listed) error {
	if f.first {
		r.app = application{}
	}
	if f.path == Stdin {
		return r.stream(Stdin, r.cfg.Stdin)
	}
	in, err := os.Open(f.path)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer in.Close()
	return r.stream(f.path, in)
}

// stream reads one opened file.
func (r *reader) stream(name string, in io.Reader) error {
	if err := r.ctx.Err(); err != nil {
		r.stopped = err
		return err
	}
	r.sum.Files++
	r.name, r.line = name, 0
	text, err := unpack(in)
	if err != nil {
		r.reject(0, collector.ReasonEncoding, err)
		return nil
	}
	defer text.Close()
	r.scan = salvage.NewScanner(r.cfg.Salvage, r.piece)
	err = r.lines(text)
	r.scan.Close()
	r.sum.Skipped += r.scan.Skipped()
	r.flush()
	if r.stopped != nil {
		return fmt.Errorf("read events from %s: %w", name, r.stopped)
	}
	return r.ended(err)
}

// ended judges how a file ended. An event log that is still being written, or was
// left behind by a killed driver, ends in the middle of a compressed block.
func (r *reader) ended(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		if !inProgress(r.name) {
			r.reject(r.line, collector.ReasonTruncated, errors.New("the compressed data ends in the middle"))
		}
		return nil
	case errors.Is(err, errCorrupt):
		r.reject(r.line, collector.ReasonEncoding, err)
		return nil
	}
	return fmt.Errorf("read events from %s after line %d: %w", r.name, r.line, err)
}

// wait pauses while the handler is full.
func (r *reader) wait() error {
	t := time.NewTimer(r.cfg.Retry)
	defer t.Stop()
	select {
	case <-r.ctx.Done():
		return r.ctx.Err()
	case <-t.C:
		return nil
	}
}

// origin of an event at a line of the present file.
func (r *reader) origin(line int) event.Origin {
	return event.Origin{Source: SourceName, Topic: r.name, Offset: int64(line), ReceivedMs: r.cfg.NowMs()}
}
