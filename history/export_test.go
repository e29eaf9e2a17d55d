package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

// furnished is a history with something of everything.
func furnished(t testing.TB, o Options) *Store {
	t.Helper()
	s := open(t, o)
	commit(t, s, &Step{
		Records: []Record{batchOf("a", 1), batchOf("b", 1), batchOf("a", 2)},
		Offsets: []Offset{{"events", 0, 17}, {"events", 1, 4}},
		States:  []State{{"tracker", "0", 1, []byte("tracked")}, {"rules", "a", 1, nil}, {"gone", "x", 1, []byte("x")}},
		Words:   []Word{{7, "rocksdbNewFigure"}, {8, ""}},
	})
	commit(t, s,
		&Step{Seq: 2, Records: []Record{batchOf("a", 400)}, Offsets: []Offset{{"events", 0, 18}}},
		&Step{Seq: 3, States: []State{{"tracker", "0", 3, []byte("tracked more")}}, Dropped: []State{{Kind: "gone", Key: "x"}}},
	)
	if err := s.PutHours("name of a", "a", "commit_sync", []Hour{{t0 / hourMs * hourMs, []byte("hour 1")}, {t0/hourMs*hourMs + hourMs, []byte("hour 2")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Trim(1); err != nil {
		t.Fatal(err)
	}
	commit(t, s, &Step{})
	return s
}

// describeAll writes down everything that a store gives back.
func describeAll(t testing.TB, s *Store) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintln(&b, "next step", s.NextSeq())
	queries, err := s.Queries()
	fmt.Fprintln(&b, "queries", queries, err)
	for _, q := range queries {
		err = errors.Join(err, s.Read(q.ID, 0, t0*2, func(r Record) error {
			fmt.Fprintf(&b, "record %s %s %d %s\n", r.Query, r.Lineage, r.AtMs, r.Body)
			return nil
		}))
	}
	err = errors.Join(err, s.Replay(0, func(seq uint64, r Record) error {
		fmt.Fprintf(&b, "replayed %d %s %s\n", seq, r.Lineage, r.Body)
		return nil
	}))
	offsets, e1 := s.Offsets()
	words, e2 := s.Words()
	fmt.Fprintf(&b, "offsets %v\nwords %v\n", offsets, words)
	for _, kind := range []string{"gone", "rules", "tracker"} {
		err = errors.Join(err, s.States(kind, func(v State) error {
			fmt.Fprintf(&b, "state %s %s %d %q\n", v.Kind, v.Key, v.Seq, v.Body)
			return nil
		}))
	}
	err = errors.Join(err, e1, e2, s.ReadHours("name of a", "", "commit_sync", 0, t0*2, func(query string, h Hour) error {
		fmt.Fprintf(&b, "hour %s %d %s\n", query, h.StartMs, h.Body)
		return nil
	}))
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

func exported(t testing.TB) (export []byte, contents string) {
	t.Helper()
	s := furnished(t, inMemory())
	var b bytes.Buffer
	if err := s.Export(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), describeAll(t, s)
}

func TestAnImportHoldsWhatWasExported(t *testing.T) {
	export, want := exported(t)
	o := inMemory()
	r, err := Import(o, bytes.NewReader(export))
	if err != nil || !r.OK() || r.Records != 4 || r.LoggedSteps != 3 || r.Hours != 2 || r.NewestStep != 4 {
		t.Fatalf("%+v %v", r, err)
	}
	if diff := cmp.Diff(want, describeAll(t, open(t, o))); diff != "" {
		t.Error(diff)
	}
}

func TestAnImportReplacesNoHistory(t *testing.T) {
	export, _ := exported(t)
	o := inMemory()
	furnished(t, o)
	if _, err := Import(o, bytes.NewReader(export)); !errors.Is(err, ErrInUse) {
		t.Errorf("over a history in use: %v", err)
	}
	o = inMemory()
	if err := open(t, o).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(o, bytes.NewReader(export)); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("over a history: %v", err)
	}
}

func TestABrokenExportIsRefusedAndLeavesNothing(t *testing.T) {
	export, _ := exported(t)
	pairs := func(stream []byte) (got string, err error) {
		err = readExport(bytes.NewReader(stream), Options{}.withDefaults(), func(key, value []byte) error {
			got += fmt.Sprintf("%x %x\n", key, value)
			return nil
		})
		return got, err
	}
	want, err := pairs(export)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(export) {
		broken := bytes.Clone(export)
		broken[at] ^= 0x11
		for name, stream := range map[string][]byte{"cut": export[:at], "flipped": broken} {
			got, err := pairs(stream)
			if err == nil && got != want { // some bits of the packing mean nothing
				t.Fatalf("%s at byte %d of %d: taken for whole", name, at, len(export))
			}
		}
	}
	o := inMemory()
	if _, err := Import(o, bytes.NewReader(export[:len(export)-9])); !errors.Is(err, ErrExport) {
		t.Errorf("error is %v", err)
	}
	if s := open(t, o); s.NextSeq() != 1 {
		t.Errorf("something was left: next step %d", s.NextSeq())
	}
}

func TestAnErrorOfTheWriterEndsAnExport(t *testing.T) {
	s := furnished(t, inMemory())
	for _, after := range []int{0, 5, 100} {
		if err := s.Export(&limited{left: after}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("after %d bytes: %v", after, err)
		}
	}
}

type limited struct{ left int }

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// FuzzImport reads anything as an export: it must be refused or be whole.
func FuzzImport(f *testing.F) {
	export, _ := exported(f)
	f.Add(export)
	f.Add([]byte(exportMagic))
	f.Add(export[:len(export)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		if readExport(bytes.NewReader(b), Options{}.withDefaults(), func([]byte, []byte) error { return nil }) != nil {
			return
		}
		fs := vfs.NewMem()
		r, err := Import(Options{Dir: "data", FS: fs}, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Dir: "data", FS: fs})
		if err != nil {
			t.Fatalf("imported %+v, but: %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzValues decodes anything as the values and keys of a database.
func FuzzValues(f *testing.F) {
	f.Add(logKey(3), appendEntries(nil, []entry{{1, t0}, {2, t0 - 5}}))
	f.Add(rawKey{1, t0, 4, 2}.append(nil), []byte("body"))
	f.Add(queryKey(1), appendQuery(nil, "id", "lineage"))
	f.Add(hourKey(hourPrefix(3, "l", "s"), t0, "q"), []byte{})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		v := surveyor{r: &Report{}}
		_ = v.look(key, value)
		if entries, err := parseEntries(value, nil); err == nil {
			if again, err := parseEntries(appendEntries(nil, entries), nil); err != nil || !cmp.Equal(entries, again, cmp.AllowUnexported(entry{})) {
				t.Errorf("%v became %v: %v", entries, again, err)
			}
		}
		if _, k, err := parseRawKey(key); err == nil {
			if _, again, err := parseRawKey(k.append(nil)); err != nil || again != k {
				t.Errorf("%v became %v: %v", k, again, err)
			}
		}
	})
}
