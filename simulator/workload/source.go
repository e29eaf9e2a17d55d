package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// New returns a source of a kind: kafka, rate or files. The error names every
// field of the configuration that is out of range.
func New(kind string, cfg Config) (Source, error) {
	switch kind {
	case "kafka":
		return NewKafka(cfg)
	case "rate":
		return NewRate(cfg)
	case "files":
		return NewFiles(cfg)
	}
	return nil, fmt.Errorf("source kind %q is none of kafka, rate and files", kind)
}

// none is how the progress shows that there is no offset.
const none = "null"

// input is what all sources have: rows that arrive, and memory for those of a
// batch.
type input struct {
	cfg        Config
	arrivals   *arrivals
	maker      maker
	conditions Conditions
	started    bool // an offset was read before
	rows       []Row
}

// init sets up in place: the parts point at the configuration.
func (in *input) init(cfg Config, stride int) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	in.cfg = cfg.withDefaults()
	in.arrivals = newArrivals(&in.cfg)
	in.maker = newMaker(&in.cfg, in.arrivals, stride)
	in.conditions = Normal()
	return nil
}

// Advance lets rows arrive until nowMs. Conditions hold for the time since the
// last call; a row from the future comes once a call.
func (in *input) Advance(nowMs int64, c Conditions) {
	in.conditions = c
	in.arrivals.advance(nowMs, c)
}

// fresh is empty memory for so many rows; a batch much smaller than what is held
// gives a large memory back.
func (in *input) fresh(rows int64) []Row {
	const small = 1 << 16
	if held := int64(cap(in.rows)); held < rows || held > small && rows < held/8 {
		in.rows = make([]Row, 0, rows)
	}
	return in.rows[:0]
}

// take sums up the rows of a batch.
func (in *input) take(rows []Row, start, end, latest string) Take {
	in.rows = rows
	t := Take{Rows: rows, Start: start, End: end, Latest: latest, Count: int64(len(rows))}
	if len(rows) == 0 {
		return t
	}
	first := rows[0].EventMs
	t.MinMs, t.MaxMs = first, first
	var sum int64 // from the first, in whole numbers: exact
	for i := range rows {
		r := &rows[i]
		t.Bytes += int64(r.Bytes)
		t.MinMs, t.MaxMs = min(t.MinMs, r.EventMs), max(t.MaxMs, r.EventMs)
		sum += r.EventMs - first
	}
	t.SumMs = float64(first)*float64(len(rows)) + float64(sum)
	return t
}

// planned is a take of a batch that the offset log held: the source was not asked
// for its newest offset, so nothing is said of it.
func planned(t Take) Take {
	t.Latest, t.HasBehind = none, false
	t.BehindMin, t.BehindMax, t.BehindAvg = 0, 0, 0
	return t
}

// atStart tells that an offset text means no offset: none in the progress, a dash
// in the offset log.
func atStart(text string) bool { return text == "" || text == none || text == "-" }

// decode reads one JSON value and nothing after it.
func decode(text string, into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("is no offset: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has something after its end")
	}
	return nil
}

// bounded is an error if a batch of so many rows can not be held.
func (in *input) bounded(rows int64) error {
	if rows < 0 {
		return errors.New("lies before what was read")
	}
	if rows > in.cfg.MaxRows {
		return fmt.Errorf("is %d rows on, more than the %d of a batch", rows, in.cfg.MaxRows)
	}
	return nil
}
