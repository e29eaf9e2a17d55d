package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

// short names of the figures that scripts print, in order.
var scriptFigures = []struct {
	name string
	id   event.MetricID
}{
	{"flush", event.RocksDBCommitFlushLatency},
	{"compact", event.RocksDBCommitCompactLatency},
	{"checkpoint", event.RocksDBCommitCheckpointLatency},
	{"sync", event.RocksDBCommitFileSyncLatency},
	{"changelog", event.RocksDBChangeLogWriterCommitLatency},
	{"zip", event.RocksDBSaveZipFilesLatency},
	{"load", event.RocksDBLoadLatency},
	{"replayed", event.RocksDBNumReplayChangelogFiles},
	{"fetched", event.RocksDBNumLoadedFromDfs},
	{"repaired", event.RocksDBNumSnapshotsAutoRepaired},
	{"copied", event.RocksDBFilesCopied},
	{"reused", event.RocksDBFilesReused},
}

// TestScripts plays the scripts of testdata/rocksdb:
//
//	start version=V [changelog] [families] [min-deltas=N] [retain=N] [compact]
//	batch [n=N] [rows=N] [partition=P] [twice] [quiet]   figures of each batch that are not 0
//	maintain [times=N]
//	lose, unload
//	damage version=V, heal
//	check       loads the newest version and compares it with the truth
//	files       what is in the checkpoint
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/rocksdb", func(t *testing.T, path string) {
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(d) })
	})
}

type script struct {
	t *testing.T
	r *rig
}

func (s *script) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "start":
		return s.start(d)
	case "batch":
		return s.batches(d)
	case "maintain":
		return s.maintain(d)
	case "lose":
		s.r.must(s.r.x.Lose())
		s.r.start()
	case "unload":
		s.r.must(s.r.x.Unload(s.r.ids[0]))
	case "damage":
		var bad int64
		d.ScanArgs(s.t, "version", &bad)
		s.r.x.SetFaults(Faults{Damaged: func(_ ID, v int64) bool { return v == bad }})
	case "heal":
		s.r.x.SetFaults(Faults{})
	case "check":
		s.r.must(s.r.store(0).Load(s.r.version(0)))
		s.r.check(0, s.r.version(0))
		s.r.must(s.r.store(0).Abort())
	case "files":
		return s.files()
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
	return "ok\n"
}

func (s *script) start(d *datadriven.TestData) string {
	conf, version := map[string]string{}, ""
	d.ScanArgs(s.t, "version", &version)
	if d.HasArg("changelog") {
		conf = changelogOn()
	}
	for arg, key := range map[string]string{"min-deltas": confPrefix + "minDeltasForSnapshot", "retain": "spark.sql.streaming.minBatchesToRetain"} {
		var value string
		if d.MaybeScanArgs(s.t, arg, &value) {
			conf[key] = value
		}
	}
	if d.HasArg("compact") {
		conf[rocksConf+"compactOnCommit"] = "true"
	}
	s.r = newRig(s.t, version, 1, conf)
	if d.HasArg("families") {
		s.r.families = []Family{{"value", false}, {"$ttl", true}}
	}
	return "ok\n"
}

func (s *script) batches(d *datadriven.TestData) string {
	n, rows := 1, 4
	d.MaybeScanArgs(s.t, "n", &n)
	d.MaybeScanArgs(s.t, "rows", &rows)
	var out strings.Builder
	for range n {
		f, err := s.r.tryBatch(0, d.HasArg("twice"), puts(int(s.r.version(0)), rows, 10)...)
		if err != nil {
			fmt.Fprintf(&out, "error: %v\n", err)
			break
		}
		if !d.HasArg("quiet") {
			out.WriteString(s.line(f))
		}
	}
	return out.String()
}

func (s *script) line(f *Figures) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d: rows=%d", s.r.version(0), f.Rows)
	for _, x := range scriptFigures {
		if v := f.Custom[x.id]; v > 0 {
			fmt.Fprintf(&b, " %s=%v", x.name, v)
		}
	}
	if f.LastUploaded != none {
		fmt.Fprintf(&b, " uploaded=%d", f.LastUploaded)
	}
	return b.String() + "\n"
}

func (s *script) maintain(d *datadriven.TestData) string {
	m, err := s.r.x.Maintain()
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	return fmt.Sprintf("uploaded %d, deleted %d\n", m.Uploaded, m.Deleted)
}

func (s *script) files() string {
	names, err := s.r.fs.List(s.r.ckpt.State(0, 0, "default").Path())
	s.r.must(err)
	slices.Sort(names)
	return strings.Join(names, " ") + "\n"
}
