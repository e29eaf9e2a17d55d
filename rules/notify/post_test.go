package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/rules"
)

func TestAnswersAreJudged(t *testing.T) {
	cases := []struct {
		status int
		reason string // empty: taken
	}{
		{200, ""},
		{202, ""},
		{301, reasonRefused},
		{400, reasonBadAlert},
		{401, reasonRefused},
		{403, reasonRefused},
		{404, reasonRefused},
		{408, reasonTimeout},
		{413, reasonBadAlert},
		{422, reasonBadAlert},
		{429, reasonServer},
		{500, reasonServer},
		{503, reasonServer},
	}
	for _, c := range cases {
		err := judge(c.status, []byte("  what\nmore"))
		var fault *postError
		if c.reason == "" {
			if err != nil {
				t.Errorf("%d: %v", c.status, err)
			}
			continue
		}
		if !errors.As(err, &fault) || fault.reason != c.reason || !strings.HasSuffix(err.Error(), ": what") {
			t.Errorf("%d: %v", c.status, err)
		}
	}
}

func TestErrorsOfTheNetworkAreNamed(t *testing.T) {
	for want, err := range map[string]error{
		reasonTimeout:    &url.Error{Op: "Post", Err: context.DeadlineExceeded},
		reasonConnection: &url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}},
	} {
		if got := reasonOf(fmt.Errorf("posting: %w", err)); got != want {
			t.Errorf("%v is %s", err, got)
		}
	}
}

func TestRequestOverTheWire(t *testing.T) {
	got := make(chan *http.Request, 1)
	bodies := make(chan []posted, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var list []posted
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		got <- r
		bodies <- list
	}))
	defer server.Close()
	user := strings.Replace(server.URL, "http://", "http://me:secret@", 1)
	b := start(t, Options{Targets: []Target{{URL: user + "/prefix/"}}})
	defer b.stop()
	b.fire("slow")
	r := <-got
	if r.URL.Path != "/prefix/api/v2/alerts" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
	}
	if name, password, _ := r.BasicAuth(); name != "me" || password != "secret" {
		t.Errorf("sent as %q", name)
	}
	if list := <-bodies; len(list) != 1 || list[0].Labels["alertname"] != "slow" {
		t.Errorf("%+v", list)
	}
	if strings.Contains(b.lines[0].sender.name, "secret") {
		t.Errorf("the password is in the label %q", b.lines[0].sender.name)
	}
}

func TestClientConnectsToTheOneAddressAndKeepsTheHost(t *testing.T) {
	host := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host <- r.Host }))
	defer server.Close()
	client, err := ClientFrom(config.DefaultHTTPClientConfig)(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get("http://alertmanager.example:9093/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := <-host; got != "alertmanager.example:9093" {
		t.Errorf("host %q", got)
	}
}

func TestClientSettingsThatCannotBeUsedAreNamed(t *testing.T) {
	c := config.HTTPClientConfig{TLSConfig: config.TLSConfig{CAFile: "testdata/no-such-file.pem"}}
	if _, err := ClientFrom(c)(""); err == nil || !strings.Contains(err.Error(), "building the Alertmanager client") {
		t.Errorf("%v", err)
	}
}

func TestHugeAnswerIsReadInPart(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.CopyN(w, endless{}, 10<<20) // the reader hangs up
	}))
	defer server.Close()
	n := newNotifier(t, Options{Targets: []Target{{URL: server.URL}}})
	a := alert("x", rules.Firing)
	err := n.lines[0].sender.post(context.Background(), []*record{n.file(&a, time.Now())})
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("error of %d bytes", len(fmt.Sprint(err)))
	}
}

func TestServerThatAcceptsAndNeverAnswersTimesOut(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // the kernel accepts; nobody reads
	taken := make(chan struct{}, 10)
	fine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken <- struct{}{} }))
	defer fine.Close()
	b := start(t, Options{
		Targets: []Target{{URL: "http://" + silent.Addr().String()}, {URL: fine.URL}},
		Timeout: 200 * time.Millisecond, Drain: 10 * time.Millisecond,
	})
	defer b.stop()
	b.fire("slow")
	<-taken
	until(t, "timed out", func() bool {
		return b.metric(t, "stategauge_notifications_failed_total", "reason", reasonTimeout) > 0
	})
	if got := b.metric(t, "stategauge_notifications_failed_total", label, fine.URL); got != 0 {
		t.Errorf("%v failures of the other", got)
	}
}

func TestServerThatIsNotThereIsAConnectionFailure(t *testing.T) {
	address := freeAddress(t)
	b := start(t, Options{Targets: []Target{{URL: "http://" + address}}})
	defer b.stop()
	b.fire("slow")
	until(t, "refused", func() bool {
		return b.metric(t, "stategauge_notifications_failed_total", "reason", reasonConnection) > 0
	})
}

// endless is a reader of one letter.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestMetricsAreThereFromTheStart(t *testing.T) {
	reg := prometheus.NewRegistry()
	if _, err := New(Options{Targets: []Target{{URL: "http://am"}}}, reg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "stategauge_") || f.GetHelp() == "" {
			t.Errorf("family %s", f.GetName())
		}
		series += len(f.Metric)
	}
	if want := 1 + len(failReasons) + len(dropReasons) + 1 + 1; series != want {
		t.Errorf("%d series, want %d", series, want)
	}
}
