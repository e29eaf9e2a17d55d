package app

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/event"
)

// account is what Spark said in one run, line by line, read without our decoder.
type account struct {
	f       *fixture
	version event.Version
	batches []*progressText // executed batches of the first operator's life, in order of their lines
	lines   []string
	idle    int // idle events
}

// fact is one statement of docs/spark.md that a run can show.
type fact struct {
	name string
	// says is the statement in words.
	says string
	// shown returns whether a run can show it and, if so, what speaks against it.
	shown func(h *account) (can bool, against string)
}

// facts lists the statements, in the order of docs/spark.md.
var facts = slices.Concat(shapeFacts, commitFacts, stateFacts, idleFacts)

// TestWhatTheDocsSayOfSparkHoldsInRealRuns checks docs/spark.md. With -v it prints
// which version has shown which statement.
func TestWhatTheDocsSayOfSparkHoldsInRealRuns(t *testing.T) {
	var all []*account
	for _, f := range sparkRuns(t) {
		all = append(all, readHistory(t, f))
	}
	for _, c := range facts {
		t.Run(c.name, func(t *testing.T) {
			shown := map[string][]string{}
			for _, h := range all {
				can, against := c.shown(h)
				if against != "" {
					t.Errorf("%s: %q is wrong: %s", h.f, c.says, against)
				}
				if can {
					shown[h.f.Version] = append(shown[h.f.Version], h.f.Name)
				}
			}
			for _, v := range sortedKeys(shown) {
				t.Logf("| %s | %s | %s |", c.says, v, strings.Join(shown[v], ", "))
			}
			if len(shown) == 0 {
				t.Logf("| %s | not seen | |", c.says)
			}
		})
	}
}

func readHistory(t *testing.T, f *fixture) *account {
	t.Helper()
	h := &account{f: f}
	if _, err := fmt.Sscanf(f.Version, "%d.%d.%d", &h.version.Major, &h.version.Minor, &h.version.Patch); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(unzstd(t, f.path(formBare))), "\n") {
		h.lines = append(h.lines, line)
		p := &progressText{}
		if err := json.Unmarshal([]byte(line), p); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if p.executed() {
			h.batches = append(h.batches, p)
		}
		if len(p.top) == 3 {
			h.idle++ // id, runId, timestamp
		}
	}
	return h
}

func unzstd(t *testing.T, path string) string {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := zstd.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// before and from compare the run's version.
func (h *account) before(major, minor uint16) bool {
	return h.version.Less(event.Version{Major: major, Minor: minor})
}

func (h *account) from(major, minor uint16) bool { return !h.before(major, minor) }

func (h *account) rocksdb() bool {
	return strings.HasSuffix(h.f.conf("stateStore.providerClass"), "RocksDBStateStoreProvider")
}

func (h *account) changelog() bool { return h.f.changelog() }

func (h *account) bounded() bool {
	return h.f.conf("stateStore.rocksdb.boundedMemoryUsage") == "true"
}

// undisturbed is a run of one process in which nothing was done to the query.
func (h *account) undisturbed() bool { return len(h.f.Legs) == 1 && len(h.f.Legs[0].Facts) == 0 }

// each returns the first batch against which wrong has something to say.
func (h *account) each(wrong func(p *progressText) string) string {
	for _, p := range h.batches {
		if s := wrong(p); s != "" {
			return fmt.Sprintf("batch %d: %s", p.BatchID, s)
		}
	}
	return ""
}

// share is the part of the batches after the first for which is holds, given the
// batch and the one before it.
func (h *account) share(is func(was, p *progressText) bool) float64 {
	n := 0
	for i := 1; i < len(h.batches); i++ {
		if is(h.batches[i-1], h.batches[i]) {
			n++
		}
	}
	return float64(n) / float64(len(h.batches)-1)
}

// figure is a number of the first operator.
func (p *progressText) figure(key string) float64 { return p.number(0, key) }

func (p *progressText) has(key string) bool { return !math.IsNaN(p.figure(key)) }

// slow is the commit work that only a new snapshot brings, milliseconds.
func (p *progressText) slow() float64 {
	return p.figure("rocksdbCommitFlushLatency") + p.figure("rocksdbCommitCheckpointLatency")
}

func (p *progressText) uploads() [4]float64 {
	return [4]float64{p.figure("rocksdbBytesCopied"), p.figure("rocksdbFilesCopied"), p.figure("rocksdbFilesReused"), p.figure("rocksdbZipFileBytesUncompressed")}
}

// goneFrom is the first version that no longer has a key.
var goneFrom = map[string]event.Version{
	"rocksdbCommitWriteBatchLatency": {Major: 4}, "rocksdbCommitPauseLatency": {Major: 4},
}

var shapeFacts = []fact{
	{"rocksdb keys", "a RocksDB operator has exactly the rocksdb keys that the catalog gives its version", func(h *account) (bool, string) {
		return h.rocksdb(), h.each(func(p *progressText) string {
			if !h.rocksdb() {
				return ""
			}
			for _, m := range event.Catalog() {
				gone, old := goneFrom[m.JSON]
				want := m.Provider == event.ProviderRocksDB && m.Kind != event.KindPerInstance && !h.version.Less(m.Since) && (!old || h.version.Less(gone))
				if strings.HasPrefix(m.JSON, "rocksdb") && p.has(m.JSON) != want {
					return fmt.Sprintf("%s is there: %v, by the catalog: %v", m.JSON, !want, want)
				}
			}
			return ""
		})
	}},
	{"eviction keys", "deduplication reports rows read during eviction from 4.3 on", func(h *account) (bool, string) {
		dedupe := h.f.Job == "dedupe"
		return dedupe, h.each(func(p *progressText) string {
			if dedupe && p.has("numRowsReadDuringEviction") != h.from(4, 3) {
				return "numRowsReadDuringEviction"
			}
			return ""
		})
	}},
	{"top level", "batchDuration is in the JSON from 4.0 on; no version up to 4.3 says its trigger", func(h *account) (bool, string) {
		return true, h.each(func(p *progressText) string {
			_, duration := p.top["batchDuration"]
			_, trigger := p.top["trigger"]
			if duration != h.from(4, 0) || trigger {
				return fmt.Sprintf("batchDuration %v, trigger %v", duration, trigger)
			}
			return ""
		})
	}},
	{"rates", "from 4.1 on rates have one decimal", func(h *account) (bool, string) {
		rounded := regexp.MustCompile(`^[0-9]+\.[0-9]$`)
		return h.from(4, 1), h.each(func(p *progressText) string {
			if rate := string(p.top["processedRowsPerSecond"]); h.from(4, 1) && rate != "" && !rounded.MatchString(rate) {
				return rate
			}
			return ""
		})
	}},
	{"phases", "the phases are disjoint: together they are no longer than triggerExecution, and that no longer than batchDuration", func(h *account) (bool, string) {
		return true, h.each(func(p *progressText) string {
			sum, whole := int64(0), p.DurationMs["triggerExecution"]
			for _, ms := range p.DurationMs {
				sum += ms
			}
			duration := whole
			if text, ok := p.top["batchDuration"]; ok {
				_ = json.Unmarshal(text, &duration)
			}
			if sum > 2*whole || duration < whole {
				return fmt.Sprintf("%v, batchDuration %d", p.DurationMs, duration)
			}
			return ""
		})
	}},
	{"first watermark", "a watermark of 1970 stands for none yet", func(h *account) (bool, string) {
		first := h.batches[0]
		mark, has := first.EventTime["watermark"]
		if has && first.BatchID == 0 && mark != "1970-01-01T00:00:00.000Z" {
			return true, mark
		}
		return has, ""
	}},
	{"unknown output", "foreachBatch writes an unknown number of rows, -1", func(h *account) (bool, string) {
		return h.f.Job == "foreach", h.each(func(p *progressText) string {
			if (*p.Sink.Rows == -1) != (h.f.Job == "foreach") {
				return fmt.Sprint(*p.Sink.Rows)
			}
			return ""
		})
	}},
	{"ends", "a stopped query ends with a null exception, a failed one with its class from 3.5 on", func(h *account) (bool, string) {
		var end struct {
			Exception *string `json:"exception"`
			Class     *string `json:"errorClassOnException"`
		}
		failed := h.f.Legs[len(h.f.Legs)-1].Query.Failed
		if err := json.Unmarshal([]byte(h.lines[len(h.lines)-1]), &end); err != nil {
			return false, err.Error()
		}
		if !strings.Contains(h.lines[len(h.lines)-1], `"exception"`) || len(h.f.Legs) > 1 {
			return false, ""
		}
		if (end.Exception != nil) != failed || h.before(3, 5) && end.Class != nil {
			return true, h.lines[len(h.lines)-1]
		}
		return true, ""
	}},
}
