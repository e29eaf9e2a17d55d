package checkpoint

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

// openCopy opens a copy of a directory of testdata, which was written by hand as
// Spark writes.
func openCopy(t *testing.T, name string) *Dir {
	t.Helper()
	mem := vfs.NewMem()
	if ok, err := vfs.Clone(vfs.Default, mem, "testdata/"+name, "/ckpt"); !ok || err != nil {
		t.Fatalf("copy %s: %v, %v", name, ok, err)
	}
	d, err := Open(mem, "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestCheckpointOfSpark35IsRead(t *testing.T) {
	d := openCopy(t, "spark35")
	id, ok, err := d.QueryID()
	equal(t, "query id", id, "6f0d1f5e-1c1b-4f0a-9a53-0c3b5f3d6a10")
	if !ok || err != nil {
		t.Errorf("query id: %v, %v", ok, err)
	}
	committed, commit, planned, fresh, err := d.Resume()
	if committed != 1 || fresh || err != nil {
		t.Fatalf("resumes after batch %d, fresh %v: %v", committed, fresh, err)
	}
	equal(t, "commit", commit, &Commit{NextWatermarkMs: 1767322796000})
	equal(t, "planned", planned.Sources, []string{`{"clicks":{"0":41,"1":44}}`, `{"logOffset":0}`})
	first, err := d.Offsets(0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "first offsets", first, &Offsets{
		Format: 1, TimestampMs: 1767322800112, Sources: []string{`{"clicks":{"0":10,"1":12}}`, ""},
		Conf: map[string]string{
			"spark.sql.streaming.stateStore.providerClass":         "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
			"spark.sql.streaming.join.stateFormatVersion":          "2",
			"spark.sql.shuffle.partitions":                         "2",
			"spark.sql.streaming.stateStore.rocksdb.formatVersion": "5",
		},
	})
	start, err := d.Source(0, "0")
	equal(t, "source", string(start), "\x00v1\n{\"clicks\":{\"0\":0,\"1\":0}}")
	if err != nil {
		t.Error(err)
	}
	if _, err := d.fs.Stat("/ckpt/offsets/.3.0b9b8f0e-8a55-4c27-9d5e-1f1f0f6f2a77.tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a dead writer left behind is still there: %v", err)
	}
}

func TestStateOfSpark35IsRead(t *testing.T) {
	s := openCopy(t, "spark35").State(0, 0, "default")
	snapshots, changelogs, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "snapshots", snapshots, []int64{2})
	equal(t, "changelogs", changelogs, []int64{1, 2})
	snap, err := s.Snapshot(2, "")
	if err != nil {
		t.Fatal(err)
	}
	const table = "000008-5b0a2a5e-5f43-4f39-b9f7-27b8b1d6f6d1.sst"
	equal(t, "snapshot", snap, &Snapshot{
		SSTs: []SST{{Local: "000008.sst", DFS: table, Bytes: 5}}, Keys: 17,
		Small: []SmallFile{{"CURRENT", []byte("MANIFEST-000009\n")}, {"MANIFEST-000009", []byte(strings.Repeat("edits ", 40))}},
	})
	local := vfs.NewMem()
	if n, err := s.FetchSST(table, local, "000008.sst"); n != 5 || err != nil {
		t.Errorf("fetched %d bytes: %v", n, err)
	}
}

func TestCheckpointOfSpark42IsRead(t *testing.T) {
	d := openCopy(t, "spark42")
	var offsets []*Offsets
	var commits []*Commit
	for b := range int64(3) {
		o, err := d.Offsets(b)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Commit(b)
		if err != nil {
			t.Fatal(err)
		}
		o.Conf = nil
		offsets, commits = append(offsets, o), append(commits, c)
	}
	equal(t, "offsets", offsets, []*Offsets{
		{Format: 1, TimestampMs: 1767322800112, Sources: []string{`{"clicks":{"0":10}}`, "41"}},
		{Format: 2, WatermarkMs: 5, TimestampMs: 1767322801112, Sources: []string{`{"clicks":{"0":11}}`, "42"}, Names: []string{"0", "1"}},
		{Format: 2, WatermarkMs: 6, TimestampMs: 1767322802112, Sources: []string{`{"clicks":{"0":12}}`, ""}, Names: []string{"clicks", "ticks"}},
	})
	equal(t, "commits", commits, []*Commit{
		{NextWatermarkMs: 5},
		{NextWatermarkMs: 6, StateIDs: map[int][][]string{0: {{"u-0-0"}, {"u-0-1"}}, 1: {{"a", "b", "c", "d"}}}},
		{NextWatermarkMs: 7, StateIDs: map[int][][]string{0: {{"w-0-0"}, {"w-0-1"}}}},
	})
	op, err := d.Operator(0)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "operator", op, OperatorInfo{ID: 0, Name: "dedupe", Stores: []StoreInfo{{Name: "default", Partitions: 2}}})
	files, err := d.State(1, 0, "left-keyWithIndexToValue").Files()
	equal(t, "state files", files, []StateFile{{3, "a", KindChangelog}, {3, "z", KindChangelog}})
	if err != nil {
		t.Error(err)
	}
	if last, ok := d.LastCommit(); last != 2 || !ok {
		t.Errorf("last commit %d, %v", last, ok)
	}
}

func TestDamagedFilesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		path, content string
		read          func(d *Dir) error
	}{
		"query id":               {"metadata", "{}", func(d *Dir) error { _, _, err := d.QueryID(); return err }},
		"torn query id":          {"metadata", `{"id`, func(d *Dir) error { _, _, err := d.QueryID(); return err }},
		"empty offsets":          {"offsets/7", "", readOffsets},
		"offsets without end":    {"offsets/7", "v1\n{\"batchWatermarkMs\":0", readOffsets},
		"offsets of the future":  {"offsets/7", "v3\n{}\n-", readOffsets},
		"offset that is no JSON": {"offsets/7", "v1\n{}\n{\"a\":", readOffsets},
		"line without source":    {"offsets/7", "v2\n{}\n{}", readOffsets},
		"commit of the future":   {"commits/7", "v4\n{}", readCommit},
		"torn commit":            {"commits/7", "v1\n{\"next", readCommit},
		"commit without header":  {"commits/7", "{\"nextBatchWatermarkMs\":0}", readCommit},
		"operator by name":       {"commits/7", "v2\n{\"stateUniqueIds\":{\"x\":[]}}", readCommit},
		"folder in its place":    {"commits/7/x", "", readCommit},
		"operator metadata":      {"state/0/_metadata/metadata", "v1\n[]", func(d *Dir) error { _, err := d.Operator(0); return err }},
		"torn snapshot":          {"state/0/0/5.zip", "PK\x03\x04", func(d *Dir) error { _, err := d.State(0, 0, "").Snapshot(5, ""); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(vfs.NewMem(), "/ckpt")
			if err != nil {
				t.Fatal(err)
			}
			if err := d.write(d.path(strings.Split(c.path, "/")...), []byte(c.content)); err != nil {
				t.Fatal(err)
			}
			err = c.read(d)
			where := "/ckpt/" + strings.TrimSuffix(c.path, "/x")
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), where) {
				t.Errorf("error %v does not say that %s is damaged", err, where)
			}
		})
	}
}

func readOffsets(d *Dir) error { _, err := d.Offsets(7); return err }
func readCommit(d *Dir) error  { _, err := d.Commit(7); return err }

func TestMissingFilesAreNotDamaged(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	s := d.State(3, 1, "default")
	for name, read := range map[string]func() error{
		"offsets":   func() error { return readOffsets(d) },
		"commit":    func() error { return readCommit(d) },
		"source":    func() error { _, err := d.Source(0, "0"); return err },
		"operator":  func() error { _, err := d.Operator(0); return err },
		"snapshot":  func() error { _, err := s.Snapshot(1, ""); return err },
		"changelog": func() error { _, err := s.Changelog(1, ""); return err },
		"delta":     func() error { _, err := s.Delta(1); return err },
		"map":       func() error { _, err := s.SnapshotFile(1); return err },
		"table":     func() error { _, err := s.FetchSST("1.sst", d.FS(), "/x"); return err },
	} {
		if err := read(); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok, err := d.QueryID(); ok || err != nil {
		t.Errorf("query id: %v, %v", ok, err)
	}
	if _, ok := d.LastOffsets(); ok {
		t.Error("a new checkpoint has offsets")
	}
	if _, _, planned, fresh, err := d.Resume(); planned != nil || !fresh || err != nil {
		t.Errorf("resume: %v, %v, %v", planned, fresh, err)
	}
}

func TestForeignZipsAreRefused(t *testing.T) {
	meta := []byte("v1\n{\"sstFiles\":[],\"numKeys\":0}")
	for name, files := range map[string][]SmallFile{
		"no metadata":     {{"CURRENT", nil}},
		"way out":         {{"../../etc/x", nil}, {"metadata", meta}},
		"folder":          {{"a/b", nil}, {"metadata", meta}},
		"bad metadata":    {{"metadata", []byte("v1\n{")}},
		"table elsewhere": {{"metadata", []byte("v1\n{\"sstFiles\":[{\"localFileName\":\"a\",\"dfsSstFileName\":\"../a\"}]}")}},
	} {
		if _, err := unpack("x.zip", zipOf(t, files)); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
