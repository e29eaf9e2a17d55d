// Package output delivers the events of a simulation: as lines to a file or a
// pipe, by HTTP, or through Kafka; and makes many queries out of one for load
// tests. It owns the goroutines that deliver and stops them at Close.
package output

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stategauge/stategauge/simulator"
)

// Sink takes the events of a simulation in order. Write copies what it needs
// before it returns; it may wait until the other end has room. Write is called
// by one goroutine, and not after Close. An error is final: what came before it
// may not have arrived.
type Sink interface {
	Write(ctx context.Context, m *simulator.Message) error
	// Close delivers what waits and stops all goroutines. It returns the error of
	// a delivery that Write has not returned yet.
	Close() error
}

// Options is how a sink delivers. The zero value is ready to use.
type Options struct {
	Stdout io.Writer // for the target "-"; nil: os.Stdout
	// AtOnce writes each line when it comes, as live runs want it. HTTP and Kafka
	// hold events back for a fraction of a second at most anyway.
	AtOnce bool
	// Patience is how long one delivery is tried again after failures that may
	// pass; 0: one minute.
	Patience time.Duration
	Client   *http.Client // nil: one with a time limit for each request
	// BatchEvents and BatchBytes end a batch for HTTP and Kafka; 0: 500 events,
	// 1 MiB.
	BatchEvents, BatchBytes int
}

// Limits of a batch, and how long an incomplete one waits.
const (
	defaultEvents = 500
	defaultBytes  = 1 << 20
	linger        = 200 * time.Millisecond
)

func (o *Options) fill() {
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 30 * time.Second}
	}
	if o.BatchEvents <= 0 {
		o.BatchEvents = defaultEvents
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = defaultBytes
	}
}

// Open makes the sink that target names: "-" for standard output, a URL for a
// collector (http://host:port, the path defaults to its intake), kafka://
// broker,broker/topic, or else a file, which is replaced.
func Open(target string, o Options) (Sink, error) {
	o.fill()
	scheme, _, isURL := strings.Cut(target, "://")
	switch {
	case target == "":
		return nil, fmt.Errorf("output is empty")
	case target == "-":
		return newLines(o.Stdout, nil, o.AtOnce), nil
	case isURL && (scheme == "http" || scheme == "https"):
		return openHTTP(target, o)
	case isURL && scheme == "kafka":
		return openKafka(target, o)
	case isURL:
		return nil, fmt.Errorf("output %q: unknown scheme %q, must be http, https or kafka", target, scheme)
	}
	f, err := os.Create(target)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return newLines(f, f, o.AtOnce), nil
}

// intake is where collectors take events.
const intake = "/api/v1/events"

func openHTTP(target string, o Options) (Sink, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("output %q is no URL of a collector", target)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = intake
	}
	return newHTTP(u, o), nil
}

func openKafka(target string, o Options) (Sink, error) {
	u, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	topic := strings.Trim(u.Path, "/")
	if u.Host == "" || topic == "" || strings.Contains(topic, "/") {
		return nil, fmt.Errorf("output %q must be kafka://broker:port/topic", target)
	}
	return newKafka(strings.Split(u.Host, ","), topic, o), nil
}
