package rollup

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("update", false, "write the golden file of a new version")

// day is a midnight from which the tests count.
const day = int64(1_930_003_200_000)

// made are hours as signals give them, and odd ones.
func made() []Hour {
	return []Hour{
		{StartMs: day, Count: 60, Min: 0.0421, Median: 0.05375, P95: 0.071244, Max: 0.1136, Last: 0.0511},
		{StartMs: day + HourMs, Count: 1, Min: 12, Median: 12, P95: 12, Max: 12, Last: 12},
		{StartMs: day, Count: 360, Min: 4_102_339_187, Median: 4_102_812_006.5, P95: 4_119_000_312.2, Max: 4_119_226_001, Last: 4_119_226_001},
		{StartMs: -HourMs, Count: 2, Min: -1.5, Median: -0.75, P95: -0.075, Max: 0, Last: -1.5},
		{StartMs: 0, Count: 3},
		{StartMs: math.MaxInt64 / HourMs * HourMs, Count: maxCount, Min: -math.MaxFloat64, Median: math.SmallestNonzeroFloat64, P95: 1, Max: math.MaxFloat64, Last: math.Pi},
	}
}

func TestHoursComeBackToTheLastBit(t *testing.T) {
	for _, h := range append(made(), random(2000)...) {
		back, err := Decode(Append([]byte(nil), &h))
		if err != nil || back != h {
			t.Fatalf("%+v came back as %+v, error %v", h, back, err)
		}
	}
}

// random are hours of random values, some of them whole numbers.
func random(n int) (out []Hour) {
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range n {
		values := make([]float64, 1+rng.IntN(60))
		for k := range values {
			values[k] = 0.05 * math.Exp(0.15*rng.NormFloat64())
			if i%2 == 0 {
				values[k] = math.Round(1e9 * values[k])
			}
		}
		h, _ := Of(day+int64(i)*HourMs, values)
		out = append(out, h)
	}
	return out
}

func TestAnHourTakesFewBytes(t *testing.T) {
	total := 0
	all := random(1000)
	for i := range all {
		total += len(Append(nil, &all[i]))
	}
	mean := float64(total) / float64(len(all))
	t.Logf("%.1f bytes an hour, 56 in memory", mean)
	if mean > 44 {
		t.Errorf("%.1f bytes an hour", mean)
	}
	if n := len(Append(nil, &made()[1])); n > 13 {
		t.Errorf("%d bytes for an hour of one value", n)
	}
}

func goldenText() string {
	var b strings.Builder
	for _, h := range made() {
		fmt.Fprintf(&b, "%x %s\n", Append(nil, &h), said(h))
	}
	return b.String()
}

func said(h Hour) string {
	return fmt.Sprintf("start=%d count=%d min=%v median=%v p95=%v max=%v last=%v", h.StartMs, h.Count, h.Min, h.Median, h.P95, h.Max, h.Last)
}

func goldenFile(version int) string { return fmt.Sprintf("testdata/v%d.golden", version) }

// The bytes of a version never change: what is on a disk must stay readable.
func TestThisVersionWritesTheSameBytesAsEver(t *testing.T) {
	before, err := os.ReadFile(goldenFile(Version))
	if *rewrite && os.IsNotExist(err) {
		if err := os.WriteFile(goldenFile(Version), []byte(goldenText()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatalf("%v: `go test ./history/rollup -update` writes it for a new version", err)
	}
	if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(goldenText(), "\n")); diff != "" {
		t.Errorf("version %d is on disks as recorded; a change needs a version of its own (-recorded +now):\n%s", Version, diff)
	}
}

func TestEveryVersionThatThereWasIsReadable(t *testing.T) {
	for version := 1; version <= Version; version++ {
		text, err := os.ReadFile(goldenFile(version))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			code, want, _ := strings.Cut(strings.TrimSpace(line), " ")
			b, err := hex.DecodeString(code)
			if err != nil {
				t.Fatal(err)
			}
			if h, err := Decode(b); err != nil || said(h) != want {
				t.Errorf("version %d: %s reads as %s, error %v", version, want, said(h), err)
			}
		}
	}
}

func TestDamagedBytesSayWhatIsWrong(t *testing.T) {
	h := made()[0]
	good := Append(nil, &h)
	for want, b := range map[string][]byte{
		"it is empty":                      nil,
		"version 2, this program reads 1":  append([]byte{2}, good[1:]...),
		"cut off":                          good[:len(good)-1],
		"1 bytes too many":                 append(good[:len(good):len(good)], 0),
		"0 values in hour 0":               {Version, 0, 0, 0, 0, 0, 0, 0},
		"values in hour -4611686018427387": {Version, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0, 0, 0},
		"figure of 8 bytes before 1":       {Version, 0, 1, 0x18, 0, 0, 0, 0},
		"not in order: min 0, median -0.5": Append(nil, &Hour{Count: 1, Median: -0.5}),
		"not in order: min 0, median NaN":  Append(nil, &Hour{Count: 1, Median: math.NaN()}),
		"max +Inf":                         Append(nil, &Hour{Count: 1, Max: math.Inf(1)}),
		"last 3":                           Append(nil, &Hour{Count: 1, Max: 2, Last: 3}),
	} {
		if _, err := Decode(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("% x: error %v, want %q", b, err, want)
		}
	}
	for n := range good {
		if _, err := Decode(good[:n]); err == nil {
			t.Errorf("%d of %d bytes were taken for an hour", n, len(good))
		}
	}
}

// FuzzDecode feeds any bytes: what passes for an hour holds together and is
// written again as what it was read as.
func FuzzDecode(f *testing.F) {
	for _, h := range made() {
		f.Add(Append(nil, &h))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Decode(b)
		if err != nil {
			return
		}
		back, err := Decode(Append(nil, &h))
		if err != nil || back != h {
			t.Fatalf("%+v came back as %+v, error %v", h, back, err)
		}
		if all := Merge([]Hour{h, h}, h.StartMs, HourMs, nil); len(all) != 1 || all[0].check() != nil || all[0].Count != 2*h.Count {
			t.Fatalf("%+v twice merges into %+v", h, all)
		}
	})
}

// BenchmarkHourVersusJSON measures writing and reading a summary against
// encoding/json.
func BenchmarkHourVersusJSON(b *testing.B) {
	all := random(256)
	var dst []byte
	var ours, peer time.Duration
	for b.Loop() {
		ours += processorTime(b, func() {
			for i := range all {
				dst = Append(dst[:0], &all[i])
				if _, err := Decode(dst); err != nil {
					b.Fatal(err)
				}
			}
		})
		peer += processorTime(b, func() {
			for i := range all {
				var h Hour
				text, err := json.Marshal(&all[i])
				if err == nil {
					err = json.Unmarshal(text, &h)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N*len(all)), "cpu-ns/hour")
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
}

// processorTime is what the process spends on f: others' work on the machine does
// not count.
func processorTime(b *testing.B, f func()) time.Duration {
	began := usage(b)
	f()
	return usage(b) - began
}

func usage(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
