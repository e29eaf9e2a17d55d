package checkpoint

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func zipOf(t testing.TB, files []SmallFile) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.Create(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tree lists all files below dir with their sizes.
func tree(t testing.TB, fs vfs.FS, dir string) string {
	t.Helper()
	var b strings.Builder
	var walk func(path, shown string)
	walk = func(path, shown string) {
		names, err := fs.List(path)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		for _, name := range names {
			p := fs.PathJoin(path, name)
			info, err := fs.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if info.IsDir() {
				walk(p, shown+name+"/")
				continue
			}
			fmt.Fprintf(&b, "%s%s %d\n", shown, name, info.Size())
		}
	}
	walk(dir, "")
	return b.String()
}

// script runs the commands of a file in testdata/layout on one checkpoint.
type script struct {
	d  *Dir
	fs *vfs.MemFS
}

func TestLayout(t *testing.T) {
	datadriven.Walk(t, "testdata/layout", func(t *testing.T, path string) {
		s := &script{fs: vfs.NewMem()}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := s.run(t, td)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			return out
		})
	})
}

func (s *script) run(t *testing.T, td *datadriven.TestData) (string, error) {
	var batch, version int64
	var id, name string
	var op, partition, format int
	td.MaybeScanArgs(t, "batch", &batch)
	td.MaybeScanArgs(t, "version", &version)
	td.MaybeScanArgs(t, "id", &id)
	td.MaybeScanArgs(t, "name", &name)
	td.MaybeScanArgs(t, "op", &op)
	td.MaybeScanArgs(t, "partition", &partition)
	td.MaybeScanArgs(t, "format", &format)
	switch td.Cmd {
	case "open":
		d, err := Open(s.fs, "/ckpt")
		s.d = d
		return "", err
	case "tree":
		return tree(t, s.fs, "/ckpt"), nil
	case "cat":
		data, err := s.d.read(s.d.path(strings.Split(name, "/")...), maxLogBytes)
		return string(data) + "\n", err
	case "query":
		return "", s.d.SetQueryID(id)
	case "source":
		return "", s.d.WriteSource(0, name, []byte("\x00v1\n"+td.Input))
	case "offsets":
		n, err := s.d.WriteOffsets(batch, &Offsets{
			WatermarkMs: batch * 1000, TimestampMs: 1_700_000_000_000 + batch, Format: format,
			Conf: map[string]string{"spark.sql.shuffle.partitions": "2", "a<b": "&"}, Sources: strings.Split(td.Input, "\n"),
		})
		return fmt.Sprintf("%d bytes\n", n), err
	case "commit":
		c := &Commit{NextWatermarkMs: batch*1000 + 1}
		if id != "" {
			c.StateIDs = map[int][][]string{op: {{id + "0"}, {id + "1"}}}
		}
		n, err := s.d.WriteCommit(batch, c)
		return fmt.Sprintf("%d bytes\n", n), err
	case "operator":
		return "", s.d.WriteOperator(OperatorInfo{ID: op, Name: name, Stores: []StoreInfo{{"default", 0, 2}, {"other", 1, 2}}})
	case "purge":
		n, err := s.d.Purge(batch)
		return fmt.Sprintf("%d deleted\n", n), err
	case "rewind":
		return "", s.d.Rewind(batch)
	case "remove":
		return "", s.d.Remove()
	}
	return s.runState(t, td, s.d.State(op, partition, name), version, id)
}

func (s *script) runState(t *testing.T, td *datadriven.TestData, dir *StateDir, version int64, id string) (string, error) {
	switch td.Cmd {
	case "changelog":
		_, err := dir.WriteChangelog(version, id, []byte(td.Input))
		return "", err
	case "delta":
		_, err := dir.WriteDelta(version, []byte(td.Input))
		return "", err
	case "map":
		_, err := dir.WriteSnapshotFile(version, []byte(td.Input))
		return "", err
	case "snapshot": // the input is one table per line
		snap := &Snapshot{Keys: 3, Small: []SmallFile{{"CURRENT", []byte("M-1\n")}}}
		if td.HasArg("families") {
			snap.Families, snap.InternalFamilies = map[string]int{"default": 0, "$timers": 1}, map[string]bool{"default": false, "$timers": true}
		}
		for table := range strings.FieldsSeq(td.Input) {
			snap.SSTs = append(snap.SSTs, SST{"000001.sst", table, 4})
		}
		n, err := dir.WriteSnapshot(version, id, snap)
		return fmt.Sprintf("%d bytes\n", n), err
	case "metadata":
		snap, err := dir.Snapshot(version, id)
		if err != nil {
			return "", err
		}
		meta, err := snap.metadata()
		return string(meta) + "\n", err
	case "sst":
		local := vfs.NewMem()
		if err := writeFile(local, "/000001.sst", td.Input); err != nil {
			return "", err
		}
		n, err := dir.PutSST(local, "/000001.sst", id)
		return fmt.Sprintf("%d bytes\n", n), err
	case "list":
		snapshots, changelogs, err := dir.List()
		return fmt.Sprintf("snapshots %v changelogs %v\n", snapshots, changelogs), err
	case "delete":
		del, err := dir.DeleteVersions(version)
		return fmt.Sprintf("%d files and %d tables deleted, %d listed\n", del.Files, del.SSTs, del.Listed), err
	}
	t.Fatalf("%s: unknown command %s", td.Pos, td.Cmd)
	return "", nil
}

func writeFile(fs vfs.FS, path, content string) error {
	f, err := fs.Create(path, category)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(content))
	return errors.Join(err, f.Sync(), f.Close())
}

func TestCheckpointOnADiskIsReadBack(t *testing.T) {
	root := t.TempDir()
	for _, below := range []string{"ckpt", "deep/er/ckpt"} {
		path := vfs.Default.PathJoin(root, below)
		d, err := Open(vfs.Default, path)
		if err != nil {
			t.Fatal(err)
		}
		local := vfs.Default.PathJoin(root, "000004.sst")
		if err := writeFile(vfs.Default, local, "table"); err != nil {
			t.Fatal(err)
		}
		s := d.State(0, 1, "left-keyToNumValues")
		if n, err := s.PutSST(vfs.Default, local, "000004-u.sst"); n != 5 || err != nil {
			t.Fatalf("put %d bytes: %v", n, err)
		}
		want := &Snapshot{SSTs: []SST{{"000004.sst", "000004-u.sst", 5}}, Keys: 2, Small: []SmallFile{{"OPTIONS", []byte("o")}}}
		if _, err := s.WriteSnapshot(1, "", want); err != nil {
			t.Fatal(err)
		}
		if d, err = Open(vfs.Default, path); err != nil {
			t.Fatal(err)
		}
		got, err := d.State(0, 1, "left-keyToNumValues").Snapshot(1, "")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "snapshot", got, want)
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
		if _, err := vfs.Default.Stat(path); err == nil {
			t.Error("the checkpoint is still there")
		}
	}
}

func TestTablesInOneMemoryAreLinkedNotCopied(t *testing.T) {
	mem := vfs.NewMem()
	d, err := Open(mem, "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(mem, "/000001.sst", "table"); err != nil {
		t.Fatal(err)
	}
	s := d.State(0, 0, "")
	if n, err := s.PutSST(mem, "/000001.sst", "000001-u.sst"); n != 5 || err != nil {
		t.Fatalf("put %d bytes: %v", n, err)
	}
	local, err := mem.UnsafeGetFileDataBuffer("/000001.sst")
	if err != nil {
		t.Fatal(err)
	}
	remote, err := mem.UnsafeGetFileDataBuffer(s.join(sstsName, "000001-u.sst"))
	if err != nil {
		t.Fatal(err)
	}
	if &local[0] != &remote[0] {
		t.Error("the table was copied")
	}
	if _, err := s.PutSST(mem, "/000001.sst", "000001-u.sst"); err != nil {
		t.Errorf("put again, as a batch that is tried again does: %v", err)
	}
	if _, err := s.FetchSST("000001-u.sst", mem, "/000002.sst"); err != nil {
		t.Error(err)
	}
}

func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	s := d.State(0, 0, "../../x")
	if strings.Contains(s.Path(), "..") {
		t.Errorf("store's folder is %s", s.Path())
	}
	for _, name := range []string{"", "..", "a/b", `a\b`, ".hidden", "x.crc"} {
		if err := d.WriteSource(0, name, nil); err == nil {
			t.Errorf("source file %q was written", name)
		}
		if _, err := s.PutSST(d.FS(), "/x", name); err == nil {
			t.Errorf("table %q was put", name)
		}
	}
	if _, err := Open(vfs.NewMem(), ""); err == nil {
		t.Error("a checkpoint without a name opens")
	}
}

func TestOffsetsThatCanNotBeReadBackAreNotWritten(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]*Offsets{"format": {Format: 3}, "lines": {Sources: []string{"1\n2"}}} {
		if _, err := d.WriteOffsets(0, o); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

func TestStoresAreWrittenAtTheSameTime(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for p := range 8 {
		wg.Go(func() {
			for v := range int64(20) {
				s := d.State(0, p, "default")
				if _, err := s.WriteChangelog(v+1, "", []byte("x")); err != nil {
					t.Error(err)
				}
				if _, err := s.WriteSnapshot(v+1, "", &Snapshot{}); err != nil {
					t.Error(err)
				}
				if _, err := s.DeleteVersions(v - 5); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for p := range 8 {
		if snapshots, _, err := d.State(0, p, "").List(); len(snapshots) != 7 || err != nil {
			t.Errorf("partition %d has snapshots %v (%v)", p, snapshots, err)
		}
	}
}
