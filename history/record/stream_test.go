package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

const threeOperators = `
description: Three operators for measuring
spark_version: 4.1
batches: %d
query:
  trigger: {interval: 1m}
  watermark_delay: 10m
  operators:
    - {kind: dedupe}
    - {kind: aggregation, window: 10m}
    - {kind: aggregation, window: 10m}
  sources:
    - topic: orders
      rows_per_second: 50
      keys: {count: 5000}
cluster:
  executors: 4
  cores: 4
  real_stores: 2
  noise: {kind: lognormal, sigma: 0.15}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "true"
  spark.sql.shuffle.partitions: "%d"
healthy: true
`

// player turns bodies into updates as the daemon does: decoded, tracked, and with
// the place that they came from.
type player struct {
	t       testing.TB
	decoder *decode.Decoder
	tracker *track.Tracker
	out     []event.Update
	offset  int64
	lagMs   int64
	kept    []*event.Update
}

func newPlayer(t testing.TB) *player {
	return &player{
		t: t, decoder: decode.NewPool(decode.DefaultLimits()).Get(),
		tracker: track.New(track.DefaultConfig(), nil), lagMs: 40, offset: 7_000_000,
	}
}

// body plays one body and keeps what the tracker said of it.
func (p *player) body(b []byte) {
	p.decoder.Body(b, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if ev == nil {
			return true
		}
		p.offset++
		p.lagMs = (p.lagMs*7 + 11) % 97
		receivedMs := p.receivedMs(ev)
		p.out = p.tracker.Apply(ev, receivedMs, p.out[:0])
		for i := range p.out {
			p.out[i].Origin = event.Origin{Source: "kafka", Topic: "spark-events", Partition: 3, Offset: p.offset, ReceivedMs: receivedMs}
			p.kept = append(p.kept, cloned(&p.out[i]))
		}
		return true
	})
}

// receivedMs is when a listener's word arrives: when the batch has ended, and
// somewhat later.
func (p *player) receivedMs(ev *event.Event) int64 {
	at := ev.AtMs
	if ev.Batch != nil && ev.Batch.EndMs() != event.Absent {
		at = ev.Batch.EndMs()
	}
	return at + p.lagMs
}

// cloned copies an update that outlives the event that it is about.
func cloned(u *event.Update) *event.Update {
	c, e := *u, *u.Event
	c.Event = &e
	e.Extra = append([]event.Label(nil), e.Extra...)
	if e.Batch != nil {
		b := new(event.Batch)
		b.CopyFrom(e.Batch)
		e.Batch = b
	}
	if e.Envelope != nil {
		env := new(event.Envelope)
		env.CopyFrom(e.Envelope)
		e.Envelope = env
	}
	return &c
}

// captured plays what running Sparks of some versions once said, bare or in the
// envelopes of the same runs.
func captured(t testing.TB, versions string, enveloped bool) []*event.Update {
	t.Helper()
	files, err := filepath.Glob("../../testdata/spark/" + versions + "/*.ndjson.zst")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlayer(t)
	for _, f := range files {
		if strings.Contains(f, ".envelope.") == enveloped {
			p.body(unpacked(t, f))
		}
	}
	if len(p.kept) == 0 {
		t.Fatalf("no streams of %s", versions)
	}
	return p.kept
}

func unpacked(t testing.TB, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// simulated plays a scenario of three operators to its end.
func simulated(t testing.TB, batches, partitions int) []*event.Update {
	t.Helper()
	sc, err := scenario.Load("three.yml", []byte(fmt.Sprintf(threeOperators, batches, partitions)))
	if err != nil {
		t.Fatal(err)
	}
	return played(t, sc)
}

func played(t testing.TB, sc *scenario.Scenario) []*event.Update {
	t.Helper()
	sim, err := simulator.New(sc, simulator.Options{Seed: 7, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer sim.Close()
	p := newPlayer(t)
	for {
		m, err := sim.Next()
		if errors.Is(err, io.EOF) {
			return p.kept
		}
		if err != nil {
			t.Fatal(err)
		}
		p.body(m.Data)
	}
}
