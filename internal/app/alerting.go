package app

import (
	"net/url"
	"slices"
	"strings"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/notify"
)

// deliver hands alerts that changed their state to the delivery. It never blocks.
func (a *App) deliver(alerts []rules.Alert) {
	a.send(a.delivery.changed(a.decorate(alerts), a.overrides.Load(), a.opts.Now()))
}

// deliverAll hands every live alert to the delivery, which brings the Alertmanagers
// in line with them. alerts come back as they were sent: with all labels.
func (a *App) deliverAll(alerts []rules.Alert) {
	alerts, now := a.decorate(alerts), a.opts.Now()
	if a.config.Load().Alerting.Watchdog {
		alerts = append(slices.Clip(alerts), watchdog(now))
	}
	a.send(a.delivery.all(alerts, a.overrides.Load(), now))
}

// watchdog is the alert that always fires. It is no rule, so that neither a backtest
// nor a count of alerts has to leave it out.
func watchdog(now time.Time) rules.Alert {
	ms := now.UnixMilli()
	return rules.Alert{
		Labels: rules.Labels{{Name: "alertname", Value: watchdogName}, {Name: "severity", Value: "none"}, {Name: "symptom", Value: "watchdog"}},
		Annotations: rules.Labels{
			{Name: "description", Value: "Route it to something that raises the alarm when it stops coming. Alone it is no reason to do anything."},
			{Name: "summary", Value: "stategauge judges, and its alerts get through. This alert always fires."},
		},
		State: rules.Firing, PendingAtMs: ms, FiringAtMs: ms, ResolvedAtMs: event.Absent, AsOfMs: ms,
		FirstBatch: -1, FiringBatch: -1, LastBatch: -1, Value: 1,
	}
}

func (a *App) send(alerts []rules.Alert) {
	if len(alerts) > 0 {
		a.judge.told = true
		a.notifier.Notify(a.ctx, alerts)
	}
}

// confirm ends what Alertmanagers were told before a restart and nothing stands for
// any more: its rule is gone, or its query.
func (a *App) confirm() {
	if n := a.notifier.ResolveUnconfirmed(); n > 0 {
		a.log.Info("alerts of before the restart are over", "alerts", n)
	}
}

// letAlertsGo forgets that a query's alerts were told: another process tells of them
// from now on. It runs on the judging goroutine.
func (a *App) letAlertsGo(id event.QueryID) {
	a.delivery.forget(id)
	a.judge.told = true
	a.notifier.LetGo(func(label func(string) string) bool { return label("query_id") == string(id) })
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

// withLabels returns l with the extra labels; what l says counts.
func withLabels(l rules.Labels, extra map[string]string) rules.Labels {
	out := slices.Clone(l)
	for name, value := range extra {
		if value != "" && l.Get(name) == "" {
			out = append(out, rules.Label{Name: name, Value: value})
		}
	}
	slices.SortFunc(out, byName)
	return out
}

// newNotifier builds the delivery. Without an Alertmanager it keeps what fires for
// those that a reload may bring.
func (a *App) newNotifier(c *Config) (*notify.Notifier, error) {
	o := notify.Options{
		ResendDelay: c.Alerting.ResendDelay.Std(), Tick: a.opts.JudgeEvery, QueueAlerts: c.Alerting.QueueAlerts,
		Timeout: c.Alerting.Timeout.Std(), Drain: a.opts.StopDeadline / 4, Now: a.opts.Now,
		GeneratorURL: a.generatorURL, Targets: targets(c), Until: a.lapses,
	}
	return notify.New(o, a.registry, a.log.With("part", "notifier"))
}

// lapses lets the watchdog end with the judging that hands it in: it has to say that
// rules are judged, and not only that something sends.
func (a *App) lapses(al *rules.Alert) time.Time {
	if al.Labels.Get("alertname") != watchdogName {
		return time.Time{}
	}
	return a.opts.Now().Add(4 * a.opts.JudgeEvery)
}

const watchdogName = "Watchdog"

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
func (a *App) generatorURL(al *rules.Alert) string {
	external := a.config.Load().Alerting.ExternalURL
	if external == "" {
		return ""
	}
	link := strings.TrimRight(external, "/") + "/"
	if id := al.Labels.Get("query_id"); id != "" {
		link += "?" + url.Values{"query": {id}}.Encode()
	}
	return link
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
