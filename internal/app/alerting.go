package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	promconfig "github.com/prometheus/common/config"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/notify"
)

// notifierSlot holds the delivery to the Alertmanagers, which a reload may
// replace.
type notifierSlot struct {
	mu      sync.Mutex
	n       *notify.Notifier // nil: no Alertmanager is configured
	running *runningPart
}

func (s *notifierSlot) start(a *App) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		return
	}
	s.running = runPart(s.n.Run, func(err error) { a.fail(fmt.Errorf("notifier: %w", err)) })
}

func (s *notifierSlot) stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.running
	s.running = nil
	return p.stop(ctx)
}

func (s *notifierSlot) replace(ctx context.Context, a *App, n *notify.Notifier) error {
	err := s.stop(ctx)
	s.mu.Lock()
	s.n = n
	s.mu.Unlock()
	s.start(a)
	return err
}

// notify hands alerts to the delivery. Pending ones, and those of muted queries,
// concern nobody yet. It never blocks.
func (a *App) notify(alerts []rules.Alert) {
	a.notifier.mu.Lock()
	n := a.notifier.n
	a.notifier.mu.Unlock()
	if n == nil {
		return
	}
	o, now := a.overrides.Load(), a.opts.Now()
	out := make([]rules.Alert, 0, len(alerts))
	for i := range alerts {
		if alerts[i].State == rules.Pending || o.muted(queryOfAlert(&alerts[i]), now) {
			continue
		}
		out = append(out, alerts[i])
	}
	if len(out) > 0 {
		n.Notify(a.ctx, a.decorate(out))
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

func (a *App) newNotifier(c *Config) (*notify.Notifier, error) {
	if len(c.Alerting.Alertmanagers) == 0 {
		return nil, nil
	}
	link := generatorURL(c.Alerting.ExternalURL)
	o := notify.Options{
		ResendDelay: c.Alerting.ResendDelay.Std(), Tick: a.opts.JudgeEvery, QueueAlerts: c.Alerting.QueueAlerts,
		Timeout: c.Alerting.Timeout.Std(), Drain: a.opts.StopDeadline / 4, Now: a.opts.Now,
		GeneratorURL: func(*rules.Alert) string { return link },
	}
	for i := range c.Alerting.Alertmanagers {
		o.Targets = append(o.Targets, targetOf(&c.Alerting.Alertmanagers[i]))
	}
	return notify.New(o, a.registry, a.log.With("part", "notifier"))
}

// generatorURL is the page that an alert links to.
func generatorURL(external string) string {
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
