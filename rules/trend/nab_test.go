package trend

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// nabFile is one series of the Numenta Anomaly Benchmark with its labelled windows.
type nabFile struct {
	name    string
	at      []int64 // Unix milliseconds
	y       []float64
	windows [][2]int64
}

// readNAB reads the benchmark where STATEGAUGE_SHARED says that it lies.
func readNAB(t *testing.T) []nabFile {
	t.Helper()
	root := os.Getenv("STATEGAUGE_SHARED")
	if root == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	root = filepath.Join(root, "datasets", "nab")
	text, err := os.ReadFile(filepath.Join(root, "labels", "combined_windows.json"))
	if err != nil {
		t.Skip(err)
	}
	labels := map[string][][2]string{}
	if err := json.Unmarshal(text, &labels); err != nil {
		t.Fatal(err)
	}
	var files []nabFile
	for name, windows := range labels {
		f := readNABSeries(t, filepath.Join(root, "data", name))
		f.name = name
		for _, w := range windows {
			f.windows = append(f.windows, [2]int64{nabTime(t, w[0]), nabTime(t, w[1])})
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b nabFile) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return files
}

func readNABSeries(t *testing.T, path string) (f nabFile) {
	t.Helper()
	r, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		f.at, f.y = append(f.at, nabTime(t, row[0])), append(f.y, v)
	}
	return f
}

func nabTime(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// nabScore is how many windows a method hits and how often it speaks outside them.
type nabScore struct {
	hit   map[int]bool
	false episodes
}

func (s *nabScore) see(f *nabFile, i int, found bool) {
	for k, w := range f.windows {
		if f.at[i] >= w[0] && f.at[i] <= w[1] {
			if found {
				s.hit[k] = true
			}
			s.false.see(false)
			return
		}
	}
	s.false.see(found)
}

// nabSpikes asks of each point whether it stands far above the 200 before it.
func nabSpikes(f *nabFile) nabScore {
	s, score := new(Scratch), nabScore{hit: map[int]bool{}, false: episodes{hold: 1}}
	for i := 200; i < len(f.y); i++ {
		_, _, threshold := s.Spikes(f.y[i-200:i], SpikeOptions{Limit: 8, Factor: 1.5}, nil)
		score.see(f, i, f.y[i] > threshold)
	}
	return score
}

// nabShift asks whether 30 points differ from the 600 before them, by the test of
// ranks and by a quarter, where a CUSUM on the first of them alarms too.
func nabShift(f *nabFile) nabScore {
	s, score := new(Scratch), nabScore{hit: map[int]bool{}, false: episodes{hold: 5}}
	c := NewCUSUM(CUSUMOptions{Side: BothWays})
	for i := range f.y {
		if i >= 600 && (i%600 == 0 && c.Alarm().Verdict != Found || !c.Baseline().Known()) {
			c.Freeze(s.Baseline(f.y[i-600:i], 0))
		}
		c.Push(int64(i), f.y[i])
		if i < 640 {
			continue
		}
		found := false
		if c.Alarm().Verdict == Found {
			before, recent := SplitRecent(f.y[i-640:i+1], 30, 10)
			r := s.RankSum(before, recent, RankSumOptions{})
			found = r.Z > 2.6 && r.Ratio > 1.25 || r.Z < -2.6 && r.Ratio < 0.8
		}
		score.see(f, i, found)
	}
	return score
}

// The benchmark is about points and daily shapes, which is not what these statistics
// are for, so only a low bound is held; the table is the purpose.
func TestNABPerFile(t *testing.T) {
	files := readNAB(t)
	windows, either, points, outside := 0, 0, 0, 0
	for i := range files {
		f := &files[i]
		spikes, shift := nabSpikes(f), nabShift(f)
		hit := 0
		for k := range f.windows {
			hit += count(spikes.hit[k] || shift.hit[k])
		}
		t.Logf("%-62s %5d points, %d windows: spikes %d (%d outside), shift %d (%d outside)", f.name, len(f.y), len(f.windows),
			len(spikes.hit), spikes.false.count, len(shift.hit), shift.false.count)
		windows, either = windows+len(f.windows), either+hit
		points, outside = points+len(f.y), outside+spikes.false.count+shift.false.count
	}
	t.Logf("%d of %d windows hit, %.2f episodes outside per 1,000 points", either, windows, 1000*float64(outside)/float64(points))
	if 3*either < windows || 1000*outside > 5*points {
		t.Errorf("%d of %d windows hit, %d episodes outside in %d points", either, windows, outside, points)
	}
}
