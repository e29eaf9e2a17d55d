package app

import (
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/notify"
)

// notify hands alerts to the delivery. Pending ones, those that the alert of their
// cause speaks for, and those of muted queries concern nobody. It never blocks.
func (a *App) notify(alerts []rules.Alert) {
	o, now := a.overrides.Load(), a.opts.Now()
	out := make([]rules.Alert, 0, len(alerts))
	for i := range alerts {
		if alerts[i].State == rules.Pending || alerts[i].InhibitedBy != "" || o.muted(queryOfAlert(&alerts[i]), now) {
			continue
		}
		out = append(out, alerts[i])
	}
	if len(out) > 0 {
		a.notifier.Notify(a.ctx, a.decorate(out))
	}
}

// decorate adds the labels that the configuration has for the alerts' queries. The
// alerts are changed in place, their label slices are not.
func (a *App) decorate(alerts []rules.Alert) []rules.Alert {
	o := a.overrides.Load()
	for i := range alerts {
		extra := o.labels(queryOfAlert(&alerts[i]))
		if len(extra) == 0 {
			continue
		}
		alerts[i].Labels = withLabels(alerts[i].Labels, extra)
	}
	return alerts
}

func queryOfAlert(al *rules.Alert) event.QueryRef {
	return event.QueryRef{
		ID: event.QueryID(al.Labels.Get("query_id")), Name: al.Labels.Get("query_name"),
		Application: al.Labels.Get("application"),
	}
}

// withLabels returns l with the extra labels; what l says counts.
func withLabels(l rules.Labels, extra map[string]string) rules.Labels {
	out := slices.Clone(l)
	for name, value := range extra {
		if value != "" && l.Get(name) == "" {
			out = append(out, rules.Label{Name: name, Value: value})
		}
	}
	slices.SortFunc(out, func(a, b rules.Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// newNotifier builds the delivery. Without an Alertmanager it keeps what fires for
// those that a reload may bring.
func (a *App) newNotifier(c *Config) (*notify.Notifier, error) {
	o := notify.Options{
		ResendDelay: c.Alerting.ResendDelay.Std(), Tick: a.opts.JudgeEvery, QueueAlerts: c.Alerting.QueueAlerts,
		Timeout: c.Alerting.Timeout.Std(), Drain: a.opts.StopDeadline / 4, Now: a.opts.Now,
		GeneratorURL: a.generatorURL, Targets: targets(c),
	}
	return notify.New(o, a.registry, a.log.With("part", "notifier"))
}

// targets are the Alertmanagers of a configuration.
func targets(c *Config) []notify.Target {
	var out []notify.Target
	for i := range c.Alerting.Alertmanagers {
		out = append(out, targetOf(&c.Alerting.Alertmanagers[i]))
	}
	return out
}

// generatorURL is the page that an alert links to, empty where the configuration
// does not say how people reach this daemon.
func (a *App) generatorURL(*rules.Alert) string {
	external := a.config.Load().Alerting.ExternalURL
	if external == "" {
		return ""
	}
	return strings.TrimRight(external, "/") + "/api/v1/rules"
}

func targetOf(c *AlertmanagerConfig) notify.Target {
	p := promconfig.HTTPClientConfig{FollowRedirects: true, EnableHTTP2: true}
	if c.TLS != nil {
		p.TLSConfig = *c.TLS.prom()
	}
	if c.BasicAuth != nil {
		p.BasicAuth = &promconfig.BasicAuth{
			Username: c.BasicAuth.Username, Password: promconfig.Secret(c.BasicAuth.Password), PasswordFile: c.BasicAuth.PasswordFile,
		}
	}
	if c.CredentialsFile != "" {
		p.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: c.CredentialsFile}
	}
	return notify.Target{URL: c.URL, ResolveAll: c.Resolve == "all", NewClient: notify.ClientFrom(p)}
}
