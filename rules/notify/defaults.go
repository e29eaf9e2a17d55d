package notify

import (
	"math/rand/v2"
	"net"
	"time"

	"github.com/prometheus/common/config"
)

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	for d, value := range map[*time.Duration]time.Duration{
		&o.ResendDelay: time.Minute, &o.Tick: 15 * time.Second, &o.Timeout: 10 * time.Second,
		&o.ResolvedRetention: 15 * time.Minute, &o.Drain: 5 * time.Second, &o.Refresh: 30 * time.Second,
		&o.RetryMin: time.Second, &o.RetryMax: 30 * time.Second,
	} {
		if *d == 0 {
			*d = value
		}
	}
	if o.QueueAlerts == 0 {
		o.QueueAlerts = 10_000
	}
	if o.BatchAlerts == 0 {
		o.BatchAlerts = 64
	}
	return o.withSources()
}

// withSources fills in what comes from outside: time, chance, names and clients.
func (o Options) withSources() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Lookup == nil {
		o.Lookup = net.DefaultResolver.LookupHost
	}
	targets := append([]Target(nil), o.Targets...)
	for i := range targets {
		if targets[i].NewClient == nil {
			targets[i].NewClient = ClientFrom(config.DefaultHTTPClientConfig)
		}
	}
	o.Targets = targets
	return o
}

// lease is how far ahead the end of a firing alert lies.
func (o *Options) lease() time.Duration { return 4 * max(o.Tick, o.ResendDelay) }
