package httpsource

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
)

// intake is a Handler that recognises repeats and keeps what it was given.
type intake struct {
	mu    sync.Mutex
	seen  map[string]bool
	sizes []int
	apps  []string
	full  int   // refuse this many steps from the next on, after skipping `after`
	after int   // let this many steps through first
	err   error // answer everything with it
}

func (i *intake) handle(ctx context.Context, step *collector.Step) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return i.err
	}
	if i.after > 0 {
		i.after--
	} else if i.full > 0 {
		i.full--
		return collector.ErrFull
	}
	i.sizes = append(i.sizes, len(step.Items))
	for k := range step.Items {
		i.judge(&step.Items[k])
	}
	return ctx.Err()
}

func (i *intake) judge(it *collector.Item) {
	i.apps = append(i.apps, it.Event.Query.Application)
	key := fmt.Sprint(it.Event.Kind, it.Event.Query.ID, it.Event.Run, it.Event.AtMs)
	if b := it.Event.Batch; b != nil {
		key = fmt.Sprint(b.Query.ID, b.Run, b.ID)
	}
	switch {
	case it.Event.Query.Name == "refuse me":
		it.Outcome = event.OutcomeRefused
	case it.Event.Query.Name == "who am I":
		it.Outcome = event.OutcomeUnjudgeable
	case i.seen[key]:
		it.Outcome = event.OutcomeDuplicate
	default:
		i.seen[key] = true
		it.Outcome = event.OutcomeExecuted
	}
}

func (i *intake) count() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.seen)
}

// rig is a Source with everything around it.
type rig struct {
	*Source
	in      *intake
	reg     *prometheus.Registry
	counts  *collector.Metrics
	metrics *Metrics
}

func newRig(t testing.TB, change func(o *Options, p *Parts)) *rig {
	t.Helper()
	r := &rig{in: &intake{seen: map[string]bool{}}, reg: prometheus.NewPedanticRegistry()}
	r.counts, r.metrics = collector.NewMetrics(r.reg, SourceName), NewMetrics(r.reg)
	o := DefaultOptions()
	p := Parts{Pool: decode.NewPool(decode.DefaultLimits()), Handler: r.in.handle, Intake: r.counts, Metrics: r.metrics}
	if change != nil {
		change(&o, &p)
	}
	s, err := New(o, p)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = s
	return r
}

// value reads a counter or gauge; label is the value of one of its labels.
func (r *rig) value(name string, label ...string) float64 {
	families, err := r.reg.Gather()
	if err != nil {
		return math.NaN()
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			ok := len(label) == 0
			for _, l := range m.GetLabel() {
				ok = ok || l.GetValue() == label[0]
			}
			if ok {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return math.NaN()
}

// progress is one progress event as JSON.
func progress(batch int) string {
	return fmt.Sprintf(`{"id":"8c7a","runId":"41f0","name":"orders","timestamp":"2026-03-01T10:%02d:%02d.000Z","batchId":%d,`+
		`"batchDuration":2100,"numInputRows":500,"durationMs":{"addBatch":1800,"triggerExecution":2100},"stateOperators":[],"sources":[]}`,
		batch/60%60, batch%60, batch)
}

func lines(from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(progress(from+i) + "\n")
	}
	return b.String()
}

func (r *rig) post(body string, headers ...string) *httptest.ResponseRecorder {
	return r.send(httptest.NewRequest(http.MethodPost, "/api/v1/events", strings.NewReader(body)), headers...)
}

func (r *rig) send(req *http.Request, headers ...string) *httptest.ResponseRecorder {
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w
}

func gzipOf(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, s)
	_ = z.Close()
	return b.String()
}

func zstdOf(s string, o ...zstd.EOption) string {
	z, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(err)
	}
	defer z.Close()
	return string(z.EncodeAll([]byte(s), nil))
}

func want(t *testing.T, w *httptest.ResponseRecorder, code int, body string) {
	t.Helper()
	if w.Code != code || body != "" && strings.TrimSpace(w.Body.String()) != body {
		t.Errorf("answer %d %s, want %d %s", w.Code, w.Body, code, body)
	}
	if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("answer is no JSON: %s", w.Body)
	}
}

func (r *rig) idle(t *testing.T) {
	t.Helper()
	if r.requests.Load() != 0 || r.bytes.Load() != 0 || r.value("stategauge_http_intake_in_flight_bytes") != 0 {
		t.Errorf("%d requests and %d bytes are still under way", r.requests.Load(), r.bytes.Load())
	}
}

func TestEveryFormOfBodyIsTaken(t *testing.T) {
	for form, body := range map[string]string{
		"one event":    progress(1),
		"array":        "[" + progress(1) + ",\n" + progress(2) + "," + progress(3) + "]",
		"lines":        lines(1, 3),
		"pretty":       strings.ReplaceAll(progress(1), ",", " ,\n  "),
		"many":         lines(1, 1500),
		"concatenated": progress(1) + progress(2),
	} {
		n := strings.Count(body, "batchId")
		for encoding, sent := range map[string]string{
			"": body, "identity": body, "gzip": gzipOf(body), "x-gzip": gzipOf(body), "GZIP": gzipOf(body),
			"zstd": zstdOf(body),
		} {
			t.Run(form+" "+encoding, func(t *testing.T) {
				r := newRig(t, nil)
				want(t, r.post(sent, "Content-Encoding", encoding), 200, fmt.Sprintf(`{"accepted":%d,"duplicates":0,"rejected":[]}`, n))
				want(t, r.post(sent, "Content-Encoding", encoding), 200, fmt.Sprintf(`{"accepted":0,"duplicates":%d,"rejected":[]}`, n))
				if r.in.count() != n {
					t.Errorf("%d events arrived, want %d", r.in.count(), n)
				}
				r.idle(t)
			})
		}
	}
}

func TestSeveralMembersAndFramesMakeOneBody(t *testing.T) {
	r := newRig(t, nil)
	want(t, r.post(gzipOf(lines(0, 2))+gzipOf(lines(2, 2)), "Content-Encoding", "gzip"), 200, `{"accepted":4,"duplicates":0,"rejected":[]}`)
	want(t, r.post(zstdOf(lines(4, 2))+zstdOf(lines(6, 2)), "Content-Encoding", "zstd"), 200, `{"accepted":4,"duplicates":0,"rejected":[]}`)
}

func TestStepsAreBounded(t *testing.T) {
	r := newRig(t, func(o *Options, _ *Parts) { o.StepEvents = 10 })
	want(t, r.post(lines(0, 35)), 200, "")
	if got := fmt.Sprint(r.in.sizes); got != "[10 10 10 5]" {
		t.Errorf("steps of %s events", got)
	}
}

func TestFullIntakeAsksForTheSameBodyAgain(t *testing.T) {
	r := newRig(t, func(o *Options, _ *Parts) { o.StepEvents = 10 })
	r.in.after, r.in.full = 2, 1
	body := "{\n" + lines(0, 35)
	w := r.post(body)
	want(t, w, 429, `{"error":"the intake is full"}`)
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", w.Header().Get("Retry-After"))
	}
	if n := r.value("stategauge_events_rejected_total", "syntax"); n != 0 {
		t.Errorf("%g rejects counted for a body that will come again", n)
	}
	w = r.post(body)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `{"accepted":15,"duplicates":20,"rejected":[{"index":0,`) {
		t.Errorf("repeat is answered %d %s", w.Code, w.Body)
	}
	if r.in.count() != 35 {
		t.Errorf("%d events in the end, want 35", r.in.count())
	}
	r.idle(t)
}

func TestBrokenElementsCostNothingElse(t *testing.T) {
	r := newRig(t, nil)
	body := progress(1) + "\n{\"id\":\n" + progress(2) + "\n[1,2]\n" + progress(3) + "\n"
	w := r.post(body)
	var got counts
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || got.Accepted != 3 || len(got.Rejected) == 0 || got.Rejected[0].Index != 1 || got.Rejected[0].Error == "" {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
}

func TestRefusedAndUnjudgeableEventsAreNamed(t *testing.T) {
	r := newRig(t, nil)
	body := progress(1) + "\n{\n" + strings.Replace(progress(2), "orders", "refuse me", 1) + "\n" + strings.Replace(progress(3), "orders", "who am I", 1)
	var got counts
	if err := json.Unmarshal(r.post(body).Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	index := []int{}
	for _, x := range got.Rejected {
		index = append(index, x.Index)
	}
	if fmt.Sprint(index) != "[1 2 3]" || got.Rejected[1].Error != errRefused.Error() || got.Rejected[2].Error != errUnjudgeable.Error() {
		t.Errorf("rejected %+v", got.Rejected)
	}
	want(t, r.post(strings.Replace(progress(2), "orders", "refuse me", 1)), 400, `{"accepted":0,"duplicates":0,"rejected":[{"index":0,"error":"no room for another query"}]}`)
}

func TestAnswerListsABoundedNumberOfRejects(t *testing.T) {
	r := newRig(t, func(o *Options, _ *Parts) { o.RejectsListed = 3 })
	var got counts
	w := r.post(strings.Repeat("[[nonsense\n", 5000) + progress(1))
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rejected) != 3 || got.Unlisted < 1 {
		t.Errorf("%d listed, %d not: %s", len(got.Rejected), got.Unlisted, w.Body)
	}
}

func TestLinesOfOtherListenersAreNoFault(t *testing.T) {
	r := newRig(t, nil)
	want(t, r.post(`{"Event":"SparkListenerApplicationStart","App Name":"etl"}`+"\n"), 200, `{"accepted":0,"duplicates":0,"rejected":[]}`)
}

func TestLabelsComeFromQueryParameters(t *testing.T) {
	r := newRig(t, func(_ *Options, p *Parts) {
		p.Enrich = collector.NewEnrich(map[string][]string{collector.LabelApplication: {"query:app"}})
	})
	for i, url := range []string{"/?app=etl", "/?x=1", "/", "/?app=%zz&app=b"} {
		r.send(httptest.NewRequest(http.MethodPost, url, strings.NewReader(progress(i))))
	}
	if got := fmt.Sprintf("%q", r.in.apps); got != `["etl" "" "" "b"]` {
		t.Errorf("applications %s", got)
	}
}

func TestOtherMethodsAndEncodingsAreRefused(t *testing.T) {
	r := newRig(t, nil)
	for _, method := range []string{"GET", "PUT", "HEAD", "DELETE", "OPTIONS"} {
		w := r.send(httptest.NewRequest(method, "/api/v1/events", strings.NewReader(progress(1))))
		if w.Code != 405 || w.Header().Get("Allow") != "POST" {
			t.Errorf("%s is answered %d with Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	for _, enc := range []string{"br", "deflate", "gzip, gzip", "gzip,zstd", "none"} {
		want(t, r.post(progress(1), "Content-Encoding", enc), 415, "")
	}
	if r.in.count() != 0 {
		t.Error("a refused request was taken")
	}
}

func TestStoppedSourceSendsRequestsAway(t *testing.T) {
	r := newRig(t, nil)
	if r.value("stategauge_source_up") != 1 {
		t.Error("a new source is not up")
	}
	r.Stop()
	w := r.post(progress(1))
	if w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("answer %d", w.Code)
	}
	if r.value("stategauge_source_up") != 0 {
		t.Error("a stopped source is up")
	}
}

func TestFailingStorageAsksToTryAgain(t *testing.T) {
	r := newRig(t, nil)
	r.in.err = fmt.Errorf("disk: %w", io.ErrShortWrite)
	w := r.post(progress(1))
	want(t, w, 503, `{"error":"events could not be stored"}`)
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestEveryAnswerAndRejectIsCounted(t *testing.T) {
	r := newRig(t, nil)
	r.post(progress(1))
	r.post("")
	r.post("{")
	r.post(progress(1), "Content-Encoding", "br")
	r.post("this is no gzip", "Content-Encoding", "gzip")
	for code, n := range map[string]float64{"200": 1, "400": 3, "415": 1, "429": 0} {
		if got := r.value("stategauge_http_intake_requests_total", code); got != n {
			t.Errorf("%g answers %s counted, want %g", got, code, n)
		}
	}
	for reason, n := range map[string]float64{"empty": 1, "encoding": 1} {
		if got := r.value("stategauge_events_rejected_total", reason); got != n {
			t.Errorf("%g rejects for %s counted, want %g", got, reason, n)
		}
	}
	families, err := r.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "stategauge_") || f.GetHelp() == "" {
			t.Errorf("series %s has no prefix or no help", f.GetName())
		}
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	o := Options{DecodedBytes: -1, InFlightBytes: -2}
	err := o.Validate()
	for _, part := range []string{
		"body bytes (0)", "decoded bytes (-1)", "in-flight bytes (-2)", "requests (0)", "step events (0)",
		"rejects listed (0)", "read timeout (0s)", "idle timeout (0s)", "wait (0s)", "retry after (0s)",
	} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("no word about %q in %v", part, err)
		}
	}
	if _, err := New(o, Parts{}); err == nil {
		t.Error("invalid options were taken")
	}
}
