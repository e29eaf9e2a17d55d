package exporter

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// self returns an exporter with its own metrics in a registry.
func self(o Options) (*Exporter, *prometheus.Registry) {
	reg := prometheus.NewRegistry()
	o.Registerer = reg
	return New(o), reg
}

func get(t testing.TB, h http.Handler, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What Prometheus sends, by version and settings.
const (
	acceptText     = "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	acceptOM       = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
	acceptOMOld    = "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5"
	acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5"
)

func TestPagesComeInTheFormatThatIsAskedFor(t *testing.T) {
	x, reg := self(Options{})
	x.Apply(newStream("q").started())
	h := x.Handler(reg)
	f := func(accept, contentType string, parse func(testing.TB, string) []*dto.MetricFamily) {
		t.Helper()
		resp := get(t, h, "Accept", accept)
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, contentType) {
			t.Errorf("Accept %q gets %q, want %q", accept, got, contentType)
		}
		names := map[string]int{}
		for _, mf := range parse(t, body(t, resp)) {
			names[mf.GetName()]++
		}
		for _, name := range []string{"spark_streaming_batches_total", "stategauge_series", "stategauge_series_dropped_total", "stategauge_scrape_render_seconds"} {
			if names[name] != 1 {
				t.Errorf("Accept %q: %s is there %d times", accept, name, names[name])
			}
		}
	}
	f("", "text/plain; version=0.0.4", parseText)
	f("*/*", "text/plain; version=0.0.4", parseText)
	f("text/html", "text/plain; version=0.0.4", parseText)
	f(acceptText, "text/plain; version=0.0.4", parseText)
	f(acceptOM, "application/openmetrics-text; version=1.0.0", parseOpenMetrics)
	f(acceptOMOld, "application/openmetrics-text; version=0.0.1", parseOpenMetrics)
	f(acceptProtobuf, "application/vnd.google.protobuf", parseProto)
}

func TestRareFormatsTakeTheSlowWay(t *testing.T) {
	x := everything(t, Options{})
	for _, f := range []expfmt.Format{expfmt.FmtProtoText, expfmt.FmtProtoCompact, expfmt.FmtOpenMetrics_2_0_0} {
		if got := page(t, x, f); !strings.Contains(got, "spark_streaming_batches_total") {
			t.Errorf("%s: %.100s", f, got)
		}
	}
	if err := x.Write(io.Discard, "nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense" is not known`) {
		t.Errorf("unknown format: %v", err)
	}
}

// Text shows native histograms by their classic buckets.
func TestPlainTextShowsClassicBuckets(t *testing.T) {
	x, reg := self(Options{})
	x.Apply(newStream("q").executed(nil))
	b := body(t, get(t, x.Handler(reg)))
	for _, want := range []string{
		"# TYPE spark_streaming_batch_duration_seconds histogram\n",
		`spark_streaming_batch_duration_seconds_bucket{query_id="q",query_name="orders",application="shop",le="0.5"} 0` + "\n",
		`spark_streaming_batch_duration_seconds_bucket{query_id="q",query_name="orders",application="shop",le="1"} 1` + "\n",
	} {
		if !strings.Contains(b, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestPagesAreCompressedForThoseWhoTakeIt(t *testing.T) {
	x, reg := self(Options{})
	x.Apply(newStream("q").started())
	h := x.Handler(reg)
	f := func(accept string, want bool) {
		t.Helper()
		resp := get(t, h, "Accept-Encoding", accept)
		b := body(t, resp)
		if got := resp.Header.Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("%q: compressed is %t", accept, got)
		}
		if want {
			z, err := gzip.NewReader(strings.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			b = string(plain)
		}
		if !strings.Contains(b, "spark_streaming_batches_total") {
			t.Errorf("%q: page is %.80q", accept, b)
		}
	}
	f("gzip", true)
	f("deflate, GZIP;q=0.5", true)
	f("*", true)
	f("", false)
	f("gzip;q=0", false)
	f("gzip; q = 0.000", false)
	f("gzip;q=x", false)
	f("zstd, br", false)
}

// A compressed page is written bit by bit, and is the plain page all the same.
func TestALongCompressedPageIsWhole(t *testing.T) {
	x := loaded(t, 20_000)
	h := x.Handler(nil)
	for _, accept := range []string{acceptText, acceptOM, acceptProtobuf} {
		plain := body(t, get(t, h, "Accept", accept))
		z, err := gzip.NewReader(get(t, h, "Accept", accept, "Accept-Encoding", "gzip").Body)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != plain || len(plain) < 10*packAt {
			t.Errorf("Accept %q: %d bytes unpacked, %d plain", accept, len(got), len(plain))
		}
	}
	if sc := x.acquire(); sc.zip != nil {
		t.Error("a scrape was given back with its writer")
	}
}

// failing is a Gatherer that has one good family and one fault.
type failing struct {
	fault func() ([]*dto.MetricFamily, error)
}

func (f failing) Gather() ([]*dto.MetricFamily, error) { return f.fault() }

func good() *dto.MetricFamily {
	return &dto.MetricFamily{
		Name: new("stategauge_good"), Help: new("Good."), Type: dto.MetricType_GAUGE.Enum(),
		Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: new(1.0)}}},
	}
}

func TestAFaultyGathererCostsItsOwnFamiliesOnly(t *testing.T) {
	faults := map[string]func() ([]*dto.MetricFamily, error){
		"error": func() ([]*dto.MetricFamily, error) {
			return []*dto.MetricFamily{good()}, errors.New("a collector failed")
		},
		"panic": func() ([]*dto.MetricFamily, error) { panic("a collector panicked") },
		"no name": func() ([]*dto.MetricFamily, error) {
			return []*dto.MetricFamily{{Type: dto.MetricType_GAUGE.Enum(), Metric: good().Metric}, good()}, nil
		},
		"wrong type": func() ([]*dto.MetricFamily, error) {
			bad := good()
			bad.Name, bad.Type = new("stategauge_bad"), dto.MetricType_COUNTER.Enum()
			return []*dto.MetricFamily{bad, good()}, nil
		},
		"nothing": func() ([]*dto.MetricFamily, error) { return nil, errors.New("nothing works") },
	}
	for name, fault := range faults {
		x, reg := self(Options{})
		x.Apply(newStream("q").started())
		resp := get(t, x.Handler(failing{fault}))
		b := body(t, resp)
		if resp.StatusCode != http.StatusOK || !strings.Contains(b, "spark_streaming_batches_total") {
			t.Errorf("%s: status %d, page %.80q", name, resp.StatusCode, b)
		}
		if strings.Contains(b, "stategauge_good 1") == (name == "panic" || name == "nothing") {
			t.Errorf("%s: the good family: %t", name, strings.Contains(b, "stategauge_good"))
		}
		parseText(t, b)
		if n := selfValue(t, reg, "stategauge_scrape_errors_total", errorGather) + selfValue(t, reg, "stategauge_scrape_errors_total", errorEncode); n != 1 {
			t.Errorf("%s: %g errors counted, want 1", name, n)
		}
	}
}

func TestAFamilyThatWeHoldOurselvesIsPassedOver(t *testing.T) {
	x, reg := self(Options{})
	reg.MustRegister(x.Collector())
	x.Apply(newStream("q").started())
	b := body(t, get(t, x.Handler(reg)))
	if n := strings.Count(b, "# TYPE spark_streaming_batches_total "); n != 1 {
		t.Errorf("the family is there %d times", n)
	}
	parseText(t, b)
}

func TestAFamilyThatIsGatheredTwiceIsServedOnce(t *testing.T) {
	x := New(Options{})
	b := body(t, get(t, x.Handler(failing{func() ([]*dto.MetricFamily, error) {
		return []*dto.MetricFamily{good(), good()}, nil
	}})))
	if n := strings.Count(b, "stategauge_good 1"); n != 1 {
		t.Errorf("the family is there %d times", n)
	}
}

func TestPagesSayHowTheyVary(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").started())
	resp := get(t, x.Handler(nil))
	if resp.Header.Get("Vary") != "Accept, Accept-Encoding" || resp.ContentLength != int64(len(body(t, resp))) {
		t.Errorf("headers are %v", resp.Header)
	}
}

func TestFaultsOfTheOwnMetricsAreLoggedOnceAMinute(t *testing.T) {
	var buf bytes.Buffer
	x := New(Options{Logger: slog.New(slog.NewTextHandler(&buf, nil))})
	h := x.Handler(failing{func() ([]*dto.MetricFamily, error) { return nil, errors.New("broken") }})
	for range 5 {
		get(t, h)
	}
	if got := buf.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "gathering own metrics: broken") {
		t.Errorf("the log says %s", got)
	}
}

func TestScrapesAreCountedByFormat(t *testing.T) {
	x, reg := self(Options{})
	h := x.Handler(reg)
	for _, accept := range []string{acceptText, acceptOM, acceptOMOld, acceptProtobuf, "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text"} {
		get(t, h, "Accept", accept)
	}
	for format, want := range map[string]float64{formatText: 1, formatOpenMetrics: 2, formatProtobuf: 1, formatOther: 1} {
		if got := selfValue(t, reg, "stategauge_scrapes_total", format); got != want {
			t.Errorf("%g scrapes of %s, want %g", got, format, want)
		}
	}
}

// Buffers are kept from scrape to scrape, but not far larger than what is needed.
func TestBuffersShrinkWithThePage(t *testing.T) {
	x := New(Options{})
	sc := x.acquire()
	sc.page = append(sc.page, make([]byte, 4<<20)...)
	x.release(sc)
	if again := x.acquire(); again != sc || cap(again.page) < 4<<20 || len(again.page) != 0 {
		t.Error("a buffer of the right size was let go")
	}
	sc.page = append(sc.page[:0], "small"...)
	x.release(sc)
	if cap(sc.page) != 0 {
		t.Errorf("a buffer of %d bytes is kept for a page of 5", cap(sc.page))
	}
	x.release(&scrape{})
	x.release(&scrape{}) // more than are kept
	if len(x.buffers) != cap(x.buffers) {
		t.Errorf("%d buffers kept", len(x.buffers))
	}
}

func TestWithoutAGathererOurFamiliesAreThePage(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").started())
	if got, want := body(t, get(t, x.Handler(nil))), page(t, x, expfmt.FmtText); got != want {
		t.Errorf("page differs from Write:\n%s", got)
	}
}

// stuck is a client that stops reading until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	reached, release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	close(s.reached)
	<-s.release
	return 0, errors.New("connection reset")
}

func TestASlowClientHoldsNobodyUp(t *testing.T) {
	x, reg := self(Options{Scrapes: 2})
	s := newStream("q")
	x.Apply(s.started())
	h := x.Handler(reg)
	slow := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.ServeHTTP(slow, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}()
	<-slow.reached
	x.Apply(s.executed(nil)) // makes series, so it takes every lock there is
	x.Expire(s.nowMs)
	if resp := get(t, h); resp.StatusCode != http.StatusOK {
		t.Errorf("second client: %s", resp.Status)
	}
	slower := &stuck{httptest.NewRecorder(), make(chan struct{}), slow.release}
	done2 := make(chan struct{})
	go func() {
		defer close(done2)
		h.ServeHTTP(slower, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}()
	<-slower.reached
	if resp := get(t, h); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one client too many: %s", resp.Status)
	}
	close(slow.release)
	<-done
	<-done2
	if resp := get(t, h); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %s", resp.Status)
	}
	if n := selfValue(t, reg, "stategauge_scrape_errors_total", errorWrite); n != 2 {
		t.Errorf("%g write errors, want 2", n)
	}
	if n := selfValue(t, reg, "stategauge_scrape_errors_total", errorBusy); n != 1 {
		t.Errorf("%g refused, want 1", n)
	}
}

// A client that hangs up, and one that never reads, leave nothing behind.
func TestClientsOverTheNetworkAreTimedOut(t *testing.T) {
	x := loaded(t, 30_000) // more than socket buffers hold
	x.o.ScrapeTimeout = 50 * time.Millisecond
	srv := httptest.NewServer(x.Handler(nil))
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReaderSize(conn, 16).Peek(1); err != nil {
		t.Fatal(err)
	}
	for len(x.busy) > 0 { // ends when the deadline frees the handler; the test's own timeout bounds it
		resp, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}

func TestTheLogIsQuiet(t *testing.T) {
	var buf bytes.Buffer
	x := New(Options{Series: 1, Logger: slog.New(slog.NewTextHandler(&buf, nil))})
	s := newStream("q")
	for range 300 {
		x.Apply(s.executed(func(b *event.Batch) { b.UnknownPhases = []event.KV{{Key: "p", Value: 1}} }))
	}
	// The stream makes a batch a second: five minutes of drops.
	if n := strings.Count(buf.String(), "\n"); n != 5 {
		t.Errorf("%d lines, want one a minute:\n%s", n, buf.String())
	}
	if !strings.Contains(buf.String(), "reason=total query=q") {
		t.Errorf("the line says too little: %s", buf.String())
	}
}
