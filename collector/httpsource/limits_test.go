package httpsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

func small(o *Options, _ *Parts) {
	o.BodyBytes, o.DecodedBytes, o.InFlightBytes = 64<<10, 256<<10, 16<<20
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestLargeContentLengthIsRefusedUnread(t *testing.T) {
	r := newRig(t, nil)
	req := httptest.NewRequest(http.MethodPost, "/", untouched{t})
	req.ContentLength = 16<<20 + 1
	want(t, r.send(req), 413, `{"error":"body of 16777217 bytes exceeds the limit of 16777216"}`)
}

func TestBodiesStopAtTheirLimit(t *testing.T) {
	blanks := strings.Repeat(" ", 100<<20)
	for name, tc := range map[string]struct {
		body, encoding string
		code           int
	}{
		"at the limit":                 {body: progress(1) + strings.Repeat(" ", 60<<10), code: 200},
		"over the limit, no length":    {body: strings.Repeat(" ", 65<<10), code: 413},
		"gzip bomb":                    {body: gzipOf(blanks[:60<<20]), encoding: "gzip", code: 413},
		"zstd bomb":                    {body: zstdOf(blanks), encoding: "zstd", code: 413},
		"compressed, at the limit":     {body: gzipOf(progress(1) + blanks[:250<<10]), encoding: "gzip", code: 200},
		"many empty members":           {body: strings.Repeat(gzipOf(""), 2000), encoding: "gzip", code: 400},
		"too large once compressed":    {body: gzipOf(noise(80 << 10)), encoding: "gzip", code: 413},
		"a window that is too large":   {body: zstdOf(noise(200 << 10)[:60<<10], zstd.WithWindowSize(32<<20), zstd.WithSingleSegment(false)), encoding: "zstd", code: 400},
		"truncated gzip":               {body: gzipOf(progress(1))[:60], encoding: "gzip", code: 400},
		"truncated zstd":               {body: zstdOf(progress(1))[:60], encoding: "zstd", code: 400},
		"empty gzip":                   {body: "", encoding: "gzip", code: 400},
		"empty zstd":                   {body: "", encoding: "zstd", code: 400},
		"zstd that is none":            {body: progress(1), encoding: "zstd", code: 400},
		"gzip with rubbish after":      {body: gzipOf(progress(1)) + "rubbish", encoding: "gzip", code: 400},
		"compressed but not said so":   {body: gzipOf(progress(1)), code: 400},
		"said to be gzip but is plain": {body: progress(1), encoding: "gzip", code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, small)
			req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tc.body))
			req.ContentLength = -1
			w := r.send(req, "Content-Encoding", tc.encoding)
			want(t, w, tc.code, "")
			r.idle(t)
			want(t, r.post(progress(7)), 200, `{"accepted":1,"duplicates":0,"rejected":[]}`)
			want(t, r.post(gzipOf(progress(8)), "Content-Encoding", "gzip"), 200, `{"accepted":1,"duplicates":0,"rejected":[]}`)
			want(t, r.post(zstdOf(progress(9)), "Content-Encoding", "zstd"), 200, `{"accepted":1,"duplicates":0,"rejected":[]}`)
		})
	}
}

// noise is text that hardly compresses.
func noise(n int) string {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

func TestZipBombCostsNoMoreThanItsLimit(t *testing.T) {
	r := newRig(t, small)
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, 9)
	chunk := bytes.Repeat([]byte{' '}, 1<<20)
	for range 60 {
		_, _ = z.Write(chunk)
	}
	_ = z.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	want(t, r.post(b.String(), "Content-Encoding", "gzip"), 413, "")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("a bomb of 60 MiB took %d bytes at a limit of 256 KiB", used)
	}
}

func TestOversizedEventIsARejectAmongOthersAndALimitAlone(t *testing.T) {
	r := newRig(t, nil)
	huge := strings.Replace(progress(2), `"orders"`, `"`+strings.Repeat("x", 1<<20+100)+`"`, 1)
	w := r.post(progress(1) + "\n" + huge + "\n" + progress(3) + "\n")
	if w.Code != 200 || !strings.Contains(w.Body.String(), `{"accepted":2,"duplicates":0,"rejected":[{"index":1`) {
		t.Errorf("among others: %d %.200s", w.Code, w.Body)
	}
	want(t, r.post(huge), 413, "")
}

func TestBodiesUnderWayShareOneBudget(t *testing.T) {
	r := newRig(t, func(o *Options, _ *Parts) {
		o.BodyBytes, o.DecodedBytes, o.InFlightBytes = 64<<10, 64<<10, 100<<10
	})
	// The first request holds a buffer of 64 KiB while its body is on its way.
	pr, pw := io.Pipe()
	done := make(chan *httptest.ResponseRecorder)
	go func() { done <- r.send(httptest.NewRequest(http.MethodPost, "/", pr)) }()
	_, _ = io.WriteString(pw, strings.Repeat(" ", 40<<10))
	_, _ = io.WriteString(pw, " ") // taken: the buffer has grown
	w := r.send(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 50<<10))))
	want(t, w, 429, `{"error":"the intake is full"}`)
	want(t, r.post(zstdOf(progress(1)), "Content-Encoding", "zstd"), 429, "")
	_, _ = io.WriteString(pw, progress(2))
	_ = pw.Close()
	want(t, <-done, 200, `{"accepted":1,"duplicates":0,"rejected":[]}`)
	r.idle(t)
	want(t, r.post(progress(3)), 200, "")
}

func TestStuckIntakeHoldsOneRequestAndTellsTheOthersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := atomic.Bool{}
		stuck.Store(true)
		r := newRig(t, func(o *Options, p *Parts) {
			next := p.Handler
			p.Handler = func(ctx context.Context, s *collector.Step) error {
				if stuck.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return next(ctx, s)
			}
		})
		from := time.Now()
		want(t, r.post(progress(1)), 429, "")
		if took := time.Since(from); took != r.o.Wait {
			t.Errorf("the first request waited %s, want %s", took, r.o.Wait)
		}
		probe := make(chan int)
		go func() { probe <- r.post(progress(1)).Code }()
		synctest.Wait()
		from = time.Now()
		for range 100 {
			want(t, r.post(progress(1)), 429, "")
		}
		if took := time.Since(from); took != 0 {
			t.Errorf("the others waited %s", took)
		}
		if code := <-probe; code != 429 {
			t.Errorf("the probe is answered %d", code)
		}
		stuck.Store(false)
		want(t, r.post(progress(1)), 200, "")
		if r.stalled.Load() {
			t.Error("the intake still counts as stuck")
		}
	})
}

func TestRequestsUnderWayAreLimited(t *testing.T) {
	release := make(chan struct{})
	r := newRig(t, func(o *Options, p *Parts) {
		o.Requests, o.Wait = 2, time.Minute
		next := p.Handler
		p.Handler = func(ctx context.Context, s *collector.Step) error {
			<-release
			return next(ctx, s)
		}
	})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { want(t, r.post(progress(i)), 200, "") })
	}
	for r.requests.Load() < 2 {
		runtime.Gosched()
	}
	want(t, r.post(progress(3)), 429, "")
	close(release)
	wg.Wait()
	r.idle(t)
}

func serve(t *testing.T, h http.Handler) (*httptest.Server, chan struct{}) {
	t.Helper()
	done := make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		done <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	return srv, done
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	r := newRig(t, func(o *Options, _ *Parts) { o.IdleTimeout = 50 * time.Millisecond })
	srv, _ := serve(t, r)
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"id\":")
	answer, err := io.ReadAll(c) // the server closes the connection
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 408")) {
		t.Errorf("answer %q, %v", answer, err)
	}
	r.idle(t)
}

func TestDeadlineOfReadingDoesNotOutliveTheBody(t *testing.T) {
	r := newRig(t, func(o *Options, p *Parts) {
		o.IdleTimeout, o.ReadTimeout, o.Wait = 20*time.Millisecond, 20*time.Millisecond, time.Minute
		p.Handler = func(ctx context.Context, s *collector.Step) error {
			select {
			case <-ctx.Done():
				return errors.New("the client is taken for gone")
			case <-time.After(100 * time.Millisecond):
				s.Items[0].Outcome = event.OutcomeExecuted
				return nil
			}
		}
	})
	srv, _ := serve(t, r)
	for range 2 { // the second on the same connection
		res, err := http.Post(srv.URL, "application/json", strings.NewReader(progress(1)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("answer %s", res.Status)
		}
	}
}

func TestClientThatHangsUpLeavesNothingBehind(t *testing.T) {
	r := newRig(t, nil)
	srv, done := serve(t, r)
	before := runtime.NumGoroutine()
	for _, part := range []string{
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"id\":",
		"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000\r\n\r\n" + gzipOf(progress(1))[:30],
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: zstd\r\nContent-Length: 1000\r\n\r\n" + zstdOf(progress(1))[:30],
	} {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, part)
		_ = c.Close()
		<-done
	}
	r.idle(t)
	srv.Close()
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
	if r.in.count() != 0 {
		t.Error("half a body was taken")
	}
}

func TestManyClientsAtOnceCountOnceEach(t *testing.T) {
	r := newRig(t, nil)
	srv := httptest.NewServer(r)
	defer srv.Close()
	encodings := []func(string) (string, string){
		func(s string) (string, string) { return s, "" },
		func(s string) (string, string) { return gzipOf(s), "gzip" },
		func(s string) (string, string) { return zstdOf(s), "zstd" },
	}
	var wg sync.WaitGroup
	var accepted, duplicates atomic.Int64
	for c := range 12 {
		wg.Go(func() {
			for k := range 10 {
				body, enc := encodings[(c+k)%3](lines(k*20, 20))
				a, d := postCounts(t, srv.URL, body, enc)
				accepted.Add(a)
				duplicates.Add(d)
			}
		})
	}
	wg.Wait()
	if r.in.count() != 200 || accepted.Load() != 200 || duplicates.Load() != 12*200-200 {
		t.Errorf("%d events, %d accepted, %d duplicates", r.in.count(), accepted.Load(), duplicates.Load())
	}
	r.idle(t)
}

func postCounts(t *testing.T, url, body, enc string) (accepted, duplicates int64) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	req.Header.Set("Content-Encoding", enc)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return 0, 0
	}
	defer res.Body.Close()
	if _, err := fmt.Fscanf(res.Body, `{"accepted":%d,"duplicates":%d`, &accepted, &duplicates); err != nil {
		t.Errorf("answer %s: %v", res.Status, err)
	}
	return accepted, duplicates
}
