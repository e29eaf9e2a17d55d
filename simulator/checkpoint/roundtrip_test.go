package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// someText draws a text with all that JSON has to escape, and more.
func someText(rng *rand.Rand) string {
	const letters = "ab<>&\"\\/\u2028é漢 :-\t"
	all := []rune(letters)
	var b strings.Builder
	for range rng.IntN(12) {
		b.WriteRune(all[rng.IntN(len(all))])
	}
	return b.String()
}

func someOffsets(rng *rand.Rand) *Offsets {
	o := &Offsets{
		WatermarkMs: rng.Int64(), TimestampMs: rng.Int64N(1 << 45), Format: 1 + rng.IntN(2), Conf: map[string]string{},
	}
	for range rng.IntN(5) {
		o.Conf[someText(rng)] = someText(rng)
	}
	sources := []string{"", "17", `{"t":{"0":5,"1":-2}}`, `"text: with a colon"`, "null"}
	for i := range 1 + rng.IntN(4) {
		o.Sources = append(o.Sources, sources[rng.IntN(len(sources))])
		if o.Format == 2 {
			o.Names = append(o.Names, fmt.Sprintf("source%d", i))
		}
	}
	return o
}

func someCommit(rng *rand.Rand) *Commit {
	c := &Commit{NextWatermarkMs: rng.Int64()}
	if rng.IntN(2) == 0 {
		return c
	}
	c.StateIDs = map[int][][]string{}
	for op := range 1 + rng.IntN(3) {
		for range 1 + rng.IntN(3) {
			c.StateIDs[op] = append(c.StateIDs[op], []string{someText(rng), someText(rng)})
		}
	}
	return c
}

func TestLogsAreReadBackAsWritten(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(11, 12))
	for b := range int64(300) {
		o, c := someOffsets(rng), someCommit(rng)
		n, err := d.WriteOffsets(b, o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.fs.Stat(d.logPath(offsetsName, b))
		if err != nil || info.Size() != n {
			t.Fatalf("%d bytes said to be written: %v", n, err)
		}
		if _, err := d.WriteCommit(b, c); err != nil {
			t.Fatal(err)
		}
		gotOffsets, err := d.Offsets(b)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "offsets", gotOffsets, o)
		gotCommit, err := d.Commit(b)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "commit", gotCommit, c)
		if last, _ := d.LastOffsets(); last != b {
			t.Fatalf("last offsets %d, want %d", last, b)
		}
	}
}

func TestLogNamesAreNumbersAndNothingElse(t *testing.T) {
	for name, want := range map[string]int64{
		"0": 0, "7": 7, "120": 120, "9223372036854775807": 9223372036854775807,
		"": -1, "-1": -1, "+1": -1, "01": -1, "1.compact": -1, "1.crc": -1, ".1.crc": -1, "x": -1, "9223372036854775808": -1,
	} {
		got, ok := number(name)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", name, got, want)
		}
	}
}

func TestSideFilesAreNoVersions(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	s := d.State(0, 0, "")
	for _, name := range []string{"3.zip.crc", ".3.zip.crc", ".4.zip.0b9b8f0e.tmp", "5.txt", "x.zip", "_6.zip", "SSTs/7.zip"} {
		if err := d.write(s.join(strings.Split(name, "/")...), nil); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := s.Files(); len(files) > 0 || err != nil {
		t.Errorf("versions %v, %v", files, err)
	}
}

// treeBytes is all that is below dir, with contents.
func treeBytes(t *testing.T, mem *vfs.MemFS, dir string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(tree(t, mem, dir)) {
		name, _, _ := strings.Cut(line, " ")
		data, err := mem.UnsafeGetFileDataBuffer(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %x\n", name, data)
	}
	return b.String()
}

func TestTheSameWritesGiveTheSameBytes(t *testing.T) {
	var first string
	for run := range 3 {
		mem := vfs.NewMem()
		if err := playBatches(mem); err != nil {
			t.Fatal(err)
		}
		got := treeBytes(t, mem, "/ckpt")
		if run == 0 {
			first = got
		}
		if got != first {
			t.Fatal("two runs wrote other bytes")
		}
	}
}

func TestTemporaryNamesNeverRepeatAndFollowTheSeed(t *testing.T) {
	draw := func(seed uint64) []string {
		d, err := Open(vfs.NewMem(), "/ckpt")
		if err != nil {
			t.Fatal(err)
		}
		d.SetSeed(seed)
		var names []string
		for range 50 {
			names = append(names, d.tempName("/ckpt/offsets/1"))
		}
		return names
	}
	one, again, other := draw(1), draw(1), draw(2)
	seen := map[string]bool{}
	for i := range one {
		if one[i] != again[i] {
			t.Errorf("the same seed gives %s and %s", one[i], again[i])
		}
		if seen[one[i]] || seen[other[i]] || one[i] == other[i] {
			t.Errorf("name %s or %s comes twice", one[i], other[i])
		}
		seen[one[i]], seen[other[i]] = true, true
		if base := one[i][strings.LastIndex(one[i], "/")+1:]; !isTemp(base) || !strings.HasPrefix(base, ".1.") {
			t.Errorf("name %s", base)
		}
	}
}

func TestUnreadableCheckpointIsNotTakenForANewOne(t *testing.T) {
	mem := vfs.NewMem()
	if err := playBatches(mem); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for at := 0; ; at++ {
		seen := 0
		broken := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsRead {
				return nil
			}
			seen++
			if seen == at+1 {
				return errPowerCut
			}
			return nil
		}))
		err := resumeAt(broken, crashBatches-1)
		if seen <= at {
			break
		}
		if errors.Is(err, errPowerCut) {
			failed++
		} else if err != nil {
			t.Fatalf("read %d: %v", at, err)
		}
	}
	if failed < 5 {
		t.Errorf("only %d failed reads were noticed", failed)
	}
}

// resumeAt fails unless a checkpoint resumes after the batch given.
func resumeAt(fs vfs.FS, batch int64) error {
	d, err := Open(fs, "/ckpt")
	if err != nil {
		return err
	}
	_, ok, err := d.QueryID()
	if err != nil {
		return err
	}
	committed, _, _, fresh, err := d.Resume()
	if err != nil {
		return err
	}
	if !ok || fresh || committed != batch {
		return fmt.Errorf("query id %v, fresh %v, resumes after batch %d", ok, fresh, committed)
	}
	return nil
}

func TestStateOfAllKindsIsReadBack(t *testing.T) {
	d, err := Open(vfs.NewMem(), "/ckpt")
	if err != nil {
		t.Fatal(err)
	}
	s := d.State(2, 7, "right-keyToNumValues")
	if again := d.State(2, 7, "right-keyToNumValues"); again != s {
		t.Error("the same store has two folders in memory")
	}
	for name, c := range map[string]struct {
		write func([]byte) (int64, error)
		read  func() ([]byte, error)
	}{
		"changelog": {
			func(b []byte) (int64, error) { return s.WriteChangelog(5, "id", b) },
			func() ([]byte, error) { return s.Changelog(5, "id") },
		},
		"delta": {
			func(b []byte) (int64, error) { return s.WriteDelta(5, b) },
			func() ([]byte, error) { return s.Delta(5) },
		},
		"map": {
			func(b []byte) (int64, error) { return s.WriteSnapshotFile(5, b) },
			func() ([]byte, error) { return s.SnapshotFile(5) },
		},
	} {
		for _, data := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte{0, 255}, 100_000)} {
			n, err := c.write(data)
			if n != int64(len(data)) || err != nil {
				t.Fatalf("%s: wrote %d bytes of %d: %v", name, n, len(data), err)
			}
			got, err := c.read()
			if !bytes.Equal(got, data) || err != nil {
				t.Errorf("%s: read %d bytes of %d: %v", name, len(got), len(data), err)
			}
		}
	}
}
