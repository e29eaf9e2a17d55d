package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// told is what a demo wrote, readable while it goes on.
type told struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *told) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *told) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// fast is a demo that waits for nothing.
func fast(t *testing.T, out io.Writer) Options {
	return Options{
		Address: "127.0.0.1:0", Speed: 1e6, Seed: 1, Exit: true, Out: out, Wall: time.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

func fetch(url string) (string, error) {
	r, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), err
}

// shows polls a page until it holds all of the words.
func shows(url string, words ...string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		page, err := fetch(url)
		if err != nil {
			return err
		}
		missing := ""
		for _, w := range words {
			if !strings.Contains(page, w) {
				missing = w
			}
		}
		if missing == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not show %q:\n%s", url, missing, page)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestADemoTellsOfTheFaultAndOfTheAlert(t *testing.T) {
	if raced {
		t.Skip("a whole play; the beginning of one is watched for races below")
	}
	var out told
	o := fast(t, &out)
	o.Ended = func(url string) error {
		return errors.Join(
			shows(url+"/", "payments", "orders", "clicks", "firing", "checkpoint location"),
			shows(url+"/api/v1/queries", `"name":"payments"`, `"state":"running"`),
			shows(url+"/api/v1/alerts", `"symptom":"commit-sync-rising"`, `"state":"firing"`),
			shows(url+"/metrics", `spark_streaming_batches_total{`, `stategauge_alerts{`, `alertstate="firing"`),
		)
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log("\n" + out.String())
	last := -1
	for _, line := range []string{
		`http://127\.0\.0\.1:\d+/`,
		`(?m)^\d\d:\d\d  batches    orders #\d+ `,
		`(?m)^\d\d:\d\d  simulator  the checkpoint location of payments becomes slow`,
		`(?m)^\d\d:\d\d  stategauge payments: \w+ FIRING \((page|ticket)\)`,
		`(?m)^             fix: .*checkpoint`,
	} {
		at := regexp.MustCompile(line).FindStringIndex(out.String())
		if at == nil || at[0] < last {
			t.Errorf("%s is not told, or too early", line)
			continue
		}
		last = at[0]
	}
	if strings.Contains(out.String(), "orders: ") {
		t.Error("something is said of a query that nothing befalls")
	}
}

func TestADemoThatIsInterruptedEndsWithoutAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := fast(t, io.Discard)
	o.Speed, o.Exit = 1, false // the second event of the story is a minute away
	o.Out = writer(func(p []byte) {
		if bytes.Contains(p, []byte("batches    ")) {
			cancel()
		}
	})
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	select {
	case <-ctx.Done():
	case err := <-done:
		t.Fatalf("it ended by itself: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the screen is gone") }

func TestADemoNobodyCanReadEnds(t *testing.T) {
	if err := Run(t.Context(), fast(t, broken{})); err == nil || !strings.Contains(err.Error(), "the screen is gone") {
		t.Errorf("got %v", err)
	}
}

func TestATakenPortOfTheUsersOwnChoiceIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := fast(t, io.Discard)
	o.Address = l.Addr().String()
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
}

func TestSpeedMustBePositive(t *testing.T) {
	o := fast(t, io.Discard)
	o.Speed = 0
	if err := Run(t.Context(), o); err == nil {
		t.Error("a clock that stands still was taken")
	}
}

func TestTheClockRunsFastAndNeverAheadOfThePlay(t *testing.T) {
	wall := time.Unix(1000, 0)
	start := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	c := newClock(start, 60, func() time.Time { return wall })
	step := func(d time.Duration) string {
		wall = wall.Add(d)
		return c.Now().Format("15:04:05")
	}
	if got := step(time.Hour); got != "08:00:00" {
		t.Errorf("nothing is played, and it is %s", got)
	}
	if d := c.run(start.Add(2 * time.Minute)); d != 2*time.Second {
		t.Errorf("two minutes take %s", d)
	}
	for _, want := range []string{"08:01:00", "08:02:00", "08:02:00"} {
		if got := step(time.Second); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
	c.jump(start.Add(time.Hour))
	if got := step(0); got != "09:00:00" {
		t.Errorf("after a jump it is %s", got)
	}
	c.jump(start)
	if got := step(0); got != "09:00:00" {
		t.Errorf("it went back to %s", got)
	}
	if d := c.run(start); d != 0 {
		t.Errorf("the past takes %s", d)
	}
}
