package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// cleanup is one named step of stopping.
type cleanup struct {
	name string
	do   func(ctx context.Context) error
}

// Stop stops every part, the last started first, within the deadline, and joins
// what went wrong. It may be called more than once and at the same time; all calls
// return the same error after the first has finished.
func (a *App) Stop() error {
	a.stopped.Do(func() { a.stopErr = a.stop() })
	return a.stopErr
}

func (a *App) stop() error {
	a.ready.Store(false)
	start := time.Now()
	var errs []error
	for _, c := range a.cleanups() {
		if err := a.stopPart(c, start); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
	}
	a.cancel()
	a.log.Info("stategauge has stopped", "took", time.Since(start).Round(time.Millisecond).String())
	return errors.Join(errs...)
}

// stopPart stops one part within what is left of the deadline, and a tenth of it at
// least: one that hangs must not keep the others from ending well.
func (a *App) stopPart(c cleanup, start time.Time) error {
	left := max(a.opts.StopDeadline-time.Since(start), a.opts.StopDeadline/10)
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	return c.do(ctx)
}

// cleanups lists the parts in stopping order: first what brings events in, then
// what works on them, last what tells others about them.
func (a *App) cleanups() []cleanup {
	return []cleanup{
		{"kafka source", a.kafka.stop},
		{"http intake", func(context.Context) error { a.http.Load().Stop(); return nil }},
		{"http server", a.closeServer},
		{"journal's clock", func(ctx context.Context) error { return a.clock.stop(ctx) }},
		{"hourly figures", func(ctx context.Context) error { return a.historian.stop(ctx) }},
		{"shards", a.stopShards},
		{"rules", a.stopJudge},
		{"history", a.stopJournal},
		{"housekeeping", func(ctx context.Context) error { return a.keeper.stop(ctx) }},
		{"notifier", func(ctx context.Context) error { return a.notifying.stop(ctx) }},
	}
}

// closeServer lets requests under way finish for a while, then cuts them off.
// Listeners that were never served from are closed too.
func (a *App) closeServer(ctx context.Context) error {
	err := a.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, a.server.Close())
	}
	for _, l := range a.listeners {
		// Closing twice is no fault: the server has closed those it served.
		_ = l.Close()
	}
	return err
}

func (a *App) stopShards(ctx context.Context) error {
	a.closeIntake()
	return a.ended(wait(ctx, a.running.Wait))
}

func (a *App) stopJudge(ctx context.Context) error {
	if a.judgeStop == nil {
		return nil
	}
	a.judgeStop()
	return a.ended(wait(ctx, func() { <-a.judge.done }))
}

// ended notes that a part which works on events was not waited for to its end.
func (a *App) ended(err error) error {
	a.stillWorks = a.stillWorks || err != nil
	return err
}

// wait runs f and gives up on it when ctx ends.
func wait(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func joinStop(cause, stop error) error {
	if stop == nil {
		return cause
	}
	return errors.Join(cause, stop)
}
