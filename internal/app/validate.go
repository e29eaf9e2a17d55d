package app

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// LoadConfig reads a configuration file over the defaults. The error names every
// fault with its line. An empty name gives the defaults.
func LoadConfig(name string) (Config, error) {
	if name == "" {
		return DefaultConfig(), nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Config{}, err
	}
	return ParseConfig(name, data)
}

// ParseConfig reads configuration text over the defaults; name is what faults
// call it.
func ParseConfig(name string, data []byte) (Config, error) {
	c := DefaultConfig()
	at, err := strictyaml.DecodeAt(name, data, &c)
	if c.Kafka != nil {
		c.Kafka.fill()
	}
	v := validator{at: at}
	v.config(&c)
	if err := strictyaml.Join(err, v.newTo(err).Err()); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Validate reports every fault of a configuration that came from no file.
func (c *Config) Validate() error {
	v := validator{}
	v.config(c)
	var errs []error
	for _, f := range v.faults {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// validator collects faults with their places.
type validator struct {
	at     *strictyaml.Positions
	faults strictyaml.Faults
}

// newTo leaves out what stands where decoding failed already: a value that could
// not be read is no second fault.
func (v *validator) newTo(err error) strictyaml.Faults {
	var decoding, out strictyaml.Faults
	errors.As(err, &decoding)
	for _, f := range v.faults {
		if !slices.ContainsFunc(decoding, func(d strictyaml.Fault) bool { return d.Position == f.Position }) {
			out = append(out, f)
		}
	}
	return out
}

func (v *validator) must(ok bool, at, format string, args ...any) {
	if ok {
		return
	}
	if v.at == nil {
		v.faults = append(v.faults, strictyaml.Fault{Err: fmt.Errorf(format, args...)})
		return
	}
	v.faults = append(v.faults, v.at.Faultf(at, format, args...))
}

func (v *validator) config(c *Config) {
	v.intake(&c.Intake)
	v.export(&c.Export)
	v.storage(&c.Storage)
	if c.Kafka != nil {
		v.kafka(c.Kafka)
	}
	v.alerting(&c.Alerting)
	v.labels(c.Labels)
	for i := range c.Queries {
		v.query(&c.Queries[i], strictyaml.Path("queries", i))
	}
}

// minQueue is the smallest queue that a whole step of any source fits in.
const minQueue = 1024

func (v *validator) intake(c *IntakeConfig) {
	v.must(c.QueueEvents >= minQueue, "intake.queue_events", "queue_events (%d) must be at least %d, the largest step of a source", c.QueueEvents, minQueue)
	v.must(c.RulesQueue >= minQueue, "intake.rules_queue", "rules_queue (%d) must be at least %d, the largest step of a source", c.RulesQueue, minQueue)
	for _, n := range []struct {
		key string
		is  int64
	}{
		{"queries", int64(c.Queries)},
		{"max_body", int64(c.MaxBodyBytes)},
		{"max_decoded", int64(c.MaxDecodedBytes)},
		{"max_event", int64(c.MaxEventBytes)},
		{"keys_per_event", int64(c.KeysPerEvent)},
		{"operators_per_event", int64(c.OperatorsPerEvent)},
		{"sources_per_event", int64(c.SourcesPerEvent)},
		{"retire_ended", int64(c.RetireEnded)},
		{"retire_silent", int64(c.RetireSilent)},
		{"retire_troubled", int64(c.RetireTroubled)},
	} {
		v.must(n.is > 0, "intake."+n.key, "%s must be more than 0", n.key)
	}
	v.must(c.ShapeCacheBytes >= 0, "intake.shape_cache", "shape_cache must not be negative")
	v.must(c.MaxInFlightBytes > c.MaxDecodedBytes, "intake.max_in_flight", "max_in_flight (%d bytes) must exceed max_decoded (%d bytes)", c.MaxInFlightBytes, c.MaxDecodedBytes)
}

func (v *validator) export(c *ExportConfig) {
	for _, n := range []struct {
		key string
		is  int64
	}{
		{"series", int64(c.Series)},
		{"series_per_query", int64(c.SeriesPerQuery)},
		{"label_bytes", int64(c.LabelBytes)},
		{"gauge_staleness", int64(c.GaugeStaleness)},
	} {
		v.must(n.is > 0, "export."+n.key, "%s must be more than 0", n.key)
	}
	v.must(c.UnknownKeys >= 0, "export.unknown_keys", "unknown_keys (%d) must not be negative", c.UnknownKeys)
}

// storage keeps what is kept longer than a restart takes, and larger than a table of
// the database is.
func (v *validator) storage(c *StorageConfig) {
	v.must(c.MaxBytes >= 64<<20, "storage.max_bytes", "max_bytes must be at least 64MiB")
	v.must(c.RawFor.Std() >= time.Hour, "storage.raw_for", "raw_for (%s) must be at least 1h", c.RawFor.Std())
	v.must(c.HourlyFor >= c.RawFor, "storage.hourly_for", "hourly_for (%s) must be at least raw_for (%s)", c.HourlyFor.Std(), c.RawFor.Std())
	v.must(c.CacheBytes >= 1<<20, "storage.cache_bytes", "cache_bytes must be at least 1MiB")
}

func (v *validator) kafka(c *KafkaConfig) {
	v.must(len(c.Brokers) > 0, "kafka", "kafka must name its brokers")
	v.must(len(c.Topics) > 0, "kafka", "kafka must name its topics")
	v.must(c.Start == "earliest" || c.Start == "latest", "kafka.start", "start (%q) must be earliest or latest", c.Start)
	v.must(c.SessionTimeout >= 3*c.HeartbeatInterval, "kafka.session_timeout", "session_timeout (%s) must be at least three heartbeat_interval (%s)", c.SessionTimeout, c.HeartbeatInterval)
	v.must(c.WatchInterval > 0, "kafka.watch_interval", "watch_interval must be more than 0")
	v.tls(c.TLS, "kafka.tls")
	if c.SASL == nil {
		return
	}
	mechanisms := []string{"plain", "scram-sha-256", "scram-sha-512"}
	v.must(slices.Contains(mechanisms, c.SASL.Mechanism), "kafka.sasl.mechanism", "mechanism (%q) must be one of %s", c.SASL.Mechanism, strings.Join(mechanisms, ", "))
	v.must(c.SASL.Username != "", "kafka.sasl", "sasl must have a username")
	v.must((c.SASL.Password == "") != (c.SASL.PasswordFile == ""), "kafka.sasl", "sasl must have a password or a password_file, and not both")
}

func (v *validator) tls(c *TLSConfig, at string) {
	if c == nil {
		return
	}
	v.must((c.CertFile == "") == (c.KeyFile == ""), at, "tls must have both cert_file and key_file or neither")
	for _, f := range []struct{ key, file string }{{"ca_file", c.CAFile}, {"cert_file", c.CertFile}, {"key_file", c.KeyFile}} {
		if f.file == "" {
			continue
		}
		_, err := os.Stat(f.file)
		v.must(err == nil, at+"."+f.key, "%s: %v", f.key, err)
	}
}

func (v *validator) alerting(c *AlertingConfig) {
	v.must(c.ResendDelay > 0, "alerting.resend_delay", "resend_delay must be more than 0")
	v.must(c.Timeout > 0, "alerting.timeout", "timeout must be more than 0")
	v.must(c.QueueAlerts > 0, "alerting.queue_alerts", "queue_alerts (%d) must be more than 0", c.QueueAlerts)
	v.must(c.HoldOlderThan >= 0, "alerting.hold_older_than", "hold_older_than must not be negative")
	if c.ExternalURL != "" {
		v.must(isHTTPURL(c.ExternalURL) == nil, "alerting.external_url", "external_url (%q) must be an http or https URL", c.ExternalURL)
	}
	seen := map[string]bool{}
	for i := range c.Alertmanagers {
		at := strictyaml.Path("alerting", "alertmanagers", i)
		am := &c.Alertmanagers[i]
		v.alertmanager(am, at)
		v.must(!seen[am.URL], at+".url", "url (%q) is listed twice", am.URL)
		seen[am.URL] = true
	}
}

func (v *validator) alertmanager(c *AlertmanagerConfig, at string) {
	err := isHTTPURL(c.URL)
	v.must(err == nil, at+".url", "url (%q) must be an http or https URL", c.URL)
	v.must(c.Resolve == "" || c.Resolve == "one" || c.Resolve == "all", at+".resolve", "resolve (%q) must be one or all", c.Resolve)
	v.must(c.BasicAuth == nil || c.CredentialsFile == "", at, "an alertmanager must have basic_auth or credentials_file, and not both")
	if c.BasicAuth != nil {
		v.must(c.BasicAuth.Username != "", at+".basic_auth", "basic_auth must have a username")
		v.must((c.BasicAuth.Password == "") != (c.BasicAuth.PasswordFile == ""), at+".basic_auth", "basic_auth must have a password or a password_file, and not both")
	}
	v.tls(c.TLS, at+".tls")
}

func isHTTPURL(s string) error {
	u, err := url.Parse(s)
	if err != nil {
		return err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("no http or https URL")
	}
	return nil
}

var (
	labelName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	placeNames = []string{"app.name", "app.id", "app.cluster"}
)

// taken are label names that the configuration may not set: Prometheus adds its
// own when it scrapes, and the rest tell series and alerts apart.
var taken = map[string]string{
	"cluster": "belongs to Prometheus; ours is spark_cluster", "job": "belongs to Prometheus", "instance": "belongs to Prometheus",
	"query_id": "is the query's own", "query_name": "is the query's own", "operator": "is the operator's own",
	"operator_index": "is the operator's own", "alertname": "is the alert's own", "severity": "is the alert's own",
	"symptom": "is the alert's own", "le": "is a histogram's own", "quantile": "is a summary's own",
	"phase": "is a family's own", "kind": "is a family's own", "state": "is a family's own", "result": "is a family's own",
	"op": "is a family's own", "origin": "is a family's own", "source_index": "is a family's own", "reason": "is a family's own",
}

func (v *validator) labelName(name, at string) {
	v.must(labelName.MatchString(name) && !strings.HasPrefix(name, "__"), at, "label %q is no valid label name", name)
	why, bad := taken[name]
	v.must(!bad, at, "label %q %s", name, why)
}

func (v *validator) labels(c map[string][]string) {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		at := strictyaml.Path("labels", name)
		v.labelName(name, at)
		v.must(len(c[name]) > 0, at, "label %q must name at least one place", name)
		for i, place := range c[name] {
			v.place(place, strictyaml.Path("labels", name, i))
		}
	}
}

func (v *validator) place(place, at string) {
	kind, rest, found := strings.Cut(place, ":")
	if found && rest != "" && (kind == "header" || kind == "query") {
		return
	}
	v.must(slices.Contains(placeNames, place), at, "place %q must be %s, header:NAME or query:NAME%s", place, strings.Join(placeNames, ", "), strictyaml.DidYouMean(place, placeNames))
}

func (v *validator) query(q *QueryOverride, at string) {
	v.must(q.Match != "", at, "a query override must have a match")
	if _, err := path.Match(q.Match, ""); err != nil {
		v.must(false, at+".match", "match (%q) is no valid pattern: %v", q.Match, err)
	}
	v.must(q.Trigger == "" || triggerKinds[q.Trigger] != 0, at+".trigger", "trigger (%q) must be one of %s%s", q.Trigger, strings.Join(triggerNames(), ", "), strictyaml.DidYouMean(q.Trigger, triggerNames()))
	v.must(q.Interval == 0 || q.Trigger == "interval" || q.Trigger == "", at+".interval", "interval goes with trigger: interval")
	for name := range q.Labels {
		v.labelName(name, at+".labels."+name)
	}
	_, both := q.Labels["owner"]
	v.must(q.Owner == "" || !both, at+".owner", "owner is set here and in labels")
	for _, n := range []struct {
		key string
		is  int64
	}{{"freshness", int64(q.Freshness)}, {"memory_limit", int64(q.MemoryLimit)}, {"disk_limit", int64(q.DiskLimit)}} {
		v.must(n.is >= 0, at+"."+n.key, "%s must not be negative", n.key)
	}
}

func triggerNames() []string {
	out := make([]string, 0, len(triggerKinds))
	for n := range triggerKinds {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}
