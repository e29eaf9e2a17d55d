package output

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// post sends n messages to a collector without a network and returns how long
// that took and what came of it.
func post(t *testing.T, c *collectorServer, n int, o Options) (took time.Duration, err error) {
	t.Helper()
	o.Client = &http.Client{Transport: c}
	s, err := Open("http://collector:9980", o)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	err = send(t, s, messages(n, 3))
	return time.Since(start), err
}

func TestACollectorThatIsNotReadyIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(post int, body []byte) (int, map[string]string, string)
		took   time.Duration
	}{
		{"full, for two seconds", func(post int, _ []byte) (int, map[string]string, string) {
			if post == 1 {
				return http.StatusTooManyRequests, map[string]string{"Retry-After": "2"}, "full"
			}
			return http.StatusOK, nil, "{}"
		}, 2 * time.Second},
		{"ill three times", func(post int, _ []byte) (int, map[string]string, string) {
			if post <= 3 {
				return http.StatusServiceUnavailable, nil, ""
			}
			return http.StatusOK, nil, "no JSON"
		}, 700 * time.Millisecond},
		{"not there at first", func(post int, _ []byte) (int, map[string]string, string) {
			if post <= 2 {
				return 0, nil, ""
			}
			return http.StatusOK, nil, ""
		}, 300 * time.Millisecond},
		{"slow", func(post int, _ []byte) (int, map[string]string, string) {
			time.Sleep(3 * time.Second) // of the bubble's clock
			return http.StatusOK, nil, ""
		}, 9 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &collectorServer{answer: c.answer}
				took, err := post(t, server, 30, Options{BatchEvents: 10})
				if err != nil || took != c.took {
					t.Errorf("took %s, %v", took, err)
				}
				check(t, server.lines, messages(30, 3))
			})
		})
	}
}

func TestACollectorThatStaysAwayIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &collectorServer{answer: func(int, []byte) (int, map[string]string, string) { return 0, nil, "" }}
		took, err := post(t, server, 5000, Options{BatchEvents: 10, Patience: 30 * time.Second})
		if err == nil || !strings.Contains(err.Error(), "post to http://collector:9980/api/v1/events: gave up after 30s: connection refused") {
			t.Errorf("error %v", err)
		}
		if took > 31*time.Second || server.posts > 12 {
			t.Errorf("took %s and %d posts", took, server.posts)
		}
	})
}

func TestARefusalIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &collectorServer{answer: func(int, []byte) (int, map[string]string, string) {
			return http.StatusUnauthorized, nil, "who are you?\n"
		}}
		took, err := post(t, server, 5000, Options{BatchEvents: 10})
		if err == nil || !strings.Contains(err.Error(), "status 401: who are you?") || server.posts != 1 || took != 0 {
			t.Errorf("%d posts in %s: %v", server.posts, took, err)
		}
	})
}

func TestBodiesThatAreTooLargeAreHalved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &collectorServer{answer: func(_ int, body []byte) (int, map[string]string, string) {
			if bytes.Count(body, []byte("\n")) > 7 {
				return http.StatusRequestEntityTooLarge, nil, "at most 7"
			}
			return http.StatusOK, nil, "{}"
		}}
		if _, err := post(t, server, 100, Options{BatchEvents: 25}); err != nil {
			t.Error(err)
		}
		check(t, server.lines, messages(100, 3))
		server.answer = func(int, []byte) (int, map[string]string, string) {
			return http.StatusRequestEntityTooLarge, nil, "nothing fits"
		}
		if _, err := post(t, server, 3, Options{}); err == nil || !errors.Is(err, errTooLarge) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRejectedEventsAreReportedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &collectorServer{answer: func(int, []byte) (int, map[string]string, string) {
			return http.StatusOK, nil, `{"accepted":8,"duplicates":0,"rejected":[{"index":1,"error":"no id"},{"index":2,"error":"x"}]}`
		}}
		_, err := post(t, server, 20, Options{BatchEvents: 10})
		if err == nil || err.Error() != "http://collector:9980/api/v1/events rejected 4 of 20 events, the first: no id" {
			t.Errorf("error %v", err)
		}
	})
}

func TestIncompleteBatchesGoOutAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &collectorServer{}
		s, err := Open("http://collector", Options{Client: &http.Client{Transport: server}})
		if err != nil {
			t.Fatal(err)
		}
		all := messages(3, 1)
		for _, m := range all {
			if err := s.Write(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(linger + time.Millisecond) // of the bubble's clock
		synctest.Wait()
		check(t, server.lines, all)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if server.posts != 1 {
			t.Errorf("%d posts", server.posts)
		}
	})
}

func TestWaitingForRoomEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		server := &collectorServer{answer: func(int, []byte) (int, map[string]string, string) {
			<-release
			return http.StatusOK, nil, ""
		}}
		s, err := Open("http://collector", Options{Client: &http.Client{Transport: server}, BatchEvents: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		for _, m := range messages(5, 1) {
			err = s.Write(ctx, m)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		close(release)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0, "99999999": time.Hour,
		"Mon, 02 Mar 2026 00:00:30 GMT": 30 * time.Second, "Mon, 02 Mar 2020 00:00:30 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q is %s, want %s", header, got, want)
		}
	}
}

func TestAPacerKeepsRatesAndRealTime(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		live bool
		want time.Duration
	}{
		{"as fast as possible", 0, false, 0},
		{"fifty a second", 50, false, 1980 * time.Millisecond},
		{"real time", 0, true, 99 * time.Minute},
		{"real time and a rate below it", 0.01, true, 9900 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPacer(c.rate, c.live)
				start := time.Now()
				for i := range int64(100) {
					if err := p.Wait(context.Background(), 1_772_409_600_000+i*60_000); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestAPacerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	live := NewPacer(0, true)
	if err := live.Wait(ctx, 0); err != nil {
		t.Fatal(err)
	}
	cancel()
	for _, p := range []*Pacer{live, NewPacer(0, false), NewPacer(1, false)} {
		if err := p.Wait(ctx, 1_000_000); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}
