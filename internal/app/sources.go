package app

import (
	"fmt"
	"net/http"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/httpsource"
	"github.com/stategauge/stategauge/collector/kafkasource"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
	"github.com/stategauge/stategauge/rules"
)

func limitsOf(c *IntakeConfig) decode.Limits {
	l := decode.DefaultLimits()
	l.EventBytes, l.KeysPerEvent = int(c.MaxEventBytes), c.KeysPerEvent
	l.Operators, l.Sources = c.OperatorsPerEvent, c.SourcesPerEvent
	l.TemplateBytes = int(c.ShapeCacheBytes)
	if l.TemplateBytes == 0 {
		l.TemplateBytes = -1 // off: a zero limit would be the decoder's default
	}
	return l
}

func (a *App) exporterOptions(c *Config) exporter.Options {
	o := exporter.DefaultOptions()
	o.Series, o.SeriesPerQuery = c.Export.Series, c.Export.SeriesPerQuery
	o.UnknownKeys, o.LabelBytes = c.Export.UnknownKeys, c.Export.LabelBytes
	o.GaugeStaleness = c.Export.GaugeStaleness.Std()
	o.Registerer, o.Logger = a.registry, a.log
	return o
}

func (a *App) trackerConfig(c *Config) track.Config {
	t := track.DefaultConfig()
	// Queries spread evenly enough over the shards, but not exactly.
	t.Queries = c.Intake.Queries/a.opts.Shards + c.Intake.Queries/(4*a.opts.Shards) + 1
	t.RetireEndedMs = c.Intake.RetireEnded.Std().Milliseconds()
	t.RetireSilentMs = c.Intake.RetireSilent.Std().Milliseconds()
	t.RetireTroubledMs = c.Intake.RetireTroubled.Std().Milliseconds()
	t.Senders, t.Names = a.senders, a.names
	t.TriggerFor = a.overrides.Load().trigger
	return t
}

func (a *App) engineOptions(c *Config) rules.Options {
	return rules.Options{
		MaxQueries: c.Intake.Queries, TickMs: a.opts.JudgeEvery.Milliseconds(),
		Metrics: rules.NewMetrics(a.registry), Override: func(q event.QueryRef) rules.Override { return a.overrides.Load().facts(q) },
	}
}

// buildSources makes the sources. Their counters are registered once and outlive
// a source that a reload replaces.
func (a *App) buildSources(c *Config) error {
	a.httpMetrics, a.kafka.metrics = httpsource.NewMetrics(a.registry), kafkasource.NewMetrics(a.registry)
	h, err := a.newHTTP(c)
	if err != nil {
		return err
	}
	a.http.Store(h)
	s, err := a.newKafka(c)
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	a.kafka.source = s
	return nil
}

func (a *App) newHTTP(c *Config) (*httpsource.Source, error) {
	o := httpsource.DefaultOptions()
	o.BodyBytes, o.DecodedBytes = int64(c.Intake.MaxBodyBytes), int64(c.Intake.MaxDecodedBytes)
	o.InFlightBytes = int64(c.Intake.MaxInFlightBytes)
	return httpsource.New(o, httpsource.Parts{
		Pool: a.decoders, Handler: a.Handle, Intake: a.metrics.collector, Metrics: a.httpMetrics,
		Enrich: collector.NewEnrich(c.Labels), Log: a.log, Now: a.opts.Now,
	})
}

func (a *App) newKafka(c *Config) (*kafkasource.Source, error) {
	if c.Kafka == nil {
		return nil, nil
	}
	k, err := kafkaConfig(c.Kafka)
	if err != nil {
		return nil, err
	}
	return kafkasource.New(kafkasource.Options{
		Config: k, Handler: a.Handle, Pool: a.decoders, Intake: a.metrics.collector, Metrics: a.kafka.metrics,
		Hooks:  collector.PartitionHooks{Assigned: a.assigned},
		Enrich: collector.NewEnrich(c.Labels), Logger: a.log, Now: a.opts.Now,
	})
}

// serveEvents hands a request to the events handler of the present configuration.
func (a *App) serveEvents(w http.ResponseWriter, r *http.Request) { a.http.Load().ServeHTTP(w, r) }

// registerDecodeGauges shows how the decoder's shared parts are doing.
func (a *App) registerDecodeGauges() {
	for _, g := range []struct {
		name, help string
		of         func(s decode.Stats) float64
	}{
		{"stategauge_decode_template_bytes", "Memory of the remembered event shapes.", func(s decode.Stats) float64 { return float64(s.TemplateBytes) }},
		{"stategauge_decode_templates", "Event shapes remembered.", func(s decode.Stats) float64 { return float64(s.Templates) }},
		{"stategauge_decode_interned_strings", "Strings kept in the table that all events share.", func(s decode.Stats) float64 { return float64(s.Interned) }},
	} {
		gaugeFunc(a.registry, g.name, g.help, func() float64 { return g.of(a.decoders.Stats()) })
	}
	for _, c := range []struct {
		name, help string
		of         func(s decode.Stats) float64
	}{
		{"stategauge_decode_shape_hits_total", "Events decoded by a remembered shape.", func(s decode.Stats) float64 { return float64(s.ShapeHits) }},
		{"stategauge_decode_shape_misses_total", "Events of queries without a remembered shape.", func(s decode.Stats) float64 { return float64(s.ShapeMisses) }},
		{"stategauge_decode_shape_fallbacks_total", "Events whose shape had changed, so that they were parsed in full.", func(s decode.Stats) float64 { return float64(s.ShapeFallbacks) }},
		{"stategauge_decode_unknown_keys_dropped_total", "Metrics outside the catalog left out because an event had too many.", func(s decode.Stats) float64 { return float64(s.UnknownDropped) }},
	} {
		counterFunc(a.registry, c.name, c.help, func() float64 { return c.of(a.decoders.Stats()) })
	}
}
