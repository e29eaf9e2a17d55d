package lsm

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// pair is a database and the map that it must equal.
type pair struct {
	t      testing.TB
	o      Options
	d      *DB
	want   map[string]string
	copies int
}

func newPair(t testing.TB) *pair {
	p := &pair{t: t, want: map[string]string{}}
	p.o = Options{FS: vfs.NewMem(), Dir: "db", Shared: newShared(t, 256<<10), MemtableBytes: 6 << 10}
	p.open()
	t.Cleanup(func() { p.check(p.d.Close()) })
	return p
}

func (p *pair) open() {
	p.t.Helper()
	d, err := Open(p.o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.d = d
}

func (p *pair) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func key(n byte) []byte { return []byte{'k', n % 97} }

// step does what two numbers say to both.
func (p *pair) step(op, n byte) {
	p.t.Helper()
	k := key(n)
	switch op % 16 {
	case 0, 1, 2, 3, 4, 5:
		v := bytes.Repeat([]byte{op, n}, int(n))
		p.check(p.d.Set(k, v))
		p.want[string(k)] = string(v)
	case 6, 7:
		p.check(p.d.Delete(k))
		delete(p.want, string(k))
	case 8:
		to := []byte{'k', n%97 + op%7}
		p.check(p.d.DeleteRange(k, to))
		maps.DeleteFunc(p.want, func(have, _ string) bool { return have >= string(k) && have < string(to) })
	case 9, 10:
		p.get(k)
	case 11:
		p.scan(k)
	case 12:
		_, err := p.d.Flush()
		p.check(err)
	case 13:
		_, err := p.d.Compact()
		p.check(err)
	case 14:
		p.d.PauseCompaction(n%2 == 0)
	case 15:
		p.reopen(n%3 == 0)
	}
}

func (p *pair) get(k []byte) {
	p.t.Helper()
	v, found, err := p.d.Get(k)
	p.check(err)
	if want, ok := p.want[string(k)]; ok != found || want != string(v) {
		p.t.Fatalf("%q: got %.20q %t, want %.20q %t", k, v, found, want, ok)
	}
}

func (p *pair) scan(from []byte) {
	p.t.Helper()
	var got, want []string
	p.check(p.d.Scan(from, nil, func(k, v []byte) bool {
		got = append(got, fmt.Sprintf("%q=%q", k, v))
		return true
	}))
	for _, k := range slices.Sorted(maps.Keys(p.want)) {
		if k >= string(from) {
			want = append(want, fmt.Sprintf("%q=%q", k, p.want[k]))
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			p.t.Fatalf("from %q: %d rows, want %d, and number %d differs: got %.40s, want %.40s",
				from, len(got), len(want), i, got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))])
		}
	}
}

// reopen goes on from a checkpoint, or from the directory itself after a flush.
func (p *pair) reopen(inPlace bool) {
	p.t.Helper()
	if inPlace {
		_, err := p.d.Flush()
		p.check(err)
	} else {
		p.copies++
		dir := fmt.Sprint("copy", p.copies)
		_, err := p.d.Checkpoint(dir)
		p.check(err)
		p.check(p.d.Close())
		p.check(p.o.FS.RemoveAll(p.o.Dir))
		p.o.Dir = dir
		p.open()
		return
	}
	p.check(p.d.Close())
	p.open()
}

func TestDatabaseEqualsAMap(t *testing.T) {
	runs, steps := 12, 1500
	if testing.Short() || raceEnabled {
		runs, steps = 3, 600
	}
	for seed := range runs {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			p := newPair(t)
			rng := rand.New(rand.NewPCG(uint64(seed), 3))
			for range steps {
				p.step(byte(rng.Uint32()), byte(rng.Uint32()))
			}
			p.scan(nil)
		})
	}
}

func FuzzDatabaseEqualsAMap(f *testing.F) {
	f.Add([]byte{0, 9, 12, 0, 6, 9, 13, 0, 15, 1})          // delete what lies in a table, compact, reopen from a copy
	f.Add([]byte{3, 90, 12, 1, 8, 88, 15, 3, 9, 90, 11, 0}) // a range over what was flushed, reopened in place
	f.Add([]byte{14, 0, 1, 1, 12, 0, 1, 2, 12, 0, 1, 3, 12, 0, 1, 4, 12, 0, 14, 1, 12, 0, 13, 0, 11, 0})
	f.Fuzz(func(t *testing.T, ops []byte) {
		p := newPair(t)
		for i := 0; i+1 < min(len(ops), 400); i += 2 {
			p.step(ops[i], ops[i+1])
		}
		p.scan(nil)
	})
}
