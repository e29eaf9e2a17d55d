package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDemoCommandLines(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		status int
		stderr string
	}{
		{"a clock that stands still", []string{"demo", "--speed=0"}, 1, "speed (0) must be more than 0"},
		{"rules that are not there", []string{"demo", "--rules=/nowhere.yaml"}, 1, "no such file"},
		{"an unknown flag", []string{"demo", "--sped=1"}, 2, "try --help"},
		{"a test of nothing", []string{"check", "notify", write(t, "empty.yml", "")}, 1, "names no Alertmanager"},
		{"a test of nobody", []string{"check", "notify", write(t, "gone.yml", "alerting: {alertmanagers: [{url: \"http://127.0.0.1:1\"}]}\n")}, 1, "would not get through"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, stderr := call("", c.args...)
			if status != c.status || !strings.Contains(stderr, c.stderr) {
				t.Errorf("status %d, want %d: %s", status, c.status, stderr)
			}
		})
	}
}

// TestTheBinaryShowsTheDemoWithinAMinute runs what a newcomer runs, on the clock that
// a newcomer sees: an alert fires in time, and an interruption ends it cleanly.
func TestTheBinaryShowsTheDemoWithinAMinute(t *testing.T) {
	if os.Getenv("STATEGAUGE_REQUIRE_REAL") == "" {
		t.Skip("STATEGAUGE_REQUIRE_REAL is not set")
	}
	binary := filepath.Join(t.TempDir(), "stategauge")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "demo", "--web.listen-address="+address)
	cmd.WaitDelay = 5 * time.Second
	fired := make(chan struct{})
	out := &until{want: regexp.MustCompile(`stategauge payments: \w+ FIRING \((page|ticket)\)`), found: fired}
	cmd.Stdout, cmd.Stderr = out, out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-fired:
	case <-ctx.Done():
	}
	took := time.Since(began)
	t.Logf("an alert fired after %s", took.Round(100*time.Millisecond))
	resp, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Errorf("the page: %v", err)
	} else {
		resp.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || ctx.Err() != nil {
		t.Errorf("it ended with %v\n%s", err, out.b.String())
	}
}

// until notes what a process writes and tells when it has written what is wanted.
type until struct {
	b     bytes.Buffer
	want  *regexp.Regexp
	found chan struct{}
}

func (u *until) Write(p []byte) (int, error) {
	u.b.Write(p)
	if u.found != nil && u.want.Match(u.b.Bytes()) {
		close(u.found)
		u.found = nil
	}
	return len(p), nil
}
