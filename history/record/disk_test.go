package record

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
)

// What a batch takes in the end, keys, what the log leaves behind until it is
// compacted, and the store's compression included. Figures that have nothing to do
// with each other are more than any real query sends.
func TestABatchOfThreeOperatorsTakesFewBytesOnTheDisk(t *testing.T) {
	if raced {
		t.Skip("nothing in it runs at once; make plays plays it without the race detector")
	}
	for name, c := range map[string]struct {
		updates []*event.Update
		most    float64
	}{
		"simulated, 200 partitions":  {simulated(t, 150, 200), 250},
		"made up, every figure wild": {wildQueries(10, 300), 380},
	} {
		perBatch := float64(stored(t, c.updates)) / float64(len(c.updates))
		const month = 30 * 24 * 60
		t.Logf("%s: %.0f bytes on the disk, %.1f MiB for a month of batches each minute", name, perBatch, perBatch*month/(1<<20))
		if perBatch > c.most {
			t.Errorf("%s: %.0f bytes on the disk, at most %.0f", name, perBatch, c.most)
		}
	}
}

// wildQueries are batches of several queries, one batch of each after another.
func wildQueries(queries, batches int) (out []*event.Update) {
	for n := range batches {
		for q := range queries {
			u := madeUpdate(1000*q + n)
			u.Event.Query.ID, u.Event.Query.Name = event.QueryID(fmt.Sprintf("%08d-9c33-4c5b-8a2f-7e0a6f6b1c11", q)), fmt.Sprint("orders_", q)
			u.Event.Batch.Query = u.Event.Query
			u.Event.AtMs = 1_930_000_000_000 + int64(n)*60_000
			out = append(out, u)
		}
	}
	return out
}

// stored commits updates in steps of 50 and returns the bytes of the tables that
// the store has written once it is opened anew.
func stored(t *testing.T, updates []*event.Update) int64 {
	t.Helper()
	o := history.Options{Dir: t.TempDir()}
	s, err := history.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDictionary(0)
	for len(updates) > 0 {
		n := min(50, len(updates))
		step := stepOf(s.NextSeq(), updates[:n], d)
		if err := s.Commit([]*history.Step{step}); err != nil {
			t.Fatal(err)
		}
		updates = updates[n:]
	}
	// The states that a daemon saves cover what it has judged.
	if err := s.Trim(s.NextSeq() - 1); err != nil {
		t.Fatal(err)
	}
	for range 2 { // opening writes what was in the log into tables
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = history.Open(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return tables(t, o.Dir)
}

func stepOf(seq uint64, updates []*event.Update, d *Dictionary) *history.Step {
	step := &history.Step{Seq: seq}
	for _, u := range updates {
		step.Records = append(step.Records, history.Record{
			Query: u.Event.Query.ID, Lineage: u.Event.Query.Label(), AtMs: u.Event.AtMs, Body: Append(nil, u, d),
		})
	}
	pending := d.Pending()
	for _, w := range pending {
		step.Words = append(step.Words, history.Word{ID: w.ID, Text: w.Text})
	}
	d.Stored(pending)
	return step
}

func tables(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sst" {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil || bytes == 0 {
		t.Fatalf("%d bytes of tables, error %v", bytes, err)
	}
	return bytes
}
