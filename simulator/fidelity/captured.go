package fidelity

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// Run is what was recorded of one streaming query on running Spark: what it was,
// and every batch that it reported.
type Run struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Job     string `json:"job"`
	Spec    Spec   `json:"spec"`
	Legs    []Leg  `json:"legs"`

	// Batches are those of the first query that ran, in order; a second one on
	// the same checkpoint is left out.
	Batches []Batch `json:"-"`
	// Played is how many of them the twin plays: all, unless that takes long.
	Played int `json:"-"`
}

// Spec is how a job differs from the ordinary one of its kind. Zero stands for the
// ordinary value.
type Spec struct {
	Rows    int64  `json:"rows"`    // per second and source; of a file where the source is a folder
	Keys    int64  `json:"keys"`    // distinct ones
	Late    int64  `json:"late"`    // one row in so many is late
	Pad     int    `json:"pad"`     // bytes that keys are longer
	Delay   string `json:"delay"`   // of the watermark, in words
	Trigger string `json:"trigger"` // interval, in words
	Burst   int    `json:"burst"`   // files, a second apart, before each silence
	Pause   int    `json:"pause"`   // seconds of silence
	Master  string `json:"master"`
}

// Leg is one process that ran the query.
type Leg struct {
	Master string            `json:"master"`
	Conf   map[string]string `json:"conf"`
	Facts  []Fact            `json:"facts"`
	Query  struct {
		RunID string `json:"runId"`
	} `json:"query"`
}

// Fact is something that was done to the query.
type Fact struct {
	What    string `json:"what"`
	BatchID int64  `json:"batchId"` // newest batch seen then
}

// Title names the run, with its version: names repeat from version to version.
func (r *Run) Title() string { return r.Version + " " + r.Name }

// Load reads a run from its metadata file; the events lie beside it.
func Load(metadata string) (*Run, error) {
	text, err := os.ReadFile(metadata)
	if err != nil {
		return nil, fmt.Errorf("captured run: %w", err)
	}
	r := &Run{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("captured run %s: %w", metadata, err)
	}
	if len(r.Legs) == 0 {
		return nil, fmt.Errorf("captured run %s has no process", metadata)
	}
	events := strings.TrimSuffix(metadata, ".json") + ".ndjson.zst"
	f, err := os.Open(events)
	if err != nil {
		return nil, fmt.Errorf("captured run: %w", err)
	}
	defer f.Close()
	if r.Batches, err = r.read(f); err != nil {
		return nil, fmt.Errorf("captured run %s: %w", events, err)
	}
	r.Played = len(r.Batches)
	if n, ok := shortened[r.Title()]; ok {
		r.Played = min(n, r.Played)
	}
	return r, nil
}

// shortened are runs of many reads, of which the twin plays so many batches.
var shortened = map[string]int{
	"3.5.8 join-changelog":     45,
	"4.1.4 join-bounded":       25,
	"4.3.0 join-executor-lost": 62,
	"4.3.0 stall":              15,
}

// LoadAll reads every captured run below a folder that has one folder for each
// version.
func LoadAll(dir string) ([]*Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var out []*Run
	for _, f := range files {
		r, err := Load(f)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (r *Run) read(compressed io.Reader) ([]Batch, error) {
	z, err := zstd.NewReader(compressed)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 4<<20)
	var out []Batch
	for lines.Scan() {
		b, ok, err := parseBatch(lines.Bytes())
		if err != nil {
			return nil, err
		}
		if ok && !r.beside(b.RunID) {
			out = append(out, b)
		}
	}
	return out, lines.Err()
}

// beside tells that a run id is that of a query which was started while the one
// before it still ran.
func (r *Run) beside(runID string) bool {
	return r.Name == sharedCheckpoint && runID != r.Legs[0].Query.RunID
}

// sharedCheckpoint is the run in which two queries had one checkpoint.
const sharedCheckpoint = "shared-checkpoint"

// spark is the run's version, zero where the text is none.
func (r *Run) spark() event.Version {
	v, err := spark.ParseVersion(r.Version)
	if err != nil {
		return event.Version{}
	}
	return v
}
