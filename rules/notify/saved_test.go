package notify

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stategauge/stategauge/rules"
)

var update = flag.Bool("update", false, "write golden files anew")

// again stops a daemon's notifier and starts the next one's from what was saved.
func again(t *testing.T, b *bench, o Options, down time.Duration) *bench {
	t.Helper()
	saved := b.Snapshot(nil)
	b.stop()
	pass(down)
	next := start(t, o)
	if err := next.Restore(saved); err != nil {
		t.Fatal(err)
	}
	pass(0)
	return next
}

func TestARestartIsNoSecondPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		o := Options{Targets: []Target{am.target("am")}}
		b := start(t, o)
		b.fire("slow")
		pass(30 * time.Second)
		first := am.last("slow")
		b = again(t, b, o, 20*time.Second)
		defer b.stop()
		now := am.last("slow")
		if diff := cmp.Diff(first.Labels, now.Labels); diff != "" || !now.StartsAt.Equal(first.StartsAt) {
			t.Errorf("another alert to an Alertmanager: started %v and %v %s", first.StartsAt, now.StartsAt, diff)
		}
		if want := time.Now().Add(4 * time.Minute); !now.EndsAt.Equal(want) {
			t.Errorf("the lease ends at %v, want %v", now.EndsAt, want)
		}
		b.fire("slow") // the rules find it still
		pass(5 * time.Minute)
		if b.ResolveUnconfirmed() != 0 || am.state("slow") != "firing" || len(am.lapsed) != 0 || !am.last("slow").StartsAt.Equal(first.StartsAt) {
			t.Errorf("it is %s since %v, lapsed %v", am.state("slow"), am.last("slow").StartsAt, am.lapsed)
		}
	})
}

// The rules hand in a resolve that they found while nothing was sent: it ends when it
// was found, and began when it was first told.
func TestWhatRecoveredWhileWeWereDownIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		o := Options{Targets: []Target{am.target("am")}}
		b := start(t, o)
		b.fire("recovered", "gone", "stays", "pending rule")
		pass(time.Second)
		began := am.last("recovered").StartsAt
		b = again(t, b, o, time.Hour)
		defer b.stop()
		b.resolve("recovered")
		b.fire("stays")
		b.Notify(context.Background(), alerts(rules.Pending, "pending rule"))
		if n := b.ResolveUnconfirmed(); n != 2 {
			t.Errorf("%d are unconfirmed, want gone and the one that is only pending", n)
		}
		pass(0)
		for name, want := range map[string]string{"recovered": "resolved", "gone": "resolved", "stays": "firing", "pending rule": "resolved"} {
			if p := am.last(name); am.state(name) != want || !p.StartsAt.Equal(began) {
				t.Errorf("%s is %s since %v, want %s since %v", name, am.state(name), p.StartsAt, want, began)
			}
		}
		if why := am.last("gone").Annotations["resolved_because"]; !strings.Contains(why, "restart") {
			t.Errorf("resolved because %q", why)
		}
		if n := b.ResolveUnconfirmed(); n != 0 {
			t.Errorf("%d are ended a second time", n)
		}
	})
}

func TestAResolveThatWasNotDeliveredIsSentAfterTheRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		o := Options{Targets: []Target{am.target("am")}}
		b := start(t, o)
		b.fire("slow", "long ago")
		pass(time.Second)
		b.resolve("long ago")
		pass(14 * time.Minute)
		deaf := true
		am.set(func() {
			am.answer = func(int, []posted) reply {
				if deaf {
					return reply{err: errRefused}
				}
				return reply{}
			}
		})
		b.resolve("slow")
		ended := time.Now()
		pass(0)
		saved := b.Snapshot(nil)
		b.stop()
		am.set(func() { deaf = false })
		pass(2 * time.Minute)
		n := len(am.got())
		b = start(t, o)
		defer b.stop()
		if err := b.Restore(saved); err != nil {
			t.Fatal(err)
		}
		pass(0)
		if p := am.last("slow"); am.state("slow") != "resolved" || !p.EndsAt.Equal(ended) {
			t.Errorf("slow is %s, ended %v, want %v", am.state("slow"), p.EndsAt, ended)
		}
		for _, r := range am.got()[n:] {
			for _, p := range r.alerts {
				if p.Labels["alertname"] == "long ago" {
					t.Error("a resolve is sent beyond its retention")
				}
			}
		}
	})
}

func TestWhatTheRulesSaidBeforeTheRestoreCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		o := Options{Targets: []Target{am.target("am")}}
		b := start(t, o)
		b.fire("slow")
		pass(time.Second)
		saved := b.Snapshot(nil)
		b.stop()
		b = start(t, o)
		defer b.stop()
		b.resolve("slow")
		if err := b.Restore(saved); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if am.state("slow") != "resolved" {
			t.Errorf("an older state won: %s", am.state("slow"))
		}
	})
}

func TestAnAlertThatMovedIsLetGoWithoutAResolve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		o := Options{Targets: []Target{am.target("am")}}
		b := start(t, o)
		defer b.stop()
		b.fire("moved", "stays", "over")
		pass(time.Second)
		b.resolve("over")
		b.LetGo(func(label func(string) string) bool {
			return label("alertname") == "moved" || label("alertname") == "over"
		})
		pass(0)
		n := len(am.got())
		pass(3*time.Minute + 30*time.Second)
		for _, r := range am.got()[n:] {
			for _, p := range r.alerts {
				if p.Labels["alertname"] == "moved" {
					t.Error("it is still sent")
				}
			}
		}
		if am.state("moved") != "firing" || am.state("stays") != "firing" || am.state("over") != "resolved" {
			t.Errorf("moved %s, stays %s, over %s", am.state("moved"), am.state("stays"), am.state("over"))
		}
		if strings.Contains(string(b.Snapshot(nil)), "moved") {
			t.Error("it is saved")
		}
		if got := b.metric(t, "stategauge_notifications_queue_alerts"); got != 0 {
			t.Errorf("%v wait", got)
		}
		if got := b.metric(t, "stategauge_notifications_dropped_total"); got != 0 {
			t.Errorf("%v counted as dropped", got)
		}
		b.fire("moved") // it came back
		pass(0)
		if am.state("moved") != "firing" {
			t.Errorf("it came back and is %s", am.state("moved"))
		}
	})
}

// The old owner lets go, the new one takes over: one alert to the Alertmanager, never
// resolved in between, though their clocks differ.
func TestATakeOverIsOneAlertFromBothDaemons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		began := time.Now().Add(-10 * time.Minute)
		o := Options{
			Targets: []Target{am.target("am")}, ExternalLabels: rules.Labels{{Name: "region", Value: "north"}},
			StartedAt: func(a *rules.Alert) time.Time { return began },
		}
		old := start(t, o)
		defer old.stop()
		old.fire("slow")
		pass(90 * time.Second)
		first := am.last("slow")
		old.LetGo(func(func(string) string) bool { return true })
		ahead := o
		ahead.Now = func() time.Time { return time.Now().Add(40 * time.Second) }
		heir := start(t, ahead)
		defer heir.stop()
		pass(2 * time.Minute) // until it has read the past
		heir.fire("slow")
		pass(10 * time.Minute)
		second := am.last("slow")
		if diff := cmp.Diff(first.Labels, second.Labels); diff != "" || !first.StartsAt.Equal(second.StartsAt) || len(am.lapsed) != 0 {
			t.Errorf("started %v and %v, lapsed %v %s", first.StartsAt, second.StartsAt, am.lapsed, diff)
		}
		for _, r := range am.got() {
			for _, p := range r.alerts {
				if !p.EndsAt.After(r.at) {
					t.Errorf("resolved at %v", r.at)
				}
			}
		}
	})
}

func TestAClockSetBackLetsNothingBeginOrEndInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		back := time.Duration(0)
		o := Options{Targets: []Target{am.target("am")}, Now: func() time.Time { return time.Now().Add(-back) }}
		b := start(t, o)
		defer b.stop()
		b.fire("slow", "over")
		pass(time.Second)
		b.resolve("over")
		pass(time.Second)
		saved := b.Snapshot(nil)
		b.stop()
		back = time.Hour
		b = start(t, o)
		defer b.stop()
		if err := b.Restore(saved); err != nil {
			t.Fatal(err)
		}
		pass(0)
		now := o.Now()
		for _, name := range []string{"slow", "over"} {
			p := am.last(name)
			if p.StartsAt.After(now) || !p.EndsAt.After(p.StartsAt) || name == "over" && p.EndsAt.After(now) {
				t.Errorf("%s is said to last from %v to %v, and it is %v", name, p.StartsAt, p.EndsAt, now)
			}
		}
	})
}

// The real Alertmanager sends a second page for a second alert: it must not see one.
func TestRealAlertmanagerTellsItsReceiverOnceAcrossARestart(t *testing.T) {
	am := startReal(t)
	const name = "CommitSyncLatencyRising"
	o := Options{Targets: []Target{{URL: am.url}}, Tick: 5 * time.Second, ResendDelay: 200 * time.Millisecond}
	b := start(t, o)
	b.fire(name)
	began := am.awaitWebhook(t, "firing").Alerts[0].StartsAt
	for range 3 {
		saved := b.Snapshot(nil)
		b.stop()
		b = start(t, o)
		if err := b.Restore(saved); err != nil {
			t.Fatal(err)
		}
		until(t, "sent again", func() bool { return b.metric(t, "stategauge_notifications_sent_total") >= 2 })
	}
	defer b.stop()
	b.resolve(name)
	w := am.awaitWebhook(t, "resolved") // a second "firing" before it is an error
	if s := w.Alerts[0].StartsAt; !s.Equal(began) {
		t.Errorf("it began at %v first, at %v in the end", began, s)
	}
}

func TestDamagedSnapshotOfNotificationsIsRefused(t *testing.T) {
	n := newNotifier(t, Options{})
	a := alert("slow", rules.Firing)
	n.Notify(context.Background(), []rules.Alert{a})
	saved := n.Snapshot([]byte("before"))[len("before"):]
	flipped, future := slices.Clone(saved), slices.Clone(saved)
	flipped[30] ^= 1
	future[len(savedMagic)] = 7
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"empty": {nil, "cut off"}, "other": {[]byte(strings.Repeat("x", 40)), "not a snapshot"}, "newer": {future, "version 7"},
		"flipped": {flipped, "checksum"}, "cut": {saved[:len(saved)-9], "checksum"},
	} {
		m := newNotifier(t, Options{})
		if err := m.Restore(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
		if m.book.len() != 0 {
			t.Errorf("%s: %d alerts", name, m.book.len())
		}
	}
	m := newNotifier(t, Options{})
	if err := m.Restore(saved); err != nil || m.book.len() != 1 {
		t.Errorf("%v, %d alerts", err, m.book.len())
	}
}

func TestTheWatchdogIsNotSaved(t *testing.T) {
	n := newNotifier(t, Options{Until: func(a *rules.Alert) time.Time {
		if a.Labels.Get("alertname") == "Watchdog" {
			return time.Now().Add(time.Minute)
		}
		return time.Time{}
	}})
	n.Notify(context.Background(), alerts(rules.Firing, "Watchdog", "slow"))
	if s := string(n.Snapshot(nil)); strings.Contains(s, "Watchdog") || !strings.Contains(s, "slow") {
		t.Error(s)
	}
}

// A limit that was lowered holds for what is restored.
func TestRestoredAlertsKeepToTheLimit(t *testing.T) {
	n, m := newNotifier(t, Options{}), newNotifier(t, Options{QueueAlerts: 3})
	n.Notify(context.Background(), alerts(rules.Firing, numbered(20)...))
	if err := m.Restore(n.Snapshot(nil)); err != nil || m.book.len() != 3 {
		t.Errorf("%v, %d alerts", err, m.book.len())
	}
}

// savedAt is a notifier with a firing and a resolved alert at a fixed time.
func savedAt(t *testing.T, at time.Time) []byte {
	now := at
	n := newNotifier(t, Options{Now: func() time.Time { return now }, GeneratorURL: func(*rules.Alert) string { return "http://me/?query=q" }})
	n.Notify(context.Background(), alerts(rules.Firing, "slow", "over"))
	now = now.Add(90 * time.Second)
	n.Notify(context.Background(), alerts(rules.Resolved, "over"))
	return n.Snapshot(nil)
}

func TestTheWrittenFormOfNotificationsChangesOnlyWithItsVersion(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	got := hex.EncodeToString(savedAt(t, at)) + "\n"
	path := filepath.Join("testdata", "saved-v1.hex")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Error("the form is another one: give it a new version and keep reading the old one")
	}
}

// Two daemons that see the same alerts post the same bytes, whatever the order in
// which labels were put together.
func TestTwoDaemonsPostTheSameBytes(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := rules.Alert{
		Labels: rules.Labels{
			{Name: "alertname", Value: "CommitSyncLatencyRising"},
			{Name: "query_id", Value: "5b1f9e0c"},
			{Name: "query_name", Value: "Bestellungen"},
			{Name: "severity", Value: "page"},
			{Name: "spark_cluster", Value: "blue"},
			{Name: "symptom", Value: "commit-sync-rising"},
		},
		Annotations: rules.Labels{{Name: "summary", Value: "Commits take longer"}, {Name: "cause", Value: "uploads"}},
		State:       rules.Firing, FiringAtMs: at.Add(-time.Hour).UnixMilli(),
	}
	b := a
	b.Labels, b.Annotations = slices.Clone(a.Labels), slices.Clone(a.Annotations)
	slices.Reverse(b.Labels)
	slices.Reverse(b.Annotations)
	post := func(a *rules.Alert, zone *time.Location, seenAfter time.Duration) string {
		n, err := New(Options{
			ExternalLabels: rules.Labels{{Name: "region", Value: "north"}, {Name: "severity", Value: "outer"}},
			StartedAt:      func(a *rules.Alert) time.Time { return time.UnixMilli(a.FiringAtMs).In(zone) },
		}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		body, err := payload([]*record{n.file(a, at.Add(seenAfter))}, at.Add(time.Minute), at.Add(4*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	one, two := post(&a, time.UTC, 0), post(&b, time.FixedZone("east", 7200), 40*time.Second)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
	want := `[{"labels":{"alertname":"CommitSyncLatencyRising","query_id":"5b1f9e0c","query_name":"Bestellungen","region":"north",` +
		`"severity":"page","spark_cluster":"blue","symptom":"commit-sync-rising"},"annotations":{"cause":"uploads","summary":"Commits take longer"},` +
		`"startsAt":"2026-03-01T11:00:00Z","endsAt":"2026-03-01T12:04:00Z"}]`
	if diff := cmp.Diff(want, one); diff != "" {
		t.Error(diff)
	}
}

func FuzzRestoreNotifications(f *testing.F) {
	n, err := New(Options{}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	n.Notify(context.Background(), alerts(rules.Firing, "a", "b"))
	saved := n.Snapshot(nil)
	f.Add(saved[len(savedMagic)+1 : len(saved)-4])
	f.Add([]byte(`[{"labels":{"9 ":"\u00ff","":"x"},"starts_at":"9999-12-31T23:59:59-23:00"},null]`))
	f.Add([]byte(`[{"labels":{"a":"b"},"starts_at":"0000-01-01T00:00:00+23:00","resolved_at":"9999-12-31T23:59:59-23:00"}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := New(Options{QueueAlerts: 5}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if n.Restore(sealed(body)) != nil {
			return
		}
		if n.book.len() > 5 {
			t.Fatalf("%d alerts", n.book.len())
		}
		now := time.Now()
		if _, err := payload(n.book.records(), now, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n.ResolveUnconfirmed()
		if err := n.Restore(n.Snapshot(nil)); err != nil {
			t.Fatal(err)
		}
	})
}

// sealed makes a snapshot of a body.
func sealed(body []byte) []byte {
	b := append(append([]byte(savedMagic), savedVersion), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}
