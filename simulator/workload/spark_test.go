package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// captured is what a batch of a running Spark says of its input.
type captured struct {
	BatchID   *int64            `json:"batchId"`
	EventTime map[string]string `json:"eventTime"`
	Sources   []capturedSource  `json:"sources"`
}

type capturedSource struct {
	Description  string          `json:"description"`
	StartOffset  json.RawMessage `json:"startOffset"`
	EndOffset    json.RawMessage `json:"endOffset"`
	LatestOffset json.RawMessage `json:"latestOffset"`
	NumInputRows int64           `json:"numInputRows"`
}

// captures calls f with the batches of each captured run.
func captures(t *testing.T, f func(t *testing.T, batches []captured)) {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/spark/*/*[a-z].ndjson.zst")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captured run: %v", err)
	}
	for _, path := range paths {
		if strings.Contains(path, ".envelope.") {
			continue
		}
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".ndjson.zst")
		t.Run(name, func(t *testing.T) { f(t, readCapture(t, path)) })
	}
}

func readCapture(t *testing.T, path string) []captured {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var out []captured
	lines := bufio.NewScanner(d)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c captured
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.BatchID != nil && len(c.Sources) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// rateOf is the rate source that a description is of.
func rateOf(t *testing.T, description string) Config {
	t.Helper()
	cfg := Config{StartMs: startMs}
	if _, err := fmt.Sscanf(description, "RateStreamV2[rowsPerSecond=%f, rampUpTimeSeconds=0, numPartitions=%d", &cfg.RowsPerSecond, &cfg.Partitions); err != nil {
		t.Fatalf("%s: %v", description, err)
	}
	return cfg
}

// replay plays the same batch: planned anew, or, where Spark did not ask for the
// latest offset of a rate source, read as the offset log has it.
func replay(t *testing.T, want capturedSource) Take {
	t.Helper()
	if !strings.HasPrefix(want.Description, "Rate") {
		return replayFiles(t, want)
	}
	s := source(t, "rate", rateOf(t, want.Description))
	if s.Description() != want.Description {
		t.Errorf("%s is not %s", s.Description(), want.Description)
	}
	var end time.Duration
	if err := json.Unmarshal(want.EndOffset, &end); err != nil {
		t.Fatal(err)
	}
	s.Advance(ms(end*time.Second+700*time.Millisecond), Normal())
	if err := s.Seek(string(want.StartOffset)); err != nil {
		t.Fatal(err)
	}
	if string(want.LatestOffset) != none {
		return s.Take()
	}
	s.Advance(ms(end*time.Second+time.Minute), Normal())
	take, err := s.TakeTo(string(want.EndOffset))
	if err != nil {
		t.Fatal(err)
	}
	return take
}

// replayFiles lets as many rows come as the batch had: how full a folder is, is
// the user's affair.
func replayFiles(t *testing.T, want capturedSource) Take {
	t.Helper()
	s := source(t, "files", Config{StartMs: startMs, RowsPerSecond: float64(want.NumInputRows), FileRows: 500})
	if err := s.Seek(string(want.StartOffset)); err != nil {
		t.Fatal(err)
	}
	s.Advance(ms(time.Second), Normal())
	if s.Description() != want.Description {
		t.Errorf("%s is not %s", s.Description(), want.Description)
	}
	return s.Take()
}

func TestSourcesAnswerAsTheyDidInRunningSpark(t *testing.T) {
	compared := 0
	captures(t, func(t *testing.T, batches []captured) {
		for _, b := range batches {
			for _, want := range b.Sources {
				got := replay(t, want)
				// The rows of tasks that ran again after an executor died count twice.
				retried := strings.Contains(t.Name(), "executor-lost") && want.NumInputRows > got.Count
				if got.Start != string(want.StartOffset) || got.End != string(want.EndOffset) ||
					got.Latest != string(want.LatestOffset) || got.Count != want.NumInputRows && !retried {
					t.Fatalf("batch %d: from %s to %s of %s with %d rows, want from %s to %s of %s with %d", *b.BatchID,
						got.Start, got.End, got.Latest, got.Count, want.StartOffset, want.EndOffset, want.LatestOffset, want.NumInputRows)
				}
				compared++
			}
		}
	})
	if compared < 100 {
		t.Errorf("%d inputs compared", compared)
	}
}

// The captured rows of the rate source are stamped evenly, and one in 500 is 30 s
// late: so are ours, if asked for.
func TestEventTimesSpreadAsTheyDidInRunningSpark(t *testing.T) {
	compared := 0
	captures(t, func(t *testing.T, batches []captured) {
		for _, b := range batches {
			if len(b.Sources) != 1 || b.EventTime["max"] == "" || !strings.HasPrefix(b.Sources[0].Description, "RateStreamV2[rowsPerSecond=500,") {
				continue
			}
			cfg := rateOf(t, b.Sources[0].Description)
			cfg.Late = Late{Share: 1.0 / 500, By: 30 * time.Second}
			s := source(t, "rate", cfg)
			s.Advance(ms(time.Hour), Normal())
			if err := s.Seek(string(b.Sources[0].StartOffset)); err != nil {
				t.Fatal(err)
			}
			take, err := s.TakeTo(string(b.Sources[0].EndOffset))
			if err != nil {
				t.Fatal(err)
			}
			at := func(what string) float64 {
				v, err := time.Parse(time.RFC3339, b.EventTime[what])
				if err != nil {
					t.Fatal(err)
				}
				return float64(v.UnixMilli())
			}
			// How far the oldest and the mean lie before the newest.
			mean := float64(take.MaxMs) - take.SumMs/float64(take.Count)
			if want := at("max") - at("avg"); math.Abs(mean-want) > 200 {
				t.Errorf("batch %d: rows lie %.0f ms before the newest, in Spark %.0f", *b.BatchID, mean, want)
			}
			if oldest, want := float64(take.MaxMs-take.MinMs), at("max")-at("min"); take.Count > 3000 && math.Abs(oldest-want) > 4000 {
				t.Errorf("batch %d: the oldest row lies %.0f ms before the newest, in Spark %.0f", *b.BatchID, oldest, want)
			}
			compared++
		}
	})
	if compared < 50 {
		t.Errorf("%d batches compared", compared)
	}
}
