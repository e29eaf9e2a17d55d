package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// errLeft ends what still runs after its caller was told of a failure.
var errLeft = errors.New("caller is gone")

// Inside is how a function that runs inside an engine calls back to code of its
// caller.
type Inside struct {
	mu   sync.Mutex
	left bool
}

// Call runs f unless the caller has gone. f never runs after Do has returned.
func (in *Inside) Call(f func() error) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.left {
		return errLeft
	}
	return guarded(f)
}

// leave waits for a call that is running and lets no other begin.
func (in *Inside) leave() {
	in.mu.Lock()
	in.left = true
	in.mu.Unlock()
}

// callerPanic carries a panic of the caller's own function back to the caller.
type callerPanic struct{ value any }

func (p callerPanic) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = callerPanic{v}
		}
	}()
	return f()
}

// Do runs f with the database and returns its error. Where the disk fails
// meanwhile, Do returns the failure at once, and f may never end: so f must
// write nothing that its caller reads before Do has returned nil, except in
// Inside.Call. Do waits for no other call, but Close waits for Do.
func (e *Engine) Do(f func(db *pebble.DB, in *Inside) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.exit()
	return e.run(f)
}

func (e *Engine) run(f func(db *pebble.DB, in *Inside) error) error {
	in := &Inside{}
	done := make(chan error, 1)
	go func() { done <- e.shielded(f, in) }()
	select {
	case err := <-done:
		return e.outcome(err)
	case <-e.fence.failed:
		in.leave()
		return e.Failed()
	}
}

// shielded turns a panic of Pebble into the failure of the engine.
func (e *Engine) shielded(f func(db *pebble.DB, in *Inside) error, in *Inside) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("storage engine panicked: %v\n%s", v, debug.Stack())
			e.fence.fail(err)
		}
	}()
	return f(e.db, in)
}

func (e *Engine) outcome(err error) error {
	var p callerPanic
	if errors.As(err, &p) {
		panic(p.value)
	}
	if err == nil {
		return nil
	}
	if failed := e.Failed(); failed != nil {
		return failed
	}
	return err
}

// Failed returns why the engine can no longer be used, wrapped in ErrFailed, or nil.
func (e *Engine) Failed() error {
	if cause := e.fence.err(); cause != nil {
		return fmt.Errorf("%w: %w", ErrFailed, cause)
	}
	return nil
}

// Busy reports whether writes of an engine that has failed are still with the
// disk. While it is, no other engine must be opened on the directory.
func (e *Engine) Busy() bool { return e.fence.busy.Load() > 0 }

// Syncs is how often the log was forced to disk.
func (e *Engine) Syncs() int64 { return e.fence.syncs.Load() }

func (e *Engine) enter() error {
	if err := e.Failed(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return ErrClosed
	}
	e.users++
	return nil
}

func (e *Engine) exit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	if e.users == 0 {
		e.idle.Broadcast()
	}
}

// Closing reports whether Close has begun: long work should end.
func (e *Engine) Closing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closing
}

// Close waits for the calls that run and closes the database. One that has
// failed is left as it is: it holds its memory for the life of the process.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return nil
	}
	e.closing = true
	for e.users > 0 {
		e.idle.Wait()
	}
	e.mu.Unlock()
	if err := e.Failed(); err != nil {
		return err
	}
	err := e.run(func(db *pebble.DB, _ *Inside) error { return db.Close() })
	if err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// NewBatch returns an empty batch to be applied inside Do.
func (e *Engine) NewBatch() *pebble.Batch { return e.db.NewBatch() }
