package lsm

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// recorder takes what Pebble's own goroutines tell: sizes of what they read and
// wrote, that they are done, and what failed. Reading sizes here is much cheaper
// than asking for all metrics after each flush.
type recorder struct {
	mu      sync.Mutex
	total   Flushed // since opening
	live    tables
	failure error

	flushed   chan struct{} // a flush goroutine is done
	compacted chan struct{} // a compaction goroutine is done
	wanted    chan struct{} // Pebble would like to compact
	failed    chan struct{} // closed once something failed for good
	once      sync.Once
}

// tables sums up the SST files of the newest version.
type tables struct {
	files, bytes, l0Files, l0Bytes int64
	version                        int64 // counts changes
}

func newRecorder() *recorder {
	return &recorder{
		flushed:   make(chan struct{}, 1),
		compacted: make(chan struct{}, 1),
		wanted:    make(chan struct{}, 1),
		failed:    make(chan struct{}),
	}
}

func (r *recorder) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd:        r.flushEnd,
		CompactionEnd:   r.compactionEnd,
		BackgroundError: r.fail,
		// The read that met it returns the error as well; the default would end
		// the process.
		DataCorruption: func(pebble.DataCorruptionInfo) {},
	}
}

func (r *recorder) flushEnd(info pebble.FlushInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(info.Output) > 0 {
		r.total.Flushes++
	}
	for i := range info.Output {
		size := int64(info.Output[i].Size)
		r.total.Bytes += size
		r.total.Files++
		r.live.add(1, size, true)
	}
}

func (r *recorder) compactionEnd(info pebble.CompactionInfo) {
	if info.Err != nil {
		return // its inputs stay
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var in, out int64
	for _, level := range info.Input {
		for i := range level.Tables {
			size := int64(level.Tables[i].Size)
			in += size
			r.live.add(-1, -size, level.Level == 0)
		}
	}
	for i := range info.Output.Tables {
		size := int64(info.Output.Tables[i].Size)
		out += size
		r.live.add(1, size, info.Output.Level == 0)
	}
	if info.Reason == "move" || info.Reason == "delete-only" {
		return // only the manifest was written
	}
	r.total.Compactions++
	r.total.CompactRead += in
	r.total.CompactWritten += out
}

// uncache takes back bytes that a compaction did not read from files.
func (r *recorder) uncache(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.CompactRead -= bytes
}

func (t *tables) add(files, bytes int64, l0 bool) {
	t.files += files
	t.bytes += bytes
	t.version++
	if l0 {
		t.l0Files += files
		t.l0Bytes += bytes
	}
}

func (r *recorder) work() Flushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

func (r *recorder) tables() tables {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// fail notes the first error that Pebble could not hand to a caller. It tries a
// failed flush again and again: only closing the database ends that.
func (r *recorder) fail(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
	}
	r.mu.Unlock()
	r.once.Do(func() { close(r.failed) })
}

func (r *recorder) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// wait blocks until a goroutine of Pebble signals on done, or something failed.
func (r *recorder) wait(done <-chan struct{}) error {
	select {
	case <-done:
	case <-r.failed:
	}
	return r.err()
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// logger keeps Pebble quiet. What it calls fatal, a manifest that can not be
// written, ends the goroutine that met it and not the process.
type logger struct{ r *recorder }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}

func (l logger) Fatalf(format string, args ...any) {
	var cause error
	for _, arg := range args {
		if err, ok := arg.(error); ok {
			cause = err
		}
	}
	l.r.fail(fatalError{fmt.Sprintf(format, args...), cause})
	runtime.Goexit()
}

// fatalError is a failure after which Pebble can not even be closed.
type fatalError struct {
	text  string
	cause error // can be nil
}

func (e fatalError) Error() string {
	if e.cause == nil || strings.Contains(e.text, e.cause.Error()) {
		return e.text
	}
	return e.text + ": " + e.cause.Error()
}

func (e fatalError) Unwrap() error { return e.cause }
