// Package history is the daemon's memory on disk: one database that holds the
// recent batches of every query, hourly summaries of its signals, how far each
// source was read, and the saved state of whatever must go on after a restart.
//
// What belongs together is written together: a Step carries the records of one
// piece of intake, the source offsets that they came from and the states that
// changed with them, and is there after a crash as a whole or not at all. Steps
// are numbered without gaps, and a step is never there without all before it.
//
// The package keeps no time of its own: retention is told what time it is.
package history

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history/engine"
)

// Defaults of Options.
const (
	DefaultMaxBytes   = 20 << 30
	DefaultRawFor     = 7 * 24 * time.Hour
	DefaultHourlyFor  = 396 * 24 * time.Hour // 13 months
	DefaultCacheBytes = 16 << 20
)

var (
	// ErrFailed is in the chain of every error after the disk has failed; Reopen
	// is the way out.
	ErrFailed = engine.ErrFailed
	// ErrClosed is returned by every call after Close.
	ErrClosed = engine.ErrClosed
	// ErrDiskFull is returned by Commit while too little space is left. Nothing
	// was written, and a later Commit can succeed without Reopen.
	ErrDiskFull = errors.New("disk is full")
	// ErrDamaged is in the chain where the database on disk is broken.
	ErrDamaged = errors.New("history is damaged")
	// ErrForeign is returned by Open for a directory of somebody else's.
	ErrForeign = errors.New("not a history of stategauge")
	// ErrNewer is returned by Open for what a newer version has written.
	ErrNewer = errors.New("written by a newer version of stategauge")
	// ErrReadOnly is returned by whatever writes to a store opened to read.
	ErrReadOnly = errors.New("history is open for reading only")
	// ErrInUse is returned by Open where another process has the history open.
	ErrInUse = errors.New("in use by another process")
	// ErrSequence is returned by Commit for a step whose number is not the next.
	ErrSequence = errors.New("step out of sequence")
)

// Options says where a history lies and how much of it is kept. The zero value
// of every field but Dir is replaced by its default.
type Options struct {
	Dir        string // contains nothing else
	FS         vfs.FS // default: the disk
	MaxBytes   int64  // of the whole history; default 20 GiB
	RawFor     time.Duration
	HourlyFor  time.Duration
	CacheBytes int64
	// ReadOnly reads a history as it is at this moment, even while a daemon has
	// it open, and writes nothing.
	ReadOnly bool
	Logger   *slog.Logger
	Metrics  *Metrics         // nil: counted nowhere
	Now      func() time.Time // for metrics alone; default time.Now

	memtableBytes int64                 // 0: the engine's own; tests make it small
	format        uint64                // 0: formatVersion; tests have a later one
	known         map[uint64]conversion // nil: conversions; tests have their own
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.RawFor, DefaultRawFor)
	setDefault(&o.HourlyFor, DefaultHourlyFor)
	setDefault(&o.CacheBytes, DefaultCacheBytes)
	if o.format == 0 {
		o.format = formatVersion
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func setDefault[T ~int64](v *T, standard T) {
	if *v <= 0 {
		*v = standard
	}
}

// Record is one batch, or another event of a query, as opaque bytes.
type Record struct {
	Query   event.QueryID
	Lineage string // query name, or the id where the query has none; empty where Query is a sender
	AtMs    int64  // trigger or event time, Unix milliseconds
	Body    []byte // in a callback: valid until it returns
}

// Offset is how far a partition was read.
type Offset struct {
	Topic     string
	Partition int32
	Next      int64 // the first offset that was not read
}

// State is something saved under a name. Saving it again replaces it.
type State struct {
	Kind, Key string
	Seq       uint64 // it holds everything up to this step
	Body      []byte // in a callback: valid until it returns
}

// Word is an entry of a dictionary that records refer to.
type Word struct {
	ID   uint32
	Text string
}

// Step is what is written as a whole or not at all.
type Step struct {
	Seq     uint64 // one more than that of the step before
	Records []Record
	Offsets []Offset
	States  []State
	Dropped []State // only Kind and Key count: what is deleted
	Words   []Word
}

// QueryInfo describes a query, or a sender, that records are kept of.
type QueryInfo struct {
	ID              event.QueryID
	Lineage         string // empty for a sender
	FirstMs, LastMs int64  // times of the oldest and the newest record
	Records         int64  // approximately
}

// Hour is the summary of a signal over one hour, as opaque bytes.
type Hour struct {
	StartMs int64  // Unix milliseconds; whole hours
	Body    []byte // in a callback: valid until it returns
}
