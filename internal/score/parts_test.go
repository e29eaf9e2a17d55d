package score

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/simulator/scenario"
)

func keptOptions(t *testing.T) Options {
	o := tinyOptions(t)
	o.KeepDir, o.Program, o.Parallel = filepath.Join(t.TempDir(), "parts"), "one", 1
	return o
}

func TestABrokenPartIsMeasuredAnewAndAFailedOneIsNotKept(t *testing.T) {
	p := &parts{dir: t.TempDir(), about: "x"}
	measure := func(v int, err error) func() (int, error) { return func() (int, error) { return v, err } }
	wrong := fmt.Errorf("wrong")
	if _, _, err := keep(p, "play", "key", measure(1, wrong)); err != wrong {
		t.Errorf("error %v", err)
	}
	if v, was, err := keep(p, "play", "key", measure(2, nil)); v != 2 || was || err != nil {
		t.Errorf("%d, was there %t, error %v", v, was, err)
	}
	if v, was, err := keep(p, "play", "key", measure(3, nil)); v != 2 || !was || err != nil {
		t.Errorf("%d, was there %t, error %v", v, was, err)
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, error %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{brok"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, was, err := keep(p, "play", "key", measure(4, nil)); v != 4 || was || err != nil {
		t.Errorf("%d, was there %t, error %v", v, was, err)
	}
}

func TestPartsAreNotKeptForAProgramWithoutAName(t *testing.T) {
	o := keptOptions(t)
	o.Program = ""
	if _, err := Run(t.Context(), o); err == nil || err.Error() != "parts of a score can only be kept if the program is told from others" {
		t.Errorf("error %v", err)
	}
}

func TestDonorsAreToldApartByWhatTheyAreMadeOf(t *testing.T) {
	a, b := donorForTest(t), donorForTest(t)
	if donorsHash([]*donor{a}) != donorsHash([]*donor{b}) {
		t.Error("the same donor twice is two")
	}
	b.batches[7].Operators[0].Values[3] = 12345
	if donorsHash([]*donor{a}) == donorsHash([]*donor{b}) || donorsHash([]*donor{a}) == donorsHash([]*donor{a, a}) {
		t.Error("donors that differ are one")
	}
}

func TestProgressSaysHowFarItIsAndHowLongTheRestTakes(t *testing.T) {
	var said []string
	p := newProgress(func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }, 100)
	now := p.began
	p.now = func() time.Time { return now }
	p.step(20, true, "play %d", 1)
	now = now.Add(10 * time.Minute)
	p.step(40, false, "play %d", 2)
	now = now.Add(9*time.Minute + 30*time.Second)
	p.step(38, false, "play %d", 3)
	want := []string{"play 1 (20 %, was there)", "play 2 (60 %, about 10m0s left)", "play 3 (98 %, about 30s left)"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

func TestAFaultThatHasNoSizeIsPlayedOnce(t *testing.T) {
	for kind, want := range map[string]bool{"store-slow": true, "events-dropped": true, "memory-unbounded": true, "query-failed": false, "batch-hung": false} {
		if got := scalable(scenario.Fault{Kind: kind}); got != want {
			t.Errorf("%s has a size: %t", kind, got)
		}
	}
	if scalable(scenario.Fault{Kind: "store-slow", Fixed: true}) {
		t.Error("a fixed size is replaced")
	}
}
