package app

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/stategauge/stategauge/rules"
)

// Options is what the command line decides, and what tests replace.
type Options struct {
	ConfigFile string   // empty: the built-in defaults
	RuleFiles  []string // empty: the embedded rule pack
	Web        *web.FlagConfig

	Logger   *slog.Logger
	Registry *prometheus.Registry // nil: a new one with the Go and process collectors
	Now      func() time.Time     // the wall clock

	StoragePath string // where history is kept; empty: nothing is
	StorageFS   vfs.FS // nil: the disk

	Shards       int           // trackers that work side by side
	TrackEvery   time.Duration // how often queries are looked at for silence
	JudgeEvery   time.Duration // how often rules are looked at without an event
	SaveEvery    time.Duration // how often state is saved, where history is kept
	StopDeadline time.Duration // how long Stop may take; what is left to be stopped then gets a tenth of it each

	// Speed is how many times faster than real time Now runs; 0 is 1. TrackEvery and
	// JudgeEvery are times of Now.
	Speed float64
	// OnAlert is told of each alert that changed its state, on the goroutine that
	// judges; nil: nobody is. The verdict is the engine's again when it returns.
	OnAlert func(*rules.Verdict)
}

// real is how long a time of Now takes.
func (o *Options) real(d time.Duration) time.Duration {
	if o.Speed <= 0 {
		return d
	}
	return max(time.Millisecond, time.Duration(float64(d)/o.Speed))
}

// DefaultOptions returns options for a daemon on this machine.
func DefaultOptions() Options {
	return Options{
		Logger: slog.Default(), Now: time.Now,
		Shards: defaultShards(), TrackEvery: 5 * time.Second, JudgeEvery: 15 * time.Second, SaveEvery: time.Minute,
		StopDeadline: 10 * time.Second,
	}
}

// Validate reports every fault at once.
func (o *Options) Validate() error {
	var faults []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	must(o.Logger != nil, "logger must be set")
	must(o.Now != nil, "now must be set")
	must(o.Web != nil && (o.Web.WebSystemdSocket != nil && *o.Web.WebSystemdSocket || o.Web.WebListenAddresses != nil && len(*o.Web.WebListenAddresses) > 0), "web must have a listen address")
	must(o.Shards > 0, "shards (%d) must be at least 1", o.Shards)
	must(o.Speed >= 0, "speed (%g) must not be negative", o.Speed)
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"track_every", o.TrackEvery}, {"judge_every", o.JudgeEvery}, {"save_every", o.SaveEvery}, {"stop_deadline", o.StopDeadline}} {
		must(d.is > 0, "%s (%s) must be more than 0", d.name, d.is)
	}
	return errors.Join(faults...)
}
