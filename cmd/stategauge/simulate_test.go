package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/stategauge/stategauge/simulator"
)

// played returns the lines of a run that must succeed.
func played(t *testing.T, args ...string) []string {
	t.Helper()
	status, out, stderr := call("", append([]string{"simulate"}, args...)...)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d: %s", status, stderr)
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}

func TestScenariosAreListedWithOneLineEach(t *testing.T) {
	lines := played(t, "--list")
	shape := regexp.MustCompile(`^[a-z0-9-]+  \S.*\S$`)
	for _, line := range lines {
		if !shape.MatchString(line) {
			t.Errorf("line %q", line)
		}
	}
	if !slices.IsSorted(lines) || len(lines) < 20 {
		t.Errorf("%d lines, sorted: %v", len(lines), slices.IsSorted(lines))
	}
}

func TestCommandLinesThatCannotBePlayed(t *testing.T) {
	bad := write(t, "mine.yml", "descripton: x\nquery: {trigger: {intervall: 1m}}\n")
	for _, c := range []struct {
		name   string
		args   []string
		status int
		stderr []string
	}{
		{"no scenario", nil, 1, []string{"no scenario is named; --list shows those that there are"}},
		{"a misspelt one", []string{"stedy"}, 1, []string{`unknown scenario "stedy", did you mean "steady"?`}},
		{"an unknown one", []string{"qqqqqqqqqqq"}, 1, []string{`unknown scenario "qqqqqqqqqqq"; --list shows those that there are`}},
		{"a missing file", []string{"./nowhere.yml"}, 1, []string{"open ./nowhere.yml: no such file or directory"}},
		{"a file with faults", []string{bad}, 1, []string{
			`mine.yml:1:1: unknown key "descripton", did you mean "description"?`,
			`mine.yml:2:19: unknown key "intervall", did you mean "interval"?`,
		}},
		{"an unknown version", []string{"steady", "--spark-version=2.4"}, 1, []string{`spark version "2.4" cannot be played`}},
		{"a version without the operator", []string{"steady-transform-with-state", "--spark-version=3.5"}, 1, []string{"needs Spark 4.0"}},
		{"negative batches", []string{"steady", "--batches=-1"}, 1, []string{"--batches (-1) must be at least 0"}},
		{"a negative rate", []string{"steady", "--rate=-1"}, 1, []string{"--rate (-1) must be at least 0"}},
		{"no copies", []string{"steady", "--copies=0"}, 1, []string{"copies (0) must be at least 1"}},
		{"an unknown output", []string{"steady", "--output=ftp://x/y"}, 1, []string{`unknown scheme "ftp"`}},
		{"a size below one", []string{"checkpoint-store-slow", "--size=0.5"}, 1, []string{"size of faults 0.5"}},
		{"no number", []string{"steady", "--seed=x"}, 2, []string{"try --help"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, stderr := call("", append([]string{"simulate"}, c.args...)...)
			if status != c.status || out != "" {
				t.Errorf("status %d, want %d, printed %q", status, c.status, out)
			}
			for _, want := range c.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not in %q", want, stderr)
				}
			}
		})
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	args := []string{"steady", "--batches=30", "--envelope", "--copies=3"}
	first := played(t, append(args, "--seed=5")...)
	if !slices.Equal(first, played(t, append(args, "--seed=5")...)) {
		t.Error("two runs differ")
	}
	if slices.Equal(first, played(t, append(args, "--seed=6")...)) {
		t.Error("two seeds do not")
	}
}

func TestEveryOutputGetsTheSameEvents(t *testing.T) {
	want := strings.Join(played(t, "steady", "--batches=20"), "\n") + "\n"
	file := filepath.Join(t.TempDir(), "events.ndjson")
	played(t, "steady", "--batches=20", "--output="+file)
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("the file holds %d bytes, %v", len(got), err)
	}
	var posted bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(&posted, r.Body)
	}))
	defer server.Close()
	played(t, "steady", "--batches=20", "--output="+server.URL)
	if posted.String() != want {
		t.Errorf("%d bytes were posted", posted.Len())
	}
	if got := produced(t, "steady", "--batches=20"); got != want {
		t.Errorf("%d bytes were produced", len(got))
	}
}

// produced plays into a topic and reads it.
func produced(t *testing.T, args ...string) string {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "events"))
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	addr := broker.ListenAddrs()[0]
	played(t, append(args, "--output=kafka://"+addr+"/events")...)
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("events"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var out strings.Builder
	for n := 0; n < 21 && ctx.Err() == nil; {
		for _, r := range client.PollFetches(ctx).Records() {
			out.Write(r.Value)
			out.WriteByte('\n')
			n++
		}
	}
	return out.String()
}

func TestCopiesAndEnvelopesAreMade(t *testing.T) {
	plain := played(t, "steady", "--batches=10")
	if n := len(played(t, "steady", "--batches=10", "--copies=7")); n != 7*len(plain) {
		t.Errorf("%d lines, want %d", n, 7*len(plain))
	}
	kinds := map[string]int{}
	for _, line := range played(t, "steady", "--batches=10", "--envelope") {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		kinds[e.Type]++
	}
	if kinds["progress"] != 10 || kinds["started"] != 1 || kinds["heartbeat"] < 15 {
		t.Errorf("types are %v", kinds)
	}
}

func TestTheVersionAskedForIsPlayed(t *testing.T) {
	for version, has := range map[string]bool{"3.5": false, "4.0": true} {
		line := played(t, "steady", "--batches=2", "--spark-version="+version)[1]
		if strings.Contains(line, `"batchDuration"`) != has {
			t.Errorf("%s: %s", version, line)
		}
	}
}

func TestACheckpointIsContinued(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoint")
	first := played(t, "steady", "--batches=5", "--checkpoint-dir="+dir)
	second := played(t, "steady", "--batches=5", "--checkpoint-dir="+dir)
	type progress struct {
		ID, RunID string
		BatchID   int64
	}
	read := func(line string) (p progress) {
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := read(first[len(first)-1]), read(second[1])
	if a.ID != b.ID || a.RunID == b.RunID || b.BatchID != a.BatchID+1 {
		t.Errorf("after %+v comes %+v", a, b)
	}
}

func TestASimulationReadsSensibly(t *testing.T) {
	events := strings.Join(played(t, "steady", "--batches=40"), "\n")
	status, out, stderr := call(events, "diagnose")
	if status != 0 || stderr != "" || !strings.Contains(out, "40 executed batches") || !strings.Contains(out, "QUERY steady") {
		t.Errorf("status %d: %s\n%s", status, stderr, out)
	}
}

func TestAReaderThatHasEnoughIsNoError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run([]string{"simulate", "steady", "--batches=2000", "--rate=1000"}, streams{nil, w, &stderr})
	}()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if status := <-done; status != 0 || stderr.Len() != 0 {
		t.Errorf("status %d: %s", status, &stderr)
	}
	w.Close()
}

func TestAnInterruptionEndsItCleanly(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run([]string{"simulate", "steady", "--live"}, streams{nil, w, &stderr})
		w.Close()
	}()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if status := <-done; status != 0 || stderr.Len() != 0 {
		t.Errorf("status %d: %s", status, &stderr)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// failingStream breaks after some events.
type failingStream struct {
	left int
	err  error
}

func (f *failingStream) Next() (*simulator.Message, error) {
	if f.left--; f.left < 0 {
		return nil, f.err
	}
	return &simulator.Message{Data: []byte("{}")}, nil
}

func (f *failingStream) Close() error { return nil }

func TestWhatWasPlayedBeforeAFailureIsSent(t *testing.T) {
	broken := errors.New("store broken")
	var out bytes.Buffer
	c := &simulateCommand{target: "-", copies: 1}
	err := c.send(context.Background(), func() {}, &failingStream{3, broken}, &out, nil)
	if !errors.Is(err, broken) || out.String() != "{}\n{}\n{}\n" {
		t.Errorf("sent %q, %v", &out, err)
	}
}

func TestTheBarWaitsUntilARunIsLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		b := newBar(&screen, 10)
		for i := range int64(4) {
			b.see(&simulator.Message{Batch: i})
		}
		if screen.Len() != 0 {
			t.Errorf("too early: %q", &screen)
		}
		time.Sleep(longRun) // of the bubble's clock
		b.see(&simulator.Message{Batch: 3})
		b.see(&simulator.Message{Batch: -1 << 63})
		b.see(&simulator.Message{Batch: 4})
		if b.seen != 5 || !strings.Contains(screen.String(), "5/10") {
			t.Errorf("after 5 batches, one of them twice: %q", &screen)
		}
		b.close()
	})
	var none *bar
	none.see(&simulator.Message{Batch: 1})
	none.close()
}

func TestThereIsNoBarWithoutAScreen(t *testing.T) {
	c := &simulateCommand{target: "events.ndjson"}
	if b := c.bar(streams{nil, io.Discard, io.Discard}, nil); b != nil {
		t.Error("a bar is drawn into a buffer")
	}
}

// BenchmarkLoadVersusPlaying measures the events per second of many copies of a
// query, and how much faster that is than playing as many queries.
func BenchmarkLoadVersusPlaying(b *testing.B) {
	var copied, playedEach float64
	var copyTime, playTime time.Duration
	for b.Loop() {
		n, took := timed(b, "--copies=500", "--batches=40")
		copied, copyTime = copied+n, copyTime+took
		n, took = timed(b, "--batches=40")
		playedEach, playTime = playedEach+n, playTime+took
	}
	b.ReportMetric(copied/copyTime.Seconds(), "events/s")
	b.ReportMetric(copied/copyTime.Seconds()/(playedEach/playTime.Seconds()), "x_peer")
}

func timed(b *testing.B, args ...string) (events float64, took time.Duration) {
	b.Helper()
	n := &lineCounter{}
	start := time.Now()
	if status := run(append([]string{"simulate", "steady"}, args...), streams{nil, n, io.Discard}); status != 0 {
		b.Fatalf("status %d", status)
	}
	return float64(n.lines), time.Since(start)
}

type lineCounter struct{ lines int }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.lines += bytes.Count(p, []byte("\n"))
	return len(p), nil
}

var _ stream = (*failingStream)(nil)

// simulatorPage is the user's page about the command.
func simulatorPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestThePageAboutTheSimulatorKnowsEveryFlag(t *testing.T) {
	page := simulatorPage(t)
	root := kingpin.New("x", "")
	c := newSimulate(root).(*simulateCommand)
	for _, f := range c.Model().Flags {
		if !strings.Contains(page, "| `--"+f.Name+"` |") {
			t.Errorf("--%s is not on it", f.Name)
		}
	}
}

func TestTheScenarioOnThePageCanBePlayed(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(simulatorPage(t), -1)
	if len(blocks) != 1 {
		t.Fatalf("%d scenarios are on it", len(blocks))
	}
	lines := played(t, write(t, "mine.yml", blocks[0][1]), "--batches=3")
	if len(lines) != 4 || !strings.Contains(lines[3], `"name":"orders"`) {
		t.Errorf("%d lines, the last %s", len(lines), lines[len(lines)-1])
	}
}

func TestScenariosOnThePageExist(t *testing.T) {
	names := regexp.MustCompile(`stategauge simulate ([a-z][a-z0-9-]*) `).FindAllStringSubmatch(simulatorPage(t), -1)
	if len(names) < 5 {
		t.Errorf("only %d commands were found", len(names))
	}
	for _, name := range names {
		if _, _, err := findScenario(name[1]); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFirstTriggerIsWhenItIsAskedFor(t *testing.T) {
	var out, stderr bytes.Buffer
	if status := run([]string{"simulate", "steady", "--batches=1", "--start=2027-05-06T07:08:00Z"}, streams{nil, &out, &stderr}); status != 0 {
		t.Fatalf("status %d: %s", status, &stderr)
	}
	if !strings.Contains(out.String(), `"timestamp":"2027-05-06T07:08:0`) {
		t.Errorf("got %.300s", out.String())
	}
	if status := run([]string{"simulate", "steady", "--start=soon"}, streams{nil, &out, &stderr}); status == 0 ||
		!strings.Contains(stderr.String(), `--start ("soon") must be now, or a time as 2026-03-02T00:00:00Z`) {
		t.Errorf("status %d: %s", status, &stderr)
	}
}

func TestNowSendsEachEventWhenItsTimeHasCome(t *testing.T) {
	c := &simulateCommand{start: "now"}
	before := time.Now().UnixMilli()
	at, err := c.startMs()
	if err != nil || at < before || !c.paced() {
		t.Errorf("starts at %d, before %d, paced %v, %v", at, before, c.paced(), err)
	}
	if c := (&simulateCommand{}); c.paced() {
		t.Error("a run that nobody watches waits")
	}
}
