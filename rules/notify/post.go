package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 10

// postError is a request that failed.
type postError struct {
	reason string
	err    error
}

// Error returns the text of the cause.
func (e *postError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *postError) Unwrap() error { return e.err }

// post sends one request. The error is a *postError.
func (s *sender) post(ctx context.Context, batch []*record) error {
	err := s.exchange(ctx, batch)
	var fault *postError
	if errors.As(err, &fault) {
		s.metrics.failed.WithLabelValues(s.name, fault.reason).Inc()
	}
	return err
}

// exchange renders, sends and judges. The end of a lease is set here and not when the
// alert was filed, so that waiting in a queue does not shorten it.
func (s *sender) exchange(ctx context.Context, batch []*record) error {
	now := s.o.Now()
	body, err := payload(batch, now, s.leaseEnd(now))
	if err != nil {
		return &postError{reasonBadAlert, fmt.Errorf("rendering %d alerts: %w", len(batch), err)}
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return &postError{reasonRefused, fmt.Errorf("building the request: %w", err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "stategauge")
	start := s.o.Now()
	resp, err := s.client.Do(req)
	end := s.o.Now()
	s.metrics.latency.WithLabelValues(s.name).Observe(end.Sub(start).Seconds())
	if err != nil {
		return &postError{reasonOf(err), fmt.Errorf("posting alerts: %w", err)}
	}
	defer resp.Body.Close()
	s.noteClock(resp.Header.Get("Date"), start.Add(end.Sub(start)/2))
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // only the status counts
	return judge(resp.StatusCode, text)
}

// judge turns an answer into an error, nil where the alerts were taken.
func judge(status int, body []byte) error {
	if status/100 == 2 {
		return nil
	}
	err := fmt.Errorf("alertmanager answers %d: %s", status, firstLine(body))
	switch {
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		return &postError{reasonBadAlert, err}
	case status == http.StatusRequestTimeout:
		return &postError{reasonTimeout, err}
	case status == http.StatusTooManyRequests, status/100 == 5:
		return &postError{reasonServer, err}
	}
	// Wrong path or password: every alert would fare alike, so none is given up.
	return &postError{reasonRefused, err}
}

// firstLine keeps log lines and comparisons of errors short.
func firstLine(body []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	return cut(strings.ToValidUTF8(line, "\uFFFD"), 200)
}

// reasonOf names a failure without an answer for the metrics.
func reasonOf(err error) string {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return reasonTimeout
	}
	return reasonConnection
}

// leaseEnd returns when an alert that fires at now ends unless it is renewed.
func (s *sender) leaseEnd(now time.Time) time.Time {
	return now.Add(s.o.lease() + min(max(s.skew, 0), s.o.SkewAllowance))
}

// noteClock compares the Alertmanager's clock with ours. An Alertmanager ahead by
// more than the lease takes every alert for ended and says nothing, so this warns.
func (s *sender) noteClock(date string, ours time.Time) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		return
	}
	// The header is cut to whole seconds, so half a second is lost on average.
	s.skew = theirs.Add(time.Second / 2).Sub(ours)
	s.metrics.skew.WithLabelValues(s.name).Set(s.skew.Seconds())
	skewed := s.skew.Abs() > s.o.lease()/4
	if skewed && !s.skewed {
		s.log.Warn("the Alertmanager's clock differs: alerts may end early or late", "ahead", s.skew.Round(time.Second), "lease", s.o.lease())
	}
	s.skewed = skewed
}
