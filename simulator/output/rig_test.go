package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator"
)

// captured returns the events of a run that Spark really had, as messages. Only
// its Python lines, which have blanks, are left out.
func captured(t testing.TB, run string) []*simulator.Message {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("../../testdata/spark", run+".ndjson.zst"))
	if err != nil {
		t.Fatal(err)
	}
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []*simulator.Message
	at := int64(0)
	for _, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if bytes.HasPrefix(line, []byte(`{"id": `)) {
			continue
		}
		ev := decoded(t, line)
		m := &simulator.Message{Data: line, Kind: ev.Kind, Batch: event.Absent, QueryID: string(ev.Query.ID)}
		if ev.Batch != nil {
			m.Batch = ev.Batch.ID
		}
		if ev.AtMs > at {
			at = ev.AtMs
		}
		m.AtMs = at
		out = append(out, m)
	}
	return out
}

var pool = decode.NewPool(decode.DefaultLimits())

// decoded reads one event as the collector does.
func decoded(t testing.TB, line []byte) (out *event.Event) {
	t.Helper()
	d := pool.Get()
	defer pool.Put(d)
	d.Body(line, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if rej != nil || ev == nil {
			t.Fatalf("not an event: %v\n%s", rej, line)
		}
		out = ev
		return true
	})
	return out
}

// messages makes n small events of so many queries.
func messages(n, queries int) []*simulator.Message {
	var out []*simulator.Message
	for i := range n {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i%queries)
		data := fmt.Appendf(nil, `{"id":"%s","runId":"%s","timestamp":"2026-03-02T00:00:00.%03dZ","n":%d}`, id, id, i%1000, i)
		out = append(out, &simulator.Message{AtMs: int64(i), QueryID: id, Kind: event.KindIdle, Batch: event.Absent, Data: data})
	}
	return out
}

// send writes all messages from one buffer, as a simulation does, and closes.
func send(t testing.TB, s Sink, all []*simulator.Message) error {
	t.Helper()
	var buf []byte
	for _, m := range all {
		buf = append(buf[:0], m.Data...)
		passed := *m
		passed.Data = buf
		if err := s.Write(context.Background(), &passed); err != nil {
			return fmt.Errorf("write: %w, close: %w", err, s.Close())
		}
		for i := range buf {
			buf[i] = '#' // whoever kept it, sees it
		}
	}
	return s.Close()
}

// check compares what arrived with what was sent.
func check(t testing.TB, got []string, sent []*simulator.Message) {
	t.Helper()
	if len(got) != len(sent) {
		t.Fatalf("%d events arrived, %d were sent", len(got), len(sent))
	}
	for i := range got {
		if got[i] != string(sent[i].Data) {
			t.Fatalf("event %d is %s, want %s", i, got[i], sent[i].Data)
		}
	}
}

func split(text string) []string {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// collectorServer keeps the lines of all bodies. Before that, it asks answer.
type collectorServer struct {
	mu     sync.Mutex
	lines  []string
	posts  int
	paths  map[string]int
	answer func(post int, body []byte) (status int, header map[string]string, text string) // nil: 200
}

func (c *collectorServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	status, text := c.take(w.Header(), r.URL.Path, body)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (c *collectorServer) take(h http.Header, path string, body []byte) (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts++
	if c.paths == nil {
		c.paths = map[string]int{}
	}
	c.paths[path]++
	status, text := http.StatusOK, `{"accepted":1,"duplicates":0,"rejected":[]}`
	if c.answer != nil {
		var header map[string]string
		status, header, text = c.answer(c.posts, body)
		for k, v := range header {
			h.Set(k, v)
		}
	}
	if status == http.StatusOK {
		c.lines = append(c.lines, split(string(body))...)
	}
	return status, text
}

// RoundTrip serves without a network, so that a test can own the time.
func (c *collectorServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	status, text := c.take(h, r.URL.Path, body)
	if status == 0 {
		return nil, fmt.Errorf("connection refused")
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Header: h, Request: r,
		Body: io.NopCloser(strings.NewReader(text)),
	}, nil
}
