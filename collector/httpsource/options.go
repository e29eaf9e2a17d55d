package httpsource

import (
	"errors"
	"fmt"
	"time"
)

// SourceName is the source label of the intake metrics and of event.Origin.
const SourceName = "http"

// Options bound what requests may cost.
type Options struct {
	// BodyBytes is the most that a body may have on the wire, DecodedBytes the most
	// that it may have once decompressed. More is answered with 413.
	BodyBytes, DecodedBytes int64
	// InFlightBytes is the most memory that the bodies of all requests under way may
	// take together. What finds no room is answered with 429.
	InFlightBytes int64
	// Requests is how many requests may be under way at once, StepEvents how many of
	// their events are handed on in one step.
	Requests, StepEvents int
	// RejectsListed is how many rejected elements an answer names; the others are
	// only counted in it.
	RejectsListed int
	// ReadTimeout is the most time that reading a body may take, IdleTimeout the
	// most that it may stand still.
	ReadTimeout, IdleTimeout time.Duration
	// Wait is the most time that one step may take to become durable before the
	// intake counts as full.
	Wait time.Duration
	// RetryAfter is what a sender is told to wait after a 429 or 503; whole seconds.
	RetryAfter time.Duration
}

// DefaultOptions returns the limits of a daemon without configuration.
func DefaultOptions() Options {
	return Options{
		BodyBytes: 16 << 20, DecodedBytes: 64 << 20, InFlightBytes: 256 << 20,
		Requests: 256, StepEvents: 512, RejectsListed: 100,
		ReadTimeout: 30 * time.Second, IdleTimeout: 10 * time.Second,
		Wait: time.Second, RetryAfter: time.Second,
	}
}

// Validate returns every fault of o, joined.
func (o *Options) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(o.BodyBytes > 0, "body bytes (%d) must be positive", o.BodyBytes)
	need(o.DecodedBytes > 0 && o.DecodedBytes < 1<<40, "decoded bytes (%d) must be positive and below 1 TiB", o.DecodedBytes)
	need(o.InFlightBytes > o.DecodedBytes, "in-flight bytes (%d) must exceed decoded bytes (%d)", o.InFlightBytes, o.DecodedBytes)
	need(o.Requests > 0, "requests (%d) must be positive", o.Requests)
	need(o.StepEvents > 0, "step events (%d) must be positive", o.StepEvents)
	need(o.RejectsListed > 0, "rejects listed (%d) must be positive", o.RejectsListed)
	need(o.ReadTimeout > 0, "read timeout (%s) must be positive", o.ReadTimeout)
	need(o.IdleTimeout > 0, "idle timeout (%s) must be positive", o.IdleTimeout)
	need(o.Wait > 0, "wait (%s) must be positive", o.Wait)
	need(o.RetryAfter >= time.Second, "retry after (%s) must be at least 1s", o.RetryAfter)
	return errors.Join(errs...)
}
