package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/rules"
)

// Target is one Alertmanager, or one name that stands for several.
type Target struct {
	// URL is the base, for example http://alertmanager:9093/prefix.
	URL string
	// ResolveAll sends to every address that the URL's host resolves to, each with
	// a queue and metrics of its own. Members of a cluster that share one name need
	// it: a load balancer would give each alert to one of them only.
	ResolveAll bool
	// NewClient builds the client for the target; address (host:port) is empty, or
	// the one address to connect to whatever the URL says. Nil means a plain client.
	// See ClientFrom.
	NewClient func(address string) (*http.Client, error)
}

// Options configure a Notifier. Zero fields take the defaults given here.
type Options struct {
	Targets []Target
	// ResendDelay is how often a firing alert is sent again: 1 minute.
	ResendDelay time.Duration
	// Tick is how often the engine looks at its alerts: 15 seconds. The lease of a
	// firing alert is four times the longer of Tick and ResendDelay.
	Tick time.Duration
	// Timeout bounds one request: 10 seconds.
	Timeout time.Duration
	// ResolvedRetention is how long a resolved alert is sent again: 15 minutes.
	ResolvedRetention time.Duration
	// Drain bounds the last sends once Run is told to stop: 5 seconds.
	Drain time.Duration
	// Refresh is how often the names of ResolveAll targets are looked up: 30 seconds.
	Refresh time.Duration
	// RetryMin and RetryMax bound the wait after a failure, which doubles from one
	// to the next: 1 and 30 seconds.
	RetryMin, RetryMax time.Duration
	// QueueAlerts bounds the alerts held for each Alertmanager: 10,000. Beyond it the
	// alert that has not changed for longest is dropped and counted.
	QueueAlerts int
	// BatchAlerts bounds the alerts of one request: 64.
	BatchAlerts int
	// SkewAllowance is how much of an Alertmanager's lead over this clock, as its
	// answers show it, is added to the lease: none.
	SkewAllowance time.Duration
	// ExternalLabels are added to alerts that lack them.
	ExternalLabels rules.Labels
	// GeneratorURL returns the link back from an alert; nil means none.
	GeneratorURL func(a *rules.Alert) string
	// StartedAt returns when this daemon found out, in its own time, for an alert that
	// was restored; nil, or the zero time, means now. A time ahead of Now is cut.
	StartedAt func(a *rules.Alert) time.Time
	// Until returns when a firing alert is sent no more unless it was handed in again;
	// nil, or the zero time, means as long as it fires.
	Until func(a *rules.Alert) time.Time
	// Now is the clock, time.Now by default.
	Now func() time.Time
	// Jitter returns numbers from 0 to 1 that spread retries; rand.Float64 by default.
	Jitter func() float64
	// Lookup resolves a host for ResolveAll; the system's resolver by default.
	Lookup func(ctx context.Context, host string) ([]string, error)
}

// Validate returns all faults of the options together, nil if there is none.
func (o Options) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	seen := map[string]bool{}
	for i, t := range o.Targets {
		if seen[t.URL] {
			fault("targets[%d].url (%s) must not repeat another", i, redacted(t.URL))
		}
		seen[t.URL] = true
		if u, err := url.Parse(t.URL); err != nil {
			fault("targets[%d].url must be a URL: %w", i, err)
		} else if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
			fault("targets[%d].url (%s) must be http://host or https://host", i, u.Redacted())
		}
	}
	for name, d := range map[string]time.Duration{
		"resend_delay": o.ResendDelay, "tick": o.Tick, "timeout": o.Timeout, "resolved_retention": o.ResolvedRetention,
		"drain": o.Drain, "refresh": o.Refresh, "retry_min": o.RetryMin, "retry_max": o.RetryMax, "skew_allowance": o.SkewAllowance,
	} {
		if d < 0 {
			fault("%s (%v) must not be negative", name, d)
		}
	}
	if o.QueueAlerts < 0 || o.BatchAlerts < 0 {
		fault("queue_alerts (%d) and batch_alerts (%d) must not be negative", o.QueueAlerts, o.BatchAlerts)
	}
	return errors.Join(faults...)
}

// ClientFrom returns a NewClient for Target that applies TLS, authentication and
// proxy settings; it is the client of Prometheus' own tools.
func ClientFrom(c config.HTTPClientConfig) func(address string) (*http.Client, error) {
	return func(address string) (*http.Client, error) {
		var opts []config.HTTPClientOption
		if address != "" {
			opts = append(opts, config.WithDialContextFunc(dialAlways(address)))
		}
		client, err := config.NewClientFromConfig(c, "alertmanager", opts...)
		if err != nil {
			return nil, fmt.Errorf("building the Alertmanager client: %w", err)
		}
		return client, nil
	}
}

// dialAlways connects to address whatever it is asked for: host header and TLS name
// stay those of the URL.
func dialAlways(address string) func(ctx context.Context, network, _ string) (net.Conn, error) {
	var d net.Dialer
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, address)
	}
}
