package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
)

// kept makes a small history and returns its directory.
func kept(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "kept")
	k := newKeeper(t, dir)
	for n := range int64(50) {
		k.received(executed("a", n), noon+n*60_000+20_100)
	}
	k.close()
	return dir
}

// files lists what a history consists of.
func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "history", pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s, error %v", pattern, dir, err)
	}
	return found
}

func remove(t *testing.T, files []string) {
	t.Helper()
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// broken are directories that cannot be read, and what is in the chain of the error.
var broken = []struct {
	name string
	make func(t *testing.T) string
	is   error
}{
	{"a directory that is not there", func(t *testing.T) string { return filepath.Join(t.TempDir(), "nothing") }, os.ErrNotExist},
	{"a directory of other files", func(t *testing.T) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "events.ndjson"), []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}, os.ErrNotExist},
	{"no directory at all", func(*testing.T) string { return "" }, nil},
	{"a history without its manifest", func(t *testing.T) string {
		dir := kept(t)
		remove(t, files(t, dir, "MANIFEST-*"))
		remove(t, files(t, dir, "marker.manifest.*"))
		return dir
	}, history.ErrDamaged},
	{"a history of a newer version", func(t *testing.T) string {
		dir := kept(t)
		db, err := pebble.Open(filepath.Join(dir, "history"), &pebble.Options{FormatMajorVersion: pebble.FormatTableFormatV6, Logger: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		err = db.Set([]byte("aformat"), binary.BigEndian.AppendUint64(nil, 99), pebble.Sync)
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		return dir
	}, history.ErrNewer},
}

// quiet is a logger of Pebble's that says nothing.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

func TestWhatIsNoReadableHistoryIsSaidWithTheNameOfTheInput(t *testing.T) {
	var said strings.Builder
	for _, c := range broken {
		dir := c.make(t)
		_, err := Merge(t.Context(), Inputs{Paths: []string{"history:" + dir}}, func(*collector.Item) { t.Error("something was played") })
		if err == nil || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.is)
			continue
		}
		text := err.Error()
		if dir != "" {
			text = strings.ReplaceAll(text, dir, "DIR")
		}
		fmt.Fprintf(&said, "%s\n  %s\n", c.name, text)
	}
	file := filepath.Join("testdata", "histories.golden")
	if *update {
		if err := os.WriteFile(file, []byte(said.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), said.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAHistoryThatCannotBeReadCostsNoOtherInput(t *testing.T) {
	in := Inputs{Paths: []string{"history:/nowhere/at/all", "history:" + kept(t), "-"}, Stdin: strings.NewReader(newStream("s").add(0, 5, nil).text())}
	b, err := Backtest(t.Context(), BacktestOptions{Inputs: in})
	if err == nil || !strings.HasPrefix(err.Error(), "history:/nowhere/at/all: ") || b.Events != 55 {
		t.Errorf("%d events, error %v", b.Events, err)
	}
}

// TestDamageOnTheWayKeepsWhatCouldBeRead spoils the middle of the tables, which is
// found when it is read and not before.
func TestDamageOnTheWayKeepsWhatCouldBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	k := newKeeper(t, dir)
	for n := range int64(4000) {
		for q := range 3 {
			e := executed(fmt.Sprintf("q%d", q), n)
			for id := range event.MetricID(event.NumMetrics) {
				e.Batch.Values[id] = float64(n*7919%1_000_003) * float64(id+1)
			}
			e.Batch.Values[event.BatchDuration] = 20_000
			k.received(e, noon+n*60_000+20_100)
		}
		if len(k.step.Records) >= 500 {
			k.commit()
		}
	}
	k.close()
	for _, f := range files(t, dir, "*.sst") {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 1<<20 {
			continue
		}
		for i := range 64 {
			data[len(data)/2+i] ^= 0xff
		}
		if err := os.WriteFile(f, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	sum, err := Merge(t.Context(), Inputs{Paths: []string{"history:" + dir}}, func(*collector.Item) { n++ })
	if !errors.Is(err, history.ErrDamaged) || !strings.Contains(err.Error(), "history repair") {
		t.Errorf("error %v", err)
	}
	if n == 0 || n >= 12_000 || sum.Events != n {
		t.Errorf("%d of 12000 events were played, %d counted", n, sum.Events)
	}
}
