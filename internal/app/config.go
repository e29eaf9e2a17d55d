package app

import (
	"time"

	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Config is the whole configuration file. Every field has a default, so an empty
// file, or none, is a valid configuration: events come in by HTTP and nothing is
// paged.
type Config struct {
	Intake   IntakeConfig        `yaml:"intake"`
	Kafka    *KafkaConfig        `yaml:"kafka"` // nil: no Kafka source
	Alerting AlertingConfig      `yaml:"alerting"`
	Export   ExportConfig        `yaml:"export"`
	Storage  StorageConfig       `yaml:"storage"`
	Labels   map[string][]string `yaml:"labels"` // label to places where the carrier has it, first non-empty counts
	Queries  []QueryOverride     `yaml:"queries"`
}

// IntakeConfig bounds what may come in.
type IntakeConfig struct {
	QueueEvents       int              `yaml:"queue_events"`   // events waiting for their shard, all shards together
	RulesQueue        int              `yaml:"rules_queue"`    // judged-once batches waiting for the rules
	Queries           int              `yaml:"queries"`        // queries known at once
	MaxBodyBytes      strictyaml.Bytes `yaml:"max_body"`       // HTTP body as sent
	MaxDecodedBytes   strictyaml.Bytes `yaml:"max_decoded"`    // HTTP body after decompression
	MaxInFlightBytes  strictyaml.Bytes `yaml:"max_in_flight"`  // decoded HTTP bodies held at once
	MaxEventBytes     strictyaml.Bytes `yaml:"max_event"`      // one event
	KeysPerEvent      int              `yaml:"keys_per_event"` // keys of one event, all levels together
	OperatorsPerEvent int              `yaml:"operators_per_event"`
	SourcesPerEvent   int              `yaml:"sources_per_event"`
	// ShapeCacheBytes is the memory for remembered event shapes, about 13 KB for each
	// query: an event whose shape is remembered costs a third to decode.
	ShapeCacheBytes strictyaml.Bytes `yaml:"shape_cache"`
	// A query is forgotten so long after its last sign of life: where it ended
	// cleanly, where it just fell silent, and where it failed or is overdue.
	RetireEnded    strictyaml.Duration `yaml:"retire_ended"`
	RetireSilent   strictyaml.Duration `yaml:"retire_silent"`
	RetireTroubled strictyaml.Duration `yaml:"retire_troubled"`
}

// KafkaConfig switches the Kafka source on.
type KafkaConfig struct {
	Brokers           []string            `yaml:"brokers"`
	Topics            []string            `yaml:"topics"`
	Group             string              `yaml:"group"`
	Start             string              `yaml:"start"` // earliest or latest: where a partition without a committed offset starts
	ClientID          string              `yaml:"client_id"`
	HeartbeatInterval strictyaml.Duration `yaml:"heartbeat_interval"`
	SessionTimeout    strictyaml.Duration `yaml:"session_timeout"`
	WatchInterval     strictyaml.Duration `yaml:"watch_interval"` // how often topics and partitions are looked at
	// Lookback is how much of its past is read again of a partition that comes from
	// another process; 0 is as far as the longest window of the rules.
	Lookback strictyaml.Duration `yaml:"lookback"`
	TLS      *TLSConfig          `yaml:"tls"`
	SASL     *SASLConfig         `yaml:"sasl"`
}

// SASLConfig authenticates with Kafka.
type SASLConfig struct {
	Mechanism    string `yaml:"mechanism"` // plain, scram-sha-256 or scram-sha-512
	Username     string `yaml:"username"`
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password_file"`
}

// TLSConfig is a client's side of TLS.
type TLSConfig struct {
	CAFile             string `yaml:"ca_file"`
	CertFile           string `yaml:"cert_file"`
	KeyFile            string `yaml:"key_file"`
	ServerName         string `yaml:"server_name"`
	InsecureSkipVerify bool   `yaml:"insecure_skip_verify"`
}

// AlertingConfig says where alerts go.
type AlertingConfig struct {
	Alertmanagers []AlertmanagerConfig `yaml:"alertmanagers"`
	ResendDelay   strictyaml.Duration  `yaml:"resend_delay"`
	Timeout       strictyaml.Duration  `yaml:"timeout"`      // of one request to an Alertmanager
	ExternalURL   string               `yaml:"external_url"` // this daemon as people reach it, for links in alerts
	QueueAlerts   int                  `yaml:"queue_alerts"` // alert states waiting for each Alertmanager
	// HoldOlderThan keeps alerts that rest on older events back until the events have
	// caught up; 0 holds none.
	HoldOlderThan strictyaml.Duration `yaml:"hold_older_than"`
	// Watchdog sends an alert that always fires: whoever misses it knows that pages do
	// not get through.
	Watchdog bool `yaml:"watchdog"`
}

// AlertmanagerConfig is one Alertmanager. List every member of a cluster.
type AlertmanagerConfig struct {
	URL             string           `yaml:"url"`
	Resolve         string           `yaml:"resolve"` // one (default) or all: send to every address behind the name
	BasicAuth       *BasicAuthConfig `yaml:"basic_auth"`
	CredentialsFile string           `yaml:"credentials_file"` // bearer token
	TLS             *TLSConfig       `yaml:"tls"`
}

// BasicAuthConfig is a user name with a password or a file that holds one.
type BasicAuthConfig struct {
	Username     string `yaml:"username"`
	Password     Secret `yaml:"password"`
	PasswordFile string `yaml:"password_file"`
}

// ExportConfig bounds what goes out.
type ExportConfig struct {
	Series         int                 `yaml:"series"`           // series of all queries together
	SeriesPerQuery int                 `yaml:"series_per_query"` // series of one query
	UnknownKeys    int                 `yaml:"unknown_keys"`     // names of metrics outside the catalog
	LabelBytes     int                 `yaml:"label_bytes"`      // length of one label value
	GaugeStaleness strictyaml.Duration `yaml:"gauge_staleness"`  // silence after which a query's gauges are left out
}

// StorageConfig bounds what is kept on disk where --storage.path names a directory.
type StorageConfig struct {
	MaxBytes   strictyaml.Bytes    `yaml:"max_bytes"`   // all of it; the oldest goes first
	RawFor     strictyaml.Duration `yaml:"raw_for"`     // every batch
	HourlyFor  strictyaml.Duration `yaml:"hourly_for"`  // the rules' signals by the hour
	CacheBytes strictyaml.Bytes    `yaml:"cache_bytes"` // memory for what is read
}

// QueryOverride says what cannot be learnt from the events of the queries that
// Match names.
type QueryOverride struct {
	Match    string              `yaml:"match"`   // query name or id, with * and ?
	Trigger  string              `yaml:"trigger"` // interval, default, available_now, once, real_time or continuous
	Interval strictyaml.Duration `yaml:"interval"`
	Owner    string              `yaml:"owner"`  // becomes the label owner of the query's alerts
	Labels   map[string]string   `yaml:"labels"` // added to the query's alerts: team, tier, ...
	Mute     Time                `yaml:"mute_until"`
	// What rules want to know and no event says: how old the newest row may be, what
	// one executor may hold of state in memory and on its disk, and that people are
	// to be woken for the query.
	Freshness   strictyaml.Duration `yaml:"freshness"`
	MemoryLimit strictyaml.Bytes    `yaml:"memory_limit"`
	DiskLimit   strictyaml.Bytes    `yaml:"disk_limit"`
	Critical    *bool               `yaml:"critical"`
}

// DefaultConfig returns the configuration that holds where the file is silent.
func DefaultConfig() Config {
	limits := decode.DefaultLimits()
	return Config{
		Intake: IntakeConfig{
			QueueEvents: 16384, RulesQueue: 8192, Queries: 20000,
			MaxBodyBytes: 16 << 20, MaxDecodedBytes: 64 << 20, MaxInFlightBytes: 256 << 20,
			MaxEventBytes: strictyaml.Bytes(limits.EventBytes), KeysPerEvent: limits.KeysPerEvent,
			OperatorsPerEvent: limits.Operators, SourcesPerEvent: limits.Sources,
			ShapeCacheBytes: 128 << 20,
			RetireEnded:     strictyaml.Duration(time.Hour), RetireSilent: strictyaml.Duration(25 * time.Hour),
			RetireTroubled: strictyaml.Duration(7 * 24 * time.Hour),
		},
		Alerting: AlertingConfig{ResendDelay: strictyaml.Duration(time.Minute), Timeout: strictyaml.Duration(10 * time.Second), QueueAlerts: 10000, HoldOlderThan: strictyaml.Duration(time.Hour)},
		Export: ExportConfig{
			Series: 2000000, SeriesPerQuery: 5000, UnknownKeys: 200, LabelBytes: 256,
			GaugeStaleness: strictyaml.Duration(24 * time.Hour),
		},
		Storage: StorageConfig{
			MaxBytes: 20 << 30, RawFor: strictyaml.Duration(7 * day), HourlyFor: strictyaml.Duration(396 * day), CacheBytes: 16 << 20,
		},
	}
}

const day = 24 * time.Hour

// fill puts defaults into a Kafka section that the file switched on.
func (k *KafkaConfig) fill() {
	setString(&k.Group, "stategauge")
	setString(&k.Start, "earliest")
	setString(&k.ClientID, "stategauge")
	setDuration(&k.HeartbeatInterval, time.Second)
	setDuration(&k.SessionTimeout, 10*time.Second)
	setDuration(&k.WatchInterval, 10*time.Second)
}

func setString(s *string, def string) {
	if *s == "" {
		*s = def
	}
}

func setDuration(d *strictyaml.Duration, def time.Duration) {
	if *d == 0 {
		*d = strictyaml.Duration(def)
	}
}

// triggerKinds maps the configuration's words to trigger kinds.
var triggerKinds = map[string]event.TriggerKind{
	"interval": event.TriggerInterval, "default": event.TriggerDefault,
	"available_now": event.TriggerAvailableNow, "once": event.TriggerOnce,
	"real_time": event.TriggerRealTime, "continuous": event.TriggerContinuous,
}
