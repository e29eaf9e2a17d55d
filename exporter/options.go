package exporter

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options configures an Exporter. A zero field means its default.
type Options struct {
	// Series limits the series of all queries together, a histogram counting as
	// one for each of its buckets, its sum and its count. Slots are not among them:
	// there may be a tenth as many, and 1,000 in any case. Default 1,000,000.
	Series int
	// SeriesPerQuery limits the series of one query. Default 10,000.
	SeriesPerQuery int
	// UnknownKeys limits the families made from metrics that are not in the
	// catalog, all queries together. Default 200.
	UnknownKeys int
	// UnknownKeysPerOperator limits them for one operator. Default 50.
	UnknownKeysPerOperator int
	// LabelBytes limits the length of a label value. Default 200.
	LabelBytes int
	// Phases limits the durationMs keys of one query that are not in the catalog;
	// the time of those beyond it is kept under the phase "other". Default 20.
	Phases int
	// Observed limits the observed columns and percentiles of one query. Default 100.
	Observed int

	// StallMilliseconds takes the writer stall figure as the milliseconds that its
	// name promises. Every Spark known so far sends nanoseconds.
	StallMilliseconds bool

	// GaugeStaleness is how long the gauges of a silent query, and those of an
	// operator or source that batches stopped naming, keep their last value. The
	// query's state, info and last event time stay until it is retired.
	// Default 24 h; negative means for ever.
	GaugeStaleness time.Duration
	// RetirementGrace is how long the counters of a retired query stay, so that
	// they go on if it comes back. Default 10 min; negative means not at all.
	RetirementGrace time.Duration

	// Scrapes limits the scrapes served at the same time; one more is answered
	// with 503. Default 8.
	Scrapes int
	// ScrapeTimeout limits how long writing one page may take. Default 1 min;
	// negative means no limit.
	ScrapeTimeout time.Duration

	// Registerer takes the exporter's own metrics. Nil keeps them unregistered.
	Registerer prometheus.Registerer
	// Logger gets one line a minute at most. Nil discards it.
	Logger *slog.Logger
}

// DefaultOptions returns the options that New uses for zero fields.
func DefaultOptions() Options {
	return Options{
		Series:                 1_000_000,
		SeriesPerQuery:         10_000,
		UnknownKeys:            200,
		UnknownKeysPerOperator: 50,
		LabelBytes:             200,
		Phases:                 20,
		Observed:               100,
		GaugeStaleness:         24 * time.Hour,
		RetirementGrace:        10 * time.Minute,
		Scrapes:                8,
		ScrapeTimeout:          time.Minute,
		Logger:                 slog.New(slog.DiscardHandler),
	}
}

// minLabelBytes leaves room for a value's beginning and the mark of a cut.
const minLabelBytes = 32

// withDefaults fills the zero fields of o.
func (o Options) withDefaults() Options {
	d := DefaultOptions()
	for _, f := range []struct{ have, def *int }{
		{&o.Series, &d.Series},
		{&o.SeriesPerQuery, &d.SeriesPerQuery},
		{&o.UnknownKeys, &d.UnknownKeys},
		{&o.UnknownKeysPerOperator, &d.UnknownKeysPerOperator},
		{&o.LabelBytes, &d.LabelBytes},
		{&o.Phases, &d.Phases},
		{&o.Observed, &d.Observed},
		{&o.Scrapes, &d.Scrapes},
	} {
		if *f.have <= 0 {
			*f.have = *f.def
		}
	}
	o.LabelBytes = max(o.LabelBytes, minLabelBytes)
	for _, f := range []struct{ have, def *time.Duration }{
		{&o.GaugeStaleness, &d.GaugeStaleness},
		{&o.RetirementGrace, &d.RetirementGrace},
		{&o.ScrapeTimeout, &d.ScrapeTimeout},
	} {
		if *f.have == 0 {
			*f.have = *f.def
		}
	}
	if o.Logger == nil {
		o.Logger = d.Logger
	}
	return o
}
