package httpsource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// wide is one progress of about 7 KB: three operators of 35 metrics and 32 partitions.
func wide(batch int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":"8c7a","runId":"41f0","name":"orders","timestamp":"2026-03-01T10:00:00.000Z","batchId":%d,"batchDuration":2100,`, batch)
	b.WriteString(`"numInputRows":500,"durationMs":{"addBatch":1800,"triggerExecution":2100,"walCommit":90},"stateOperators":[`)
	for op := range 3 {
		fmt.Fprintf(&b, `{"operatorName":"stateStoreSave","numRowsTotal":%d,"numRowsUpdated":%d,"commitTimeMs":900,"memoryUsedBytes":123456,"numStateStoreInstances":200,"customMetrics":{`, 100000+op, 50+op)
		for m := range 35 {
			fmt.Fprintf(&b, `%q:%d,`, event.Lookup(event.MetricID(m)).JSON, 1000*m+batch)
		}
		b.WriteString(`"loadedMapCacheHitCount":7}},`)
	}
	b.WriteString(`{}],"sources":[{"description":"KafkaV2[Subscribe[orders]]","endOffset":{"orders":{`)
	for p := range 32 {
		fmt.Fprintf(&b, `"%d":%d,`, p, 1_000_000+batch*50+p)
	}
	b.WriteString(`"32":1}},"numInputRows":500}]}`)
	return strings.ReplaceAll(b.String(), ",{}],", "],")
}

// peer does what a handler does that someone writes in an afternoon: gzip and
// encoding/json into maps, line by line.
func peer(w http.ResponseWriter, r *http.Request) {
	var src io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(src)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		src = z
	}
	n := 0
	for d := json.NewDecoder(src); ; n++ {
		var v map[string]any
		if err := d.Decode(&v); err != nil {
			break
		}
	}
	fmt.Fprintf(w, `{"accepted":%d}`, n)
}

// BenchmarkPostVersusEncodingJSON posts 50 wide events in one body to both
// handlers in turn, without a network. x_peer is the peer's time over ours.
func BenchmarkPostVersusEncodingJSON(b *testing.B) {
	var lines strings.Builder
	for i := range 50 {
		lines.WriteString(wide(i) + "\n")
	}
	for name, body := range map[string]string{"plain": lines.String(), "gzip": gzipOf(lines.String())} {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, func(_ *Options, p *Parts) { p.Handler = takeAll })
			var ours, theirs time.Duration
			b.ReportAllocs()
			b.SetBytes(int64(lines.Len()))
			for range b.N {
				ours += timed(b, r, body, name)
				theirs += timed(b, http.HandlerFunc(peer), body, name)
			}
			b.ReportMetric(float64(ours.Nanoseconds())/float64(50*b.N), "ns/event")
			b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
		})
	}
}

func takeAll(_ context.Context, s *collector.Step) error {
	for i := range s.Items {
		s.Items[i].Outcome = event.OutcomeExecuted
	}
	return nil
}

func timed(b *testing.B, h http.Handler, body, encoding string) time.Duration {
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if encoding == "gzip" {
		req.Header.Set("Content-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	from := time.Now()
	h.ServeHTTP(w, req)
	took := time.Since(from)
	if w.Code != 200 || !bytes.Contains(w.Body.Bytes(), []byte(`"accepted":50`)) {
		b.Fatalf("answer %d %s", w.Code, w.Body)
	}
	return took
}

// The intake stands still while 64 senders post: every request is answered, all
// but those that may wait are answered at once, and nothing is left behind.
func TestPausedConsumerDoesNotHoldTheSenders(t *testing.T) {
	if testing.Short() {
		t.Skip("load test")
	}
	r := newRig(t, func(_ *Options, p *Parts) {
		p.Handler = func(context.Context, *collector.Step) error { return collector.ErrFull }
	})
	srv := httptest.NewServer(r)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 30 {
				d := timedPost(t, client, srv.URL)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	t.Logf("p50 %s, p99 %s of %d posts", took[len(took)/2], took[len(took)*99/100], len(took))
	if p99 := took[len(took)*99/100]; p99 > 5*time.Second {
		t.Errorf("p99 is %s", p99)
	}
	r.idle(t)
}

func timedPost(t *testing.T, c *http.Client, url string) time.Duration {
	from := time.Now()
	res, err := c.Post(url, "application/json", strings.NewReader(progress(1)))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if res.StatusCode != 429 {
		t.Errorf("answer %s", res.Status)
	}
	return time.Since(from)
}
