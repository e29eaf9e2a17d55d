package notify

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// pass lets fake time pass and the loops settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestFiringAlertIsSentAtOnceWithItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		pass(time.Hour)
		began := time.Now()
		b.fire("slow")
		pass(0)
		p := am.last("slow")
		if !p.StartsAt.Equal(began) || !p.EndsAt.Equal(began.Add(4*time.Minute)) {
			t.Errorf("from %v to %v, now is %v", p.StartsAt, p.EndsAt, began)
		}
		if p.Labels["severity"] != "ticket" || p.Annotations["summary"] != "slow rises" {
			t.Errorf("%+v", p)
		}
	})
}

func TestLeaseIsFourTimesTheLongerOfTickAndResend(t *testing.T) {
	for _, c := range []struct{ tick, resend, want time.Duration }{
		{0, 0, 4 * time.Minute},
		{2 * time.Minute, time.Minute, 8 * time.Minute},
		{time.Second, 5 * time.Minute, 20 * time.Minute},
	} {
		o := Options{Tick: c.tick, ResendDelay: c.resend}.withDefaults()
		if got := o.lease(); got != c.want {
			t.Errorf("tick %v, resend %v: lease %v", c.tick, c.resend, got)
		}
	}
}

func TestFiringAlertIsSentAgainEachResendDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(10*time.Minute + time.Second)
		if got := len(am.got()); got != 11 {
			t.Errorf("%d requests in ten minutes", got)
		}
		for i := range 40 { // the engine hands it in at every tick
			b.fire("slow")
			pass(15 * time.Second)
			if got := len(am.got()); got > 12+(i+1)/4 {
				t.Fatalf("%d requests after %d ticks", got, i)
			}
		}
	})
}

func TestLeaseSurvivesASlowAnswerAndAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{answer: func(n int, _ []posted) reply {
			switch n {
			case 3:
				return reply{after: 50 * time.Second}
			case 4:
				return reply{status: 503}
			}
			return reply{}
		}}
		b := start(t, Options{Targets: []Target{am.target("am")}, Timeout: time.Minute})
		defer b.stop()
		b.fire("slow")
		for range 15 * 60 {
			pass(time.Second)
			if s := am.state("slow"); s != "firing" {
				t.Fatalf("the Alertmanager sees it %s", s)
			}
		}
		if len(am.lapsed) > 0 {
			t.Error("the lease lapsed")
		}
	})
}

func TestResolveReachesAnAlertmanagerThatWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := false
		am := &fakeAM{answer: func(int, []posted) reply {
			if down {
				return reply{err: errRefused}
			}
			return reply{}
		}}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(time.Minute)
		am.set(func() { down = true })
		b.resolve("slow")
		resolved := time.Now()
		pass(5 * time.Minute)
		am.set(func() { down = false })
		pass(time.Minute)
		p := am.last("slow")
		if am.state("slow") != "resolved" || !p.EndsAt.Equal(resolved) {
			t.Errorf("%s, ends at %v, resolved at %v", am.state("slow"), p.EndsAt, resolved)
		}
	})
}

func TestResolvedAlertIsSentForFifteenMinutesAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(30 * time.Second)
		b.resolve("slow")
		pass(time.Hour)
		reqs := am.got()
		if len(reqs) < 16 || len(reqs) > 18 {
			t.Errorf("%d requests", len(reqs))
		}
		for _, r := range reqs[1:] {
			if !r.alerts[0].EndsAt.Equal(reqs[1].at) {
				t.Errorf("sent at %v with an end of %v", r.at, r.alerts[0].EndsAt)
			}
		}
		b.Notify(context.Background(), nil)
		if b.book.len() != 0 || b.lines[0].sender.queue.len() != 0 {
			t.Error("a resolved alert is still held")
		}
	})
}

func TestAlertThatFiresAgainStartsAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(time.Minute)
		b.resolve("slow")
		pass(time.Minute)
		again := time.Now()
		b.fire("slow")
		pass(0)
		if p := am.last("slow"); !p.StartsAt.Equal(again) || am.state("slow") != "firing" {
			t.Errorf("starts at %v, fired again at %v, %s", p.StartsAt, again, am.state("slow"))
		}
	})
}

func TestPendingAlertsAreNotSentNorResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		never := alert("pending", rules.Resolved)
		never.FiringAtMs = event.Absent
		list := append(alerts(rules.Pending, "a"), alerts(rules.Inactive, "b")...)
		b.Notify(context.Background(), append(list, never))
		pass(10 * time.Minute)
		if n := len(am.got()); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestEventClockNeverReachesStartsAtOrEndsAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		began := time.Now()
		ahead := alert("ahead", rules.Firing)
		ahead.FiringAtMs = began.Add(10 * time.Minute).UnixMilli()
		b.Notify(context.Background(), []rules.Alert{ahead})
		pass(time.Minute)
		ahead.State, ahead.ResolvedAtMs = rules.Resolved, began.Add(12*time.Minute).UnixMilli()
		b.Notify(context.Background(), []rules.Alert{ahead})
		pass(0)
		if p := am.last("ahead"); !p.StartsAt.Equal(began) || !p.EndsAt.Equal(began.Add(time.Minute)) {
			t.Errorf("from %v to %v, began %v", p.StartsAt, p.EndsAt, began)
		}
	})
}

func TestRestoredAlertKeepsItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		before := time.Now().Add(-time.Hour)
		b := start(t, Options{Targets: []Target{am.target("am")}, StartedAt: func(a *rules.Alert) time.Time {
			switch a.Labels.Get("alertname") {
			case "restored":
				return before
			case "ahead":
				return time.Now().Add(time.Hour)
			}
			return time.Time{}
		}})
		defer b.stop()
		b.fire("restored", "ahead", "new")
		pass(0)
		now := time.Now()
		for name, want := range map[string]time.Time{"restored": before, "ahead": now, "new": now} {
			if p := am.last(name); !p.StartsAt.Equal(want) {
				t.Errorf("%s starts at %v, want %v", name, p.StartsAt, want)
			}
		}
	})
}

func TestAlertResolvedAfterARestartIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.resolve("unknown before")
		pass(0)
		p := am.last("unknown before")
		if !p.EndsAt.Equal(time.Now()) || p.EndsAt.Sub(p.StartsAt) != 10*time.Minute {
			t.Errorf("from %v to %v", p.StartsAt, p.EndsAt)
		}
	})
}

func TestDeadAlertmanagerDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead := &fakeAM{answer: func(int, []posted) reply { return reply{hang: true} }}
		fine := &fakeAM{}
		b := start(t, Options{Targets: []Target{dead.target("dead"), fine.target("fine")}, QueueAlerts: 100})
		defer b.stop()
		b.fire("first")
		pass(5 * time.Second)
		for _, name := range numbered(150) {
			began := time.Now()
			b.fire(name)
			pass(100 * time.Millisecond)
			if p := fine.last(name); p.EndsAt.IsZero() || !p.StartsAt.Equal(began) {
				t.Fatalf("%s has not arrived", name)
			}
		}
		if got := b.metric(t, "stategauge_notifications_queue_length", label, "http://dead:9093"); got != 100 {
			t.Errorf("dead one's queue holds %v", got)
		}
		if got := b.metric(t, "stategauge_notifications_dropped_total", label, "http://dead:9093", "reason", reasonQueueFull); got != 51 {
			t.Errorf("%v dropped for the dead one", got)
		}
		if got := b.metric(t, "stategauge_notifications_failed_total", label, "http://dead:9093", "reason", reasonTimeout); got == 0 {
			t.Error("no timeout counted")
		}
		if got := b.metric(t, "stategauge_notifications_failed_total", label, "http://fine:9093"); got != 0 {
			t.Errorf("%v failures of the other", got)
		}
	})
}

func TestAlertmanagerThatReturnsGetsTheCurrentStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		am := &fakeAM{answer: func(int, []posted) reply {
			if down {
				return reply{status: 502}
			}
			return reply{}
		}}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		for range 5 {
			b.fire("flapping", "steady")
			pass(20 * time.Second)
			b.resolve("flapping")
			pass(20 * time.Second)
		}
		am.set(func() { down = false })
		before := len(am.got())
		pass(31 * time.Second)
		reqs := am.got()[before:]
		if len(reqs) != 1 || len(reqs[0].alerts) != 2 {
			t.Fatalf("%d requests: %+v", len(reqs), reqs)
		}
		if am.state("flapping") != "resolved" || am.state("steady") != "firing" {
			t.Errorf("flapping is %s, steady is %s", am.state("flapping"), am.state("steady"))
		}
	})
}

func TestManyAlertsGoInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}, BatchAlerts: 64})
		defer b.stop()
		b.fire(numbered(200)...)
		pass(0)
		sizes := []int{}
		for _, r := range am.got() {
			sizes = append(sizes, len(r.alerts))
		}
		if len(sizes) != 4 || sizes[0] != 64 || sizes[3] != 8 {
			t.Errorf("batches of %v", sizes)
		}
		if got := b.metric(t, "stategauge_notifications_sent_total"); got != 200 {
			t.Errorf("%v sent", got)
		}
	})
}

func TestBadAlertDoesNotTakeGoodOnesDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{answer: func(_ int, list []posted) reply {
			for _, p := range list {
				if n := p.Labels["alertname"]; n == "alert-007" || n == "alert-030" {
					return reply{status: 400}
				}
			}
			return reply{}
		}}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire(numbered(40)...)
		pass(0)
		for i, name := range numbered(40) {
			want := "firing"
			if i == 7 || i == 30 {
				want = "unknown"
			}
			if got := am.state(name); got != want {
				t.Errorf("%s is %s", name, got)
			}
		}
		if got := b.metric(t, "stategauge_notifications_dropped_total", "reason", reasonBadAlert); got != 2 {
			t.Errorf("%v given up", got)
		}
		first := len(am.got())
		pass(5 * time.Minute)
		if more := len(am.got()) - first; more != 5 {
			t.Errorf("%d requests in five minutes: the bad ones are tried again", more)
		}
	})
}

func TestWrongPasswordGivesNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 401
		am := &fakeAM{answer: func(int, []posted) reply { return reply{status: status} }}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire(numbered(10)...)
		pass(2 * time.Minute)
		if got := b.metric(t, "stategauge_notifications_dropped_total"); got != 0 {
			t.Errorf("%v dropped", got)
		}
		for _, r := range am.got() {
			if len(r.alerts) != 10 {
				t.Fatalf("a batch of %d", len(r.alerts))
			}
		}
		am.set(func() { status = 200 })
		pass(31 * time.Second)
		if got := am.state("alert-009"); got != "firing" {
			t.Errorf("alert is %s", got)
		}
	})
}

func TestRetriesBackOffWithJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{answer: func(int, []posted) reply { return reply{status: 500} }}
		b := start(t, Options{Targets: []Target{am.target("am")}, Jitter: func() float64 { return 0.5 }})
		defer b.stop()
		b.fire("slow")
		for range 300 {
			b.fire("slow") // must not shorten the wait
			pass(time.Second)
		}
		var waits []time.Duration
		reqs := am.got()
		for i := 1; i < len(reqs); i++ {
			waits = append(waits, reqs[i].at.Sub(reqs[i-1].at))
		}
		for i, want := range []time.Duration{750, 1500, 3000, 6000, 12000, 22500, 22500} {
			if waits[i] != want*time.Millisecond {
				t.Fatalf("waits %v", waits)
			}
		}
	})
}

func TestLogSpeaksOnlyWhenTheErrorChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 500
		am := &fakeAM{answer: func(int, []posted) reply { return reply{status: status} }}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(5 * time.Minute)
		if n := b.logs.count("sending alerts failed"); n != 1 {
			t.Errorf("%d lines for one error", n)
		}
		am.set(func() { status = 503 })
		pass(2 * time.Minute)
		if n := b.logs.count("sending alerts failed"); n != 2 {
			t.Errorf("%d lines for two errors", n)
		}
		am.set(func() { status = 200 })
		pass(2 * time.Minute)
		if n := b.logs.count("works again"); n != 1 {
			t.Errorf("%d lines of recovery", n)
		}
	})
}

func TestClockSkewIsShownAndWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{ahead: 10 * time.Minute}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(5 * time.Minute)
		if got := b.metric(t, "stategauge_alertmanager_clock_skew_seconds"); got < 599 || got > 601 {
			t.Errorf("skew %v", got)
		}
		if n := b.logs.count("clock differs"); n != 1 {
			t.Errorf("%d warnings", n)
		}
		if p := am.last("slow"); p.EndsAt.After(time.Now().Add(4 * time.Minute)) {
			t.Error("the lease grew though nobody allowed it")
		}
	})
}

func TestLeaseAllowsForSkewWhereAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{ahead: 10 * time.Minute}
		b := start(t, Options{Targets: []Target{am.target("am")}, SkewAllowance: 8 * time.Minute})
		defer b.stop()
		b.fire("slow")
		pass(time.Minute)
		if p := am.last("slow"); !p.EndsAt.Equal(time.Now().Add(12 * time.Minute)) {
			t.Errorf("ends at %v, now is %v", p.EndsAt, time.Now())
		}
	})
}

func TestAnswerWithoutDateTellsNothingOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{noDate: true, ahead: time.Hour}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		pass(time.Minute)
		if b.logs.count("clock differs") != 0 || b.metric(t, "stategauge_alertmanager_clock_skew_seconds") != 0 {
			t.Error("skew without a date")
		}
	})
}

func TestStopSendsWhatIsDueAndWaitsNoLongerThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := false
		am := &fakeAM{answer: func(int, []posted) reply { return reply{hang: hang, after: time.Second} }}
		b := start(t, Options{Targets: []Target{am.target("am")}, Timeout: time.Minute})
		b.fire("slow")
		pass(10 * time.Second)
		b.resolve("slow")
		b.stop()
		if got := am.state("slow"); got != "resolved" {
			t.Errorf("after a stop the alert is %s", got)
		}

		am.set(func() { hang = true })
		b = start(t, Options{Targets: []Target{am.target("am")}, Timeout: time.Minute})
		b.fire("late")
		pass(time.Second)
		began := time.Now()
		b.stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("stop took %v", took)
		}
		if got := b.metric(t, "stategauge_notifications_dropped_total", "reason", reasonShutdown); got != 1 {
			t.Errorf("%v counted as lost at stop", got)
		}
	})
}

func TestChangedLabelsResolveTheOldSetInTheSameRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("old set")
		pass(time.Minute + time.Second)
		n := len(am.got())
		b.Notify(context.Background(), append(alerts(rules.Resolved, "old set"), alerts(rules.Firing, "new set")...))
		pass(0)
		reqs := am.got()[n:]
		if len(reqs) != 1 || len(reqs[0].alerts) != 2 {
			t.Errorf("%+v", reqs)
		}
	})
}

func TestAnAlertThatHasToBeHandedInAgainLapsesWithoutIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{
			Targets: []Target{am.target("am")}, Until: func(a *rules.Alert) time.Time {
				if a.Labels.Get("alertname") == "Watchdog" {
					return time.Now().Add(2 * time.Minute)
				}
				return time.Time{}
			},
		})
		defer b.stop()
		b.fire("Watchdog", "Other")
		for range 10 {
			time.Sleep(time.Minute)
			b.fire("Watchdog")
		}
		if got := am.state("Watchdog"); got != "firing" {
			t.Fatalf("handed in again and again, it is %s", got)
		}
		started := am.last("Watchdog").StartsAt
		time.Sleep(20 * time.Minute) // nobody hands it in
		if got := am.state("Watchdog") + " " + am.state("Other"); got != "resolved firing" {
			t.Errorf("the states are %s", got)
		}
		b.fire("Watchdog")
		synctest.Wait()
		if got := am.last("Watchdog"); am.state("Watchdog") != "firing" || !got.StartsAt.Equal(started) {
			t.Errorf("after its return it is %s since %v", am.state("Watchdog"), got.StartsAt)
		}
	})
}
