package score

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// stream is what a scenario said, event by event.
type stream struct {
	// Queries tells which of the scenario's queries an id is, from 1: a query that
	// begins a new checkpoint has another id.
	Queries map[string]int `json:"queries"`
	lines   []byte         // events, one per line
}

// cache keeps streams in files, by what they depend on: the scenario, how it is
// played, and the simulator.
type cache struct {
	dir         string // empty: nothing is kept
	fresh       bool
	fingerprint string
}

// fingerprintScenario is played shortly to tell one simulator from another.
const fingerprintScenario = `
batches: 12
query:
  trigger: {interval: 1m}
  watermark_delay: 2m
  operators: [{kind: aggregation, window: 2m}]
  sources: [{rows_per_second: 20, keys: {count: 200}}]
cluster: {executors: 2, cores: 2, real_stores: 2}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.shuffle.partitions: "4"
faults: [{kind: store-slow, from_batch: 6}]
expect: {symptom: commit-sync-rising, from_batch: 6}
`

func newCache(dir string, fresh bool) (*cache, error) {
	if dir == "" {
		return &cache{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cache of streams: %w", err)
	}
	sc, err := scenario.Load("fingerprint", []byte(fingerprintScenario))
	if err != nil {
		return nil, err
	}
	s, err := simulate(context.Background(), sc, simulator.Options{Seed: 1})
	if err != nil {
		return nil, fmt.Errorf("fingerprint of the simulator: %w", err)
	}
	sum := sha256.Sum256(s.lines)
	return &cache{dir: dir, fresh: fresh, fingerprint: hex.EncodeToString(sum[:])}, nil
}

// options say how a play is simulated.
func (p *play) options(batches int64) simulator.Options {
	return simulator.Options{Seed: p.seed, Batches: batches, Size: p.size, Parallel: 1}
}

// stream returns the stream of a play, from the cache where it is there.
func (c *cache) stream(ctx context.Context, p *play, batches int64) (*stream, error) {
	o := p.options(batches)
	if c.dir == "" {
		return simulate(ctx, p.scenario, o)
	}
	file, err := c.file(p.scenario, o)
	if err != nil {
		return nil, err
	}
	if !c.fresh {
		if s, err := readStream(file); err == nil {
			return s, nil // whatever is broken is played anew
		}
	}
	s, err := simulate(ctx, p.scenario, o)
	if err != nil {
		return nil, err
	}
	return s, writeStream(file, s)
}

// file names a stream after all that it depends on.
func (c *cache) file(sc *scenario.Scenario, o simulator.Options) (string, error) {
	if o.Batches == sc.Batches {
		o.Batches = 0 // asked for or not, it is the same
	}
	about, err := json.Marshal(struct {
		Fingerprint string
		Scenario    *scenario.Scenario
		Seed        uint64
		Batches     int64
		Size        float64
	}{c.fingerprint, sc, o.Seed, o.Batches, o.Size})
	if err != nil {
		return "", fmt.Errorf("name of a stream: %w", err)
	}
	sum := sha256.Sum256(about)
	return filepath.Join(c.dir, sc.Name+"-"+hex.EncodeToString(sum[:12])+".zst"), nil
}

// simulate plays a scenario to its end.
func simulate(ctx context.Context, sc *scenario.Scenario, o simulator.Options) (*stream, error) {
	sim, err := simulator.New(sc, o)
	if err != nil {
		return nil, err
	}
	s := &stream{Queries: map[string]int{}}
	for {
		m, err := sim.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return nil, errors.Join(err, sim.Close())
		}
		s.Queries[m.QueryID] = m.Query + 1
		s.lines = append(append(s.lines, m.Data...), '\n')
	}
	return s, sim.Close()
}

// writeStream keeps a stream in a file.
func writeStream(file string, s *stream) error {
	head, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keep a stream: %w", err)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		return fmt.Errorf("keep a stream: %w", err)
	}
	data := z.EncodeAll(append(append(head, '\n'), s.lines...), nil)
	return writeWhole(file, data)
}

func readStream(file string) (*stream, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	if data, err = z.DecodeAll(data, nil); err != nil {
		return nil, err
	}
	head, lines, ok := bytes.Cut(data, []byte{'\n'})
	s := &stream{lines: lines}
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return s, json.Unmarshal(head, s)
}
