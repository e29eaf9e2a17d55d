package history

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// asVictim makes the test binary keep a diary in a directory until it is killed.
const asVictim = "STATEGAUGE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(asVictim); dir != "" {
		if err := keepUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// keepUntilKilled says on standard output what it is about to commit, and what is
// acknowledged.
func keepUntilKilled(dir string) error {
	s, err := Open(Options{Dir: dir, memtableBytes: 256 << 10})
	if err != nil {
		return err
	}
	d := &diary{s: s, sized: 2000, noise: true}
	d.goOn(s.NextSeq() - 1)
	for n := 0; ; n++ {
		steps := d.group()
		fmt.Println("try", steps[len(steps)-1].Seq)
		if err := d.keep(1); err != nil {
			return err
		}
		fmt.Println("ack", d.acked.Load())
		if n%40 == 30 {
			if err := s.Trim(d.acked.Load() - 20); err != nil {
				return err
			}
			if err := s.Retain(t0); err != nil {
				return err
			}
		}
	}
}

// TestAKilledProcessLosesNothingThatItAcknowledged kills a process with SIGKILL at
// random points, on a real disk, again and again on one history.
func TestAKilledProcessLosesNothingThatItAcknowledged(t *testing.T) {
	kills := 20
	if testing.Short() || raceEnabled {
		kills = 4
	}
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(9, 9))
	under := 0
	for range kills {
		acked, tried := killed(t, dir, 1+random.IntN(150), time.Duration(random.IntN(3000))*time.Microsecond)
		if acked < tried {
			under++
		}
		s, err := Open(Options{Dir: dir, memtableBytes: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		d := &diary{t: t, s: s, sized: 2000, noise: true}
		d.acked.Store(acked)
		d.tried.Store(tried)
		d.check()
		d.close()
		if t.Failed() {
			return
		}
	}
	r, err := Check(Options{Dir: dir})
	if err != nil || !r.OK() {
		t.Errorf("%+v %v", r, err)
	}
	t.Logf("%d kills, %d of them while a step was under way; %d steps", kills, under, r.NewestStep)
}

// killed runs a process and kills it so long after so many lines.
func killed(t *testing.T, dir string, lines int, after time.Duration) (acked, tried uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asVictim+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for scan := bufio.NewScanner(out); scan.Scan(); {
		what, number, _ := strings.Cut(scan.Text(), " ")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil && what == "ack" {
			acked = n
		} else if err == nil {
			tried = n
		}
		if seen++; seen == lines {
			defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		}
	}
	if err := cmd.Wait(); err == nil || seen < lines {
		t.Fatalf("ended by itself after %d of %d lines: %v", seen, lines, err)
	}
	return acked, max(tried, acked)
}
