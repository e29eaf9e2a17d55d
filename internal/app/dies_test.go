package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// daemonDies tells a daemon of these tests in which instant to kill itself with SIGKILL,
// at the how manieth operation of it, and the file that it names the instant in before:
// "2 FILE the log is written".
const daemonDies = "STATEGAUGE_TEST_DIES"

// doom is the end of a daemon at a chosen instant.
type doom struct {
	file string
	when instant

	mu         sync.Mutex
	left       int // operations before it
	rebalances int
	near       bool // it is of those that a message begins, and that has come
}

// doomed reads what the environment says; nil where it says nothing.
func doomed() (*doom, error) {
	text, is := os.LookupEnv(daemonDies)
	if !is || text == "" {
		return nil, nil
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("%s: %q", daemonDies, text)
	}
	left, err := strconv.Atoi(parts[0])
	return &doom{file: parts[1], when: instant(parts[2]), left: left}, err
}

// attach lets the daemon of these options die.
func (d *doom) attach(o *Options) {
	o.StorageFS = &instantsFS{FS: vfs.Default, at: d.pass}
	o.Logger = slog.New(&listeningHandler{Handler: slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}), heard: d.hear})
}

func (d *doom) pass(at instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at == d.when || d.near && at == inLog {
		d.count()
	}
}

// hear begins the instants of a rebalance: 1 ends the daemon there and then, 2 and more
// at a write to the log after it.
func (d *doom) hear(message string) {
	if !strings.HasPrefix(message, "kafka partitions assigned") {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rebalances++
	d.begin(inRebalance, d.rebalances == 1)
	d.begin(inNextRebalance, d.rebalances == 2)
}

// stop begins the instants of an orderly end.
func (d *doom) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begin(inStop, true)
}

func (d *doom) begin(at instant, begins bool) {
	if begins && d.when == at {
		d.near = true
		d.count()
	}
}

func (d *doom) count() {
	if d.left--; d.left > 0 {
		return
	}
	if err := os.WriteFile(d.file, []byte(d.when), 0o600); err != nil {
		panic(err)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// listeningHandler tells of every message, whatever its level.
type listeningHandler struct {
	slog.Handler
	heard func(message string)
}

// Enabled implements slog.Handler.
func (*listeningHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h *listeningHandler) Handle(ctx context.Context, r slog.Record) error {
	h.heard(r.Message)
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *listeningHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &listeningHandler{h.Handler.WithAttrs(attrs), h.heard}
}

// WithGroup implements slog.Handler.
func (h *listeningHandler) WithGroup(name string) slog.Handler {
	return &listeningHandler{h.Handler.WithGroup(name), h.heard}
}

// deaths counts in which instants daemons have died.
type deaths struct {
	t    *testing.T
	file string
	came map[instant]int
}

func newDeaths(t *testing.T) *deaths {
	return &deaths{t: t, file: t.TempDir() + "/instant", came: map[instant]int{}}
}

// at lets a daemon die at the n-th operation of an instant.
func (d *deaths) at(when instant, n int) string {
	return fmt.Sprintf("%s=%d %s %s", daemonDies, n, d.file, when)
}

// note counts the death of a daemon that has ended, if it was one of these.
func (d *deaths) note() bool {
	d.t.Helper()
	text, err := os.ReadFile(d.file)
	if err != nil {
		return false
	}
	if err := os.Remove(d.file); err != nil {
		d.t.Fatal(err)
	}
	d.came[instant(text)]++
	return true
}
