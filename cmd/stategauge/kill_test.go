package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asCommand makes the test binary the command itself, so that it can be killed.
const asCommand = "STATEGAUGE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	os.Exit(m.Run())
}

// mortal plays rows that are all new and kept for ever, so that the rows in state
// are the rows that were ever read.
const mortal = `
description: A deduplication that never forgets
spark_version: VERSION
query:
  trigger: {interval: 10s}
  operators:
    - {kind: dedupe, event_time_in_key: false}
  sources:
    - {kind: kafka, topic: events, partitions: 3, rows_per_second: 40, keys: {unique: true}}
cluster: {executors: 2, cores: 2}
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled: "CHANGELOG"
  spark.sql.streaming.stateStore.minDeltasForSnapshot: "4"
  spark.sql.streaming.stateStore.maintenanceInterval: 30s
  spark.sql.streaming.minBatchesToRetain: "8"
  spark.sql.shuffle.partitions: "4"
healthy: true
`

// TestAKilledSimulationGoesOnWithTheRightRows kills the command with SIGKILL in
// the middle of its work, again and again, on one checkpoint on a real disk.
func TestAKilledSimulationGoesOnWithTheRightRows(t *testing.T) {
	kills := 10
	if testing.Short() {
		kills = 3
	}
	for _, c := range []struct{ version, changelog string }{{"3.5", "false"}, {"4.2", "true"}} {
		t.Run(c.version+" changelog "+c.changelog, func(t *testing.T) {
			text := strings.NewReplacer("VERSION", c.version, "CHANGELOG", c.changelog).Replace(mortal)
			v := victim{t: t, scenario: write(t, "mortal.yml", text), dir: filepath.Join(t.TempDir(), "checkpoint"), last: -1}
			random := rand.New(rand.NewPCG(7, 1))
			for range kills {
				v.play(1_000_000, 2+random.IntN(25), time.Duration(random.IntN(80))*time.Millisecond)
			}
			v.play(20, 0, 0)
			t.Logf("%d batches under %d runs, %d of them unseen", v.last+1, v.runs, v.unseen)
		})
	}
}

// victim is the checkpoint that is killed over, and what was seen of it.
type victim struct {
	t             *testing.T
	scenario, dir string
	id, run       string
	last          int64 // batch that was seen last
	runs          int
	unseen        int64 // batches that ended without a word
}

// play runs the command and kills it so long after so many lines, which may be
// anywhere in a batch; 0 lines let it end.
func (v *victim) play(batches, lines int, after time.Duration) {
	v.t.Helper()
	// At so low a rate every line is written at once.
	cmd := exec.Command(os.Args[0], "simulate", v.scenario, "--rate=1000",
		"--batches="+strconv.Itoa(batches), "--checkpoint-dir="+v.dir)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	seen := 0
	for scan := bufio.NewScanner(out); scan.Scan(); {
		v.see(scan.Bytes())
		if seen++; seen == lines {
			defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		}
	}
	if err := cmd.Wait(); (err != nil) != (lines > 0) {
		v.t.Fatalf("after %d of %d lines: %v", seen, lines, err)
	}
	if seen < max(lines, 2) {
		v.t.Errorf("only %d lines", seen)
	}
}

// see checks a line; the last one of a process that was killed can be cut short.
func (v *victim) see(line []byte) {
	v.t.Helper()
	var p struct {
		ID, RunID      string
		BatchID        *int64
		StateOperators []struct{ NumRowsTotal int64 }
		Sources        []struct{ EndOffset map[string]map[string]int64 }
	}
	if json.Unmarshal(line, &p) != nil || p.BatchID == nil || len(p.StateOperators) == 0 || len(p.Sources) == 0 {
		return
	}
	if v.id == "" {
		v.id = p.ID
	}
	if v.run != p.RunID {
		v.run, v.runs = p.RunID, v.runs+1
	}
	if p.ID != v.id || *p.BatchID <= v.last {
		v.t.Fatalf("batch %d of query %s after batch %d of query %s", *p.BatchID, p.ID, v.last, v.id)
	}
	v.unseen += *p.BatchID - v.last - 1
	v.last = *p.BatchID
	read := int64(0)
	for _, n := range p.Sources[0].EndOffset["events"] {
		read += n
	}
	if got := p.StateOperators[0].NumRowsTotal; got != read || read == 0 {
		v.t.Fatalf("batch %d: %d rows in state, %d were read", v.last, got, read)
	}
}
