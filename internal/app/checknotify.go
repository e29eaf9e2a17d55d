package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/notify"
)

// NotifyCheck is a test of the delivery.
type NotifyCheck struct {
	ConfigFile string
	Severity   string        // of the test alert, which Alertmanagers route by
	Hold       time.Duration // how long it fires before it is resolved
}

// errDelivery says that a page would not get through; the check has said where.
var errDelivery = errors.New("a page would not get through everywhere")

// CheckNotify sends a test alert, and its end, through every Alertmanager of a
// configuration and writes a line for each. It fails where a page would not get
// through one of them, and where there is none.
func CheckNotify(ctx context.Context, c NotifyCheck, w io.Writer) error {
	conf, err := LoadConfig(c.ConfigFile)
	if err != nil {
		return err
	}
	if len(conf.Alerting.Alertmanagers) == 0 {
		return fmt.Errorf("%s names no Alertmanager: alerting.alertmanagers is empty", c.ConfigFile)
	}
	// The lease outlasts the hold, since nothing is sent again meanwhile.
	n, err := notify.New(notify.Options{
		Targets: targets(&conf), Timeout: conf.Alerting.Timeout.Std(), ResendDelay: max(c.Hold, conf.Alerting.ResendDelay.Std()),
	}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	ok := true
	for _, p := range n.Probe(ctx, testLabels(c.Severity), testAnnotations(), c.Hold) {
		ok = ok && p.OK()
		if _, err := fmt.Fprintf(w, "%s: %s\n", p.Name, probedText(&p)); err != nil {
			return err
		}
	}
	if !ok {
		return errDelivery
	}
	return nil
}

func testLabels(severity string) rules.Labels {
	return rules.Labels{{Name: "alertname", Value: "StategaugeTest"}, {Name: "severity", Value: severity}, {Name: "symptom", Value: "test"}}
}

func testAnnotations() rules.Labels {
	return rules.Labels{{Name: "summary", Value: "A test of the delivery, started by hand with stategauge check notify. Nothing is wrong."}}
}

// probedText is what came of the test in words.
func probedText(p *notify.Probed) string {
	if p.Fired != nil {
		return "FAILED: " + p.Fired.Error()
	}
	parts := []string{fmt.Sprintf("took the alert in %s", p.Took.Round(time.Millisecond))}
	switch {
	case p.Unlisted != nil:
		parts = append(parts, "does not say what it holds ("+p.Unlisted.Error()+")")
	case !p.Listed:
		parts = append(parts, "FAILED: does not hold it, as if it had ended before it came")
	case p.Silenced:
		parts = append(parts, "holds it, silenced or inhibited: nobody is told")
	case len(p.Receivers) > 0:
		parts = append(parts, "holds it for "+strings.Join(p.Receivers, ", "))
	}
	if p.Resolved != nil {
		parts = append(parts, "FAILED to take its end: "+p.Resolved.Error())
	} else {
		parts = append(parts, "took its end")
	}
	if skew := p.Skew.Round(time.Second); skew.Abs() >= 30*time.Second {
		ahead := "ahead of"
		if skew < 0 {
			ahead = "behind"
		}
		parts = append(parts, fmt.Sprintf("its clock is %s %s ours", skew.Abs(), ahead))
	}
	return strings.Join(parts, "; ")
}
