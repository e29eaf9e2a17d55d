package exporter

import (
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// tri is a setting that may not be known.
type tri int8

const (
	unknown tri = iota
	off
	on
)

func (t tri) String() string { return [...]string{"unknown", "off", "on"}[t] }

// Settings of Spark that change what its figures mean.
const (
	confState     = "spark.sql.streaming.stateStore."
	confProvider  = confState + "providerClass"
	confChangelog = confState + "rocksdb.changelogCheckpointing.enabled"
	confBounded   = confState + "rocksdb.boundedMemoryUsage"
	confTracked   = confState + "rocksdb.trackTotalNumberOfRows"
	confReset     = confState + "rocksdb.resetStatsOnLoad"
)

// known is what has been told of a query's settings, and of who sends.
type known struct {
	told     string        // Spark's version as the envelope says it
	version  event.Version // lower bound from the keys present
	provider string

	changelog, bounded, tracked, reset tri
}

// learn takes over the settings that an envelope carries. They come with started
// events and when they change, so what is left out stays as it was.
func (k *known) learn(env *event.Envelope) {
	if env == nil {
		return
	}
	if env.App.SparkVersion != "" {
		k.told = env.App.SparkVersion
	}
	k.changelog = setting(env.Conf, confChangelog, k.changelog)
	k.bounded = setting(env.Conf, confBounded, k.bounded)
	k.tracked = setting(env.Conf, confTracked, k.tracked)
	k.reset = setting(env.Conf, confReset, k.reset)
	if class := env.Conf[confProvider]; class != "" {
		k.provider = providerName(class)
	}
}

// setting returns a switch of conf, or what is known of it where conf does not
// say or says nonsense.
func setting(conf map[string]string, key string, have tri) tri {
	v, err := strconv.ParseBool(strings.TrimSpace(conf[key]))
	switch {
	case err != nil:
		return have
	case v:
		return on
	default:
		return off
	}
}

// providerName shortens the class name of a provider. Vendors have classes of their
// own for the same two.
func providerName(class string) string {
	class = strings.ToLower(class)
	switch {
	case strings.Contains(class, "rocksdb"):
		return event.ProviderRocksDB.String()
	case strings.Contains(class, "hdfs"):
		return event.ProviderHDFS.String()
	default:
		return "other"
	}
}

// observe takes over what a batch's keys tell of its sender.
func (k *known) observe(b *event.Batch) {
	if k.version.Less(b.Spark) {
		k.version = b.Spark
	}
	for i := range b.Operators {
		if p := b.Operators[i].Provider; p == event.ProviderRocksDB || p == event.ProviderHDFS {
			k.provider = p.String()
		}
	}
}

// infoKey is the changing part of query_info's labels.
type infoKey struct{ version, provider, changelog, bounded, trigger string }

// setInfo brings query_info up to date.
func (x *Exporter) setInfo(q *query, u *event.Update) {
	key := q.infoLabels(u.Trigger)
	key.version = cleanValue(key.version, x.o.LabelBytes)
	if q.info == nil || q.infoKey != key {
		x.renderInfo(q, key)
	}
	if at, ok := x.slotWith(q, q.base, defInfo, q.info); ok {
		q.next[at] = 1
	}
}

// infoLabels returns what is known now: what the sender told goes before what its
// figures imply, and a version that keys imply is a lower bound.
func (q *query) infoLabels(t event.TriggerKind) infoKey {
	k := &q.known
	out := infoKey{
		version: k.told, provider: k.provider, changelog: k.changelog.String(),
		bounded: k.bounded.String(), trigger: t.String(),
	}
	if out.version == "" {
		out.version = unknownName
		if !k.version.IsZero() {
			out.version = k.version.String() + "+"
		}
	}
	if out.provider == "" {
		out.provider = unknownName
	}
	if k.changelog == unknown {
		out.changelog = q.inferred.String()
	}
	return out
}

// renderInfo changes the labels of the one info series, so that an old one never
// stays beside the new.
func (x *Exporter) renderInfo(q *query, key infoKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q.renderInfo(key)
}

// renderInfo renders the labels. The caller holds Exporter.mu.
func (q *query) renderInfo(key infoKey) {
	if q.info == nil {
		q.info = &labels{}
	}
	q.infoKey = key
	q.info.render(",", []event.Label{
		{Name: "spark_version", Value: key.version},
		{Name: "provider", Value: key.provider},
		{Name: "changelog", Value: key.changelog},
		{Name: "bounded_memory", Value: key.bounded},
		{Name: "trigger", Value: key.trigger},
	})
}
