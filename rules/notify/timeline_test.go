package notify

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// timeline writes down what happens, with the seconds since it began.
type timeline struct {
	began time.Time
	lines []string
}

func (l *timeline) note(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf("%5.1fs  ", time.Since(l.began).Seconds())+fmt.Sprintf(format, args...))
}

// TestTheLifeOfOneAlertThroughAnAlertmanagerThatIsRestarted shows with -v what a
// person is told, and what not, while an Alertmanager comes and goes.
func TestTheLifeOfOneAlertThroughAnAlertmanagerThatIsRestarted(t *testing.T) {
	am := startReal(t)
	const name = "CommitSyncLatencyRising"
	b := start(t, Options{
		Targets: []Target{{URL: am.url}}, Tick: 5 * time.Second, ResendDelay: 300 * time.Millisecond,
		RetryMin: 100 * time.Millisecond, RetryMax: 300 * time.Millisecond,
	})
	defer b.stop()
	l := &timeline{began: time.Now()}
	count := func(family string) int { return int(b.metric(t, family)) }

	b.fire(name)
	l.note("the daemon: %s fires, lease of 20s", name)
	w := am.awaitWebhook(t, "firing")
	started := w.Alerts[0].StartsAt
	l.note("the receiver is told: firing")

	until(t, "resent", func() bool { return count("stategauge_notifications_sent_total") >= 4 })
	l.note("the daemon has sent it %d times; the receiver was told once", count("stategauge_notifications_sent_total"))

	am.stop()
	l.note("the Alertmanager is stopped")
	until(t, "failing", func() bool { return count("stategauge_notifications_failed_total") >= 2 })
	l.note("the daemon: %d requests failed, it goes on trying", count("stategauge_notifications_failed_total"))
	am.launch(t)
	l.note("the Alertmanager is back, and knows of no alert")
	until(t, "active again", func() bool { return am.active(t, name) })
	l.note("the daemon has told it again: active")

	am.stop()
	l.note("the Alertmanager is stopped again")
	resolved := time.Now()
	b.resolve(name)
	l.note("the daemon: %s is over, and nobody is there to hear it", name)
	failed := count("stategauge_notifications_failed_total")
	until(t, "failing", func() bool { return count("stategauge_notifications_failed_total") > failed })
	am.launch(t)
	l.note("the Alertmanager is back")
	w = am.awaitWebhook(t, "resolved") // a second "firing" before it is an error
	l.note("the receiver is told: resolved, as of %.1fs", w.Alerts[0].EndsAt.Sub(l.began).Seconds())
	t.Log("\n" + strings.Join(l.lines, "\n"))

	if e := w.Alerts[0].EndsAt; e.Sub(resolved).Abs() > time.Second {
		t.Errorf("ended at %v, and is said to have ended at %v", resolved, e)
	}
	if s := w.Alerts[0].StartsAt; !s.Equal(started) {
		t.Errorf("started at %v first, at %v in the end", started, s)
	}
	if got := b.metric(t, "stategauge_notifications_dropped_total"); got != 0 {
		t.Errorf("%v given up", got)
	}
}
