package notify

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReloadTellsANewAlertmanagerWhatFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := &fakeAM{}, &fakeAM{}
		b := start(t, Options{Targets: []Target{old.target("old")}})
		defer b.stop()
		began := time.Now()
		b.fire("slow", "over")
		pass(time.Minute)
		b.resolve("over")
		pass(time.Second)
		if err := b.Reload([]Target{fresh.target("new")}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if fresh.state("slow") != "firing" || fresh.state("over") != "resolved" || !fresh.last("slow").StartsAt.Equal(began) {
			t.Errorf("slow is %s since %v, over is %s", fresh.state("slow"), fresh.last("slow").StartsAt, fresh.state("over"))
		}
		n := len(old.got())
		pass(10 * time.Minute)
		if len(old.got()) != n {
			t.Error("the old one is still told")
		}
		if got := b.metric(t, "stategauge_notifications_sent_total", label, "http://old:9093"); got != 0 {
			t.Error("the old one's series are still there")
		}
	})
}

func TestReloadOfTheSameAlertmanagerKeepsItsSeriesAndItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		b.fire("slow")
		for range 20 {
			pass(30 * time.Second)
			if err := b.Reload([]Target{am.target("am")}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if am.state("slow") != "firing" || len(am.lapsed) > 0 {
			t.Errorf("the alert is %s, lapsed %v", am.state("slow"), am.lapsed)
		}
		if got := b.metric(t, "stategauge_notifications_sent_total"); int(got) != len(am.got()) {
			t.Errorf("%v counted of %d", got, len(am.got()))
		}
	})
}

func TestReloadThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{Targets: []Target{am.target("am")}})
		defer b.stop()
		for _, c := range []struct {
			targets []Target
			want    string
		}{
			{[]Target{am.target("other"), {URL: "nonsense"}}, "targets[1].url"},
			{[]Target{{URL: "http://x", NewClient: func(string) (*http.Client, error) { return nil, errors.New("bad key") }}}, "bad key"},
		} {
			if err := b.Reload(c.targets); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		}
		b.fire("slow")
		pass(time.Second)
		if got := am.state("slow"); got != "firing" {
			t.Errorf("alert is %s", got)
		}
	})
}

func TestReloadReplacesTheAlertmanagersBehindAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, alone := newCluster("10.0.0.1", "10.0.0.2"), &fakeAM{}
		b := start(t, c.options())
		defer b.stop()
		b.fire("slow")
		pass(time.Second)
		if err := b.Reload([]Target{alone.target("alone")}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		n := len(c.members["10.0.0.1:9093"].got())
		pass(5 * time.Minute)
		if len(c.members["10.0.0.1:9093"].got()) != n || alone.state("slow") != "firing" {
			t.Errorf("alone sees it %s", alone.state("slow"))
		}
		if got := len(b.senders); got != 1 {
			t.Errorf("%d senders", got)
		}
	})
}

func TestReloadBeforeRunAndAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		am := &fakeAM{}
		b := start(t, Options{})
		b.fire("slow")
		if err := b.Reload([]Target{am.target("am")}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		b.stop()
		if err := b.Reload([]Target{am.target("am")}); err != nil {
			t.Fatal(err)
		}
		n := len(am.got())
		pass(10 * time.Minute)
		if len(am.got()) != n || n == 0 {
			t.Errorf("%d requests, %d of them before the end", len(am.got()), n)
		}
	})
}

func TestWithoutAlertmanagersRunWaitsForItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, Options{})
		b.fire("slow")
		pass(time.Hour)
		b.stop()
	})
}
