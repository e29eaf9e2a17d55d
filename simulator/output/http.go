package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// httpSink posts batches as NDJSON to a collector's intake.
type httpSink struct {
	*courier
	url    *url.URL
	client *http.Client

	// Touched by the courier's goroutine, and by Close after it has ended.
	sent, rejected int
	firstRejection string
}

func newHTTP(u *url.URL, o Options) *httpSink {
	o.fill()
	s := &httpSink{url: u, client: o.Client}
	s.courier = startCourier(o, func(ctx context.Context, b *batch) error {
		return s.post(ctx, b.data, len(b.ends), o.Patience)
	})
	return s
}

// Close also reports events that the collector refused while it took others.
func (s *httpSink) Close() error {
	err := s.courier.Close()
	s.client.CloseIdleConnections()
	if s.rejected > 0 {
		refused := fmt.Errorf("%s rejected %d of %d events, the first: %s", s.url.Redacted(), s.rejected, s.sent, s.firstRejection)
		err = errors.Join(err, refused)
	}
	return err
}

// errTooLarge says that a body must be split.
var errTooLarge = errors.New("too large for the collector")

func (s *httpSink) post(ctx context.Context, body []byte, events int, patience time.Duration) error {
	err := persist(ctx, patience, func(ctx context.Context) error { return s.attempt(ctx, body) })
	if errors.Is(err, errTooLarge) && events > 1 {
		return s.postHalves(ctx, body, events, patience)
	}
	if err != nil {
		return fmt.Errorf("post to %s: %w", s.url.Redacted(), err)
	}
	s.sent += events
	return nil
}

func (s *httpSink) postHalves(ctx context.Context, body []byte, events int, patience time.Duration) error {
	half, at := events/2, 0
	for range half {
		at += bytes.IndexByte(body[at:], '\n') + 1
	}
	if err := s.post(ctx, body[:at], half, patience); err != nil {
		return err
	}
	return s.post(ctx, body[at:], events-half, patience)
}

func (s *httpSink) attempt(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("User-Agent", "stategauge-simulate")
	resp, err := s.client.Do(req)
	if err != nil {
		return &passing{err: errors.Unwrap(err)}
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return &passing{err: err}
	}
	return s.judge(resp, answer)
}

// judge turns an answer into an error, nil where the events arrived.
func (s *httpSink) judge(resp *http.Response, answer []byte) error {
	code := resp.StatusCode
	failed := fmt.Errorf("status %s: %.200s", resp.Status, bytes.TrimSpace(answer))
	switch {
	case code >= 200 && code < 300:
		s.count(answer)
		return nil
	case code == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: %w", errTooLarge, failed)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &passing{err: failed, after: retryAfter(resp.Header.Get("Retry-After"), time.Now())}
	}
	return failed
}

// count notes events that were refused one by one.
func (s *httpSink) count(answer []byte) {
	var a struct {
		Rejected []struct{ Error string }
	}
	if json.Unmarshal(answer, &a) != nil || len(a.Rejected) == 0 {
		return // another collector's answer may have another form
	}
	if s.rejected == 0 {
		s.firstRejection = a.Rejected[0].Error
	}
	s.rejected += len(a.Rejected)
}

// retryAfter reads seconds or a date; 0 where it is neither.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, 3600)) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
