package app

import (
	"context"
	"fmt"

	"github.com/stategauge/stategauge/rules"
)

// Reload reads the configuration and the rules again and puts them in force, all
// or nothing: with any fault in them the old ones stay. Rules that did not change
// keep their windows and their pending and firing alerts. What is fixed while the
// daemon runs (listen addresses, queue sizes, limits of intake and export) is left
// as it was and named in the log.
func (a *App) Reload() error {
	a.reload.Lock()
	defer a.reload.Unlock()
	err := a.tryReload()
	if err != nil {
		a.metrics.reloadOK.Set(0)
		return err
	}
	a.loaded()
	a.log.Info("configuration reloaded", "file", a.opts.ConfigFile)
	return nil
}

// loaded notes that the configuration in force was loaded now.
func (a *App) loaded() {
	a.metrics.reloadOK.Set(1)
	a.metrics.reloadTime.Set(float64(a.opts.Now().Unix()))
}

func (a *App) tryReload() error {
	conf, err := LoadConfig(a.opts.ConfigFile)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	pack, err := LoadRules(a.opts.RuleFiles)
	if err != nil {
		return fmt.Errorf("rules: %w", err)
	}
	old := a.config.Load()
	next, err := a.prepare(old, &conf)
	if err != nil {
		return err
	}
	if err := a.reloadTargets(old, &conf); err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	a.config.Store(&conf)
	a.overrides.Store(&overrides{conf.Queries})
	a.lookbackMs.Store(pack.Lookback().Milliseconds())
	a.learnMeasures(pack)
	a.judge.ask(func() {
		a.delivery.holdOlderThan = conf.Alerting.HoldOlderThan.Std()
		a.judge.reload(pack)
	})
	a.ask(func(s *shard) { s.tracker.Reconfigure(a.overrides.Load().trigger) })
	next.put(a)
	a.warnFixed(old, &conf)
	return nil
}

// reloadTargets exchanges the Alertmanagers, all or none. Their credentials may
// stand in files, so unchanged text is no reason to leave them.
func (a *App) reloadTargets(old, conf *Config) error {
	if len(old.Alerting.Alertmanagers)+len(conf.Alerting.Alertmanagers) == 0 {
		return nil
	}
	return a.notifier.Reload(targets(conf))
}

// warnFixed names what changed and waits for the next start.
func (a *App) warnFixed(old, conf *Config) {
	was, is := old.Alerting, conf.Alerting
	was.Alertmanagers, was.ExternalURL = is.Alertmanagers, is.ExternalURL
	was.HoldOlderThan, was.Watchdog = is.HoldOlderThan, is.Watchdog
	for _, section := range []struct {
		name string
		same bool
	}{
		{"intake", sameConfig(old.Intake, conf.Intake)},
		{"export", sameConfig(old.Export, conf.Export)},
		{"alerting", sameConfig(was, is)},
		{"storage", sameConfig(old.Storage, conf.Storage)},
	} {
		if !section.same {
			a.log.Warn("changed settings take effect at the next start", "section", section.name)
		}
	}
}

// prepared are the parts that a reload exchanges, built before anything is
// touched.
type prepared struct {
	kafka func(ctx context.Context) error
	http  func()
}

func (a *App) prepare(old, conf *Config) (*prepared, error) {
	p := &prepared{}
	relabelled := !sameConfig(old.Labels, conf.Labels)
	if relabelled {
		h, err := a.newHTTP(conf)
		if err != nil {
			return nil, err
		}
		p.http = func() { a.http.Store(h) }
	}
	if relabelled || !sameConfig(old.Kafka, conf.Kafka) {
		s, err := a.newKafka(conf)
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		p.kafka = func(ctx context.Context) error { return a.kafka.replace(ctx, a, s) }
	}
	return p, nil
}

// put exchanges the parts. A part that is slow to stop is left to its fate: the
// new one works already.
func (p *prepared) put(a *App) {
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.StopDeadline)
	defer cancel()
	if p.http != nil {
		p.http()
	}
	if p.kafka != nil {
		if err := p.kafka(ctx); err != nil {
			a.log.Warn("the old kafka source did not stop in time", "err", err)
		}
	}
}

// LoadRules reads rule files, or the embedded pack where none is named. The error
// names every fault with its place.
func LoadRules(files []string) (*rules.Pack, error) {
	in, err := RuleSources(files)
	if err != nil {
		return nil, err
	}
	return rules.Load(in...)
}

// CheckRules reports every fault of rule files that are used together, or returns
// how many rules each of them holds. A file without rules is a fault.
func CheckRules(files []string) ([]int, error) {
	pack, err := LoadRules(files)
	if err != nil {
		return nil, err
	}
	out := make([]int, len(files))
	for i, f := range files {
		if out[i] = pack.RulesOf(f); out[i] == 0 {
			return nil, fmt.Errorf("%s: holds no rule", f)
		}
	}
	return out, nil
}
