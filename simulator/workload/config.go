package workload

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// DefaultMaxRows is how many rows one Take hands out at most where Config.MaxRows
// is 0: about 100 MB of rows. What is beyond waits for the next batch, as with a
// limit of the source's own.
const DefaultMaxRows = 4 << 20

// Config says what one source offers. Shares are from 0 to 1.
type Config struct {
	Seed    uint64 // of the scenario
	Query   int    // which query of the scenario; part of the name of every random stream
	Source  int    // which source of the query
	StartMs int64  // when rows begin to arrive and seconds are counted from, Unix milliseconds
	Side    uint8  // Row.Side of every row

	Topic         string  // Kafka; default "input"
	Partitions    int     // of a Kafka topic or of the rate source; default 1
	Path          string  // folder of a file source, as Spark writes it; default file:/srv/stream/input
	RowsPerSecond float64 // on average, before Rate
	RowBytes      int     // size of a value
	// MaxPerTrigger limits a batch: maxOffsetsPerTrigger of Kafka,
	// maxFilesPerTrigger of files; the rate source has none. 0: no limit.
	MaxPerTrigger int64
	// MaxRows bounds the memory of one Take, whatever the backlog; see DefaultMaxRows.
	// The rate source always hands out at least one second.
	MaxRows    int64
	Keys       Keys
	Rate       Rate
	Late       Late
	Duplicates float64 // share of rows that come twice, the copy within some seconds
	Backlog    int64   // rows that wait at StartMs
	// FileRows is how many rows a file holds; it can be read once it is complete.
	// Default: what arrives in a second.
	FileRows int64
	// KeptFiles is how many files the folder holds before old ones are archived,
	// so how long its listing gets. Default 2,000.
	KeptFiles int64
}

// Keys is the key space.
type Keys struct {
	Count int64   // distinct keys at one time
	Skew  float64 // exponent of a Zipf law over them; 0: uniform
	// NewPerSecond moves the window of Count keys on; with Grow it widens it.
	NewPerSecond float64
	Grow         bool
	Unique       bool // each row its own key, in order of arrival; Count does not matter
}

// Rate is how arrival varies round RowsPerSecond.
type Rate struct {
	Daily  float64 // amplitude of a cycle that peaks at 14:00 UTC
	Growth float64 // per day, compounded
	// BurstEvery, BurstLength and BurstFactor: in each period of BurstEvery one
	// burst of BurstLength starts at random, in which the rate is multiplied.
	BurstEvery, BurstLength time.Duration
	BurstFactor             float64
	// On and Off: rows come for On, then nothing for Off.
	On, Off time.Duration
	Noise   float64 // standard deviation of the logarithm of a second's rate; the mean stays
}

// Late says how event times trail behind arrival.
type Late struct {
	Typical time.Duration // median of an exponential tail
	Share   float64       // of rows that are By later than that
	By      time.Duration
	// Beyond is the least lateness of the rows that Conditions.Late makes too
	// late: the watermark's delay and the time between two batches.
	Beyond time.Duration
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	c.Topic = orElse(c.Topic, "input")
	c.Path = orElse(c.Path, "file:/srv/stream/input")
	c.Partitions = orElse(c.Partitions, 1)
	c.MaxRows = orElse(c.MaxRows, DefaultMaxRows)
	c.FileRows = orElse(c.FileRows, min(max(1, int64(math.Round(c.RowsPerSecond))), c.MaxRows))
	c.KeptFiles = orElse(c.KeptFiles, 2000)
	c.Keys.Count = orElse(c.Keys.Count, 1)
	c.Rate.BurstFactor = orElse(c.Rate.BurstFactor, 1)
	return c
}

// orElse is v, or other where v is not set.
func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// Validate names every field that no source can be made of, with the rule that
// it breaks.
func (c Config) Validate() error {
	c = c.withDefaults()
	return errors.Join(
		within("rows per second", c.RowsPerSecond, 0, 1e9),
		within("partitions", float64(c.Partitions), 1, 1e5),
		within("row bytes", float64(c.RowBytes), 0, math.MaxInt32/1024),
		within("max per trigger", float64(c.MaxPerTrigger), 0, math.MaxInt64),
		within("max rows", float64(c.MaxRows), 1, 1<<28),
		within("file rows", float64(c.FileRows), 1, float64(c.MaxRows)),
		within("kept files", float64(c.KeptFiles), 1, 1e9),
		within("backlog", float64(c.Backlog), 0, 1e12),
		within("duplicates", c.Duplicates, 0, 1),
		c.Keys.validate(), c.Rate.validate(), c.Late.validate(),
	)
}

func (k Keys) validate() error {
	return errors.Join(
		within("keys: count", float64(k.Count), 1, 1e15),
		within("keys: skew", k.Skew, 0, 20),
		within("keys: new per second", k.NewPerSecond, 0, 1e9),
	)
}

func (r Rate) validate() error {
	return errors.Join(
		within("rate: daily", r.Daily, 0, 1),
		within("rate: growth", r.Growth, -0.99, 100),
		within("rate: burst every", r.BurstEvery.Seconds(), 0, 1e9),
		within("rate: burst length", r.BurstLength.Seconds(), 0, 1e9),
		within("rate: burst factor", r.BurstFactor, 0, 1e6),
		within("rate: on", r.On.Seconds(), 0, 1e9),
		within("rate: off", r.Off.Seconds(), 0, 1e9),
		within("rate: noise", r.Noise, 0, 3),
	)
}

func (l Late) validate() error {
	return errors.Join(
		within("late: typical", l.Typical.Seconds(), 0, 1e9),
		within("late: share", l.Share, 0, 1),
		within("late: by", l.By.Seconds(), 0, 1e9),
		within("late: beyond", l.Beyond.Seconds(), 0, 1e9),
	)
}

// within is an error unless v is a number from low to high.
func within(what string, v, low, high float64) error {
	if v >= low && v <= high {
		return nil
	}
	return fmt.Errorf("%s (%v) must be from %v to %v", what, v, low, high)
}
