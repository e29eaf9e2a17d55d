package notify

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// cluster is a name with Alertmanagers behind it that come and go.
type cluster struct {
	mu      sync.Mutex
	hosts   []string
	err     error
	members map[string]*fakeAM // by host:port
}

func newCluster(hosts ...string) *cluster {
	c := &cluster{hosts: hosts, members: map[string]*fakeAM{}}
	for _, h := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		c.members[h+":9093"] = &fakeAM{}
	}
	return c
}

func (c *cluster) lookup(_ context.Context, host string) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if host != "am.example" {
		return nil, errors.New("wrong host " + host)
	}
	return slices.Clone(c.hosts), c.err
}

func (c *cluster) set(err error, hosts ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hosts, c.err = hosts, err
}

func (c *cluster) options() Options {
	return Options{Lookup: c.lookup, Targets: []Target{{
		URL: "http://am.example:9093/", ResolveAll: true,
		NewClient: func(address string) (*http.Client, error) {
			am, ok := c.members[address]
			if !ok && address != "" {
				return nil, errors.New("no member at " + address)
			}
			return &http.Client{Transport: am}, nil
		},
	}}}
}

func TestEveryAddressOfANameGetsTheAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("10.0.0.2", "10.0.0.1", "10.0.0.1")
		b := start(t, c.options())
		defer b.stop()
		pass(time.Second)
		b.fire("slow")
		pass(time.Second)
		for _, address := range []string{"10.0.0.1:9093", "10.0.0.2:9093"} {
			if got := c.members[address].state("slow"); got != "firing" {
				t.Errorf("%s sees it %s", address, got)
			}
			if got := b.metric(t, "stategauge_notifications_sent_total", label, "http://am.example:9093/ at "+address); got != 1 {
				t.Errorf("%v sent to %s", got, address)
			}
		}
	})
}

func TestAddressThatJoinsLaterGetsWhatFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("10.0.0.1")
		b := start(t, c.options())
		defer b.stop()
		b.fire("slow", "over")
		pass(time.Minute)
		b.resolve("over")
		c.set(nil, "10.0.0.1", "10.0.0.3")
		pass(31 * time.Second)
		late := c.members["10.0.0.3:9093"]
		if late.state("slow") != "firing" || late.state("over") != "resolved" {
			t.Errorf("slow is %s, over is %s", late.state("slow"), late.state("over"))
		}
	})
}

func TestAddressThatLeavesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("10.0.0.1", "10.0.0.2")
		b := start(t, c.options())
		defer b.stop()
		b.fire("slow")
		pass(time.Second)
		c.set(nil, "10.0.0.1")
		pass(time.Minute)
		gone, n := c.members["10.0.0.2:9093"], 0
		n = len(gone.got())
		pass(5 * time.Minute)
		if len(gone.got()) != n {
			t.Error("still sends to it")
		}
		if got := b.metric(t, "stategauge_notifications_sent_total", label, "http://am.example:9093/ at 10.0.0.2:9093"); got != 0 {
			t.Error("its series are still there")
		}
		if got := c.members["10.0.0.1:9093"].state("slow"); got != "firing" {
			t.Errorf("the other sees it %s", got)
		}
	})
}

func TestFailedLookupKeepsTheAddressesAndIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("10.0.0.1")
		b := start(t, c.options())
		defer b.stop()
		b.fire("slow")
		pass(time.Second)
		c.set(errors.New("no such host"))
		pass(10 * time.Minute)
		if got := c.members["10.0.0.1:9093"].state("slow"); got != "firing" {
			t.Errorf("alert is %s", got)
		}
		if n := b.logs.count("no such host"); n != 1 {
			t.Errorf("%d lines", n)
		}
		if got := b.metric(t, "stategauge_alertmanager_lookup_failures_total"); got < 19 || got > 21 {
			t.Errorf("%v failures counted", got)
		}
		c.set(nil)
		pass(time.Minute)
		if n := b.logs.count("no address"); n != 1 {
			t.Errorf("an empty answer is told %d times", n)
		}
	})
}

func TestAddressWhoseClientCannotBeBuiltIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("10.0.0.9", "10.0.0.1")
		b := start(t, c.options())
		defer b.stop()
		b.fire("slow")
		pass(time.Second)
		if b.logs.count("no member at 10.0.0.9:9093") != 1 || c.members["10.0.0.1:9093"].state("slow") != "firing" {
			t.Error("one bad address must cost itself alone")
		}
	})
}

func TestPortFollowsTheScheme(t *testing.T) {
	for raw, want := range map[string]string{"http://a": "10.0.0.1:80", "https://a": "10.0.0.1:443", "https://a:9093": "10.0.0.1:9093"} {
		n := &Notifier{o: Options{Lookup: func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil }}.withDefaults()}
		g := &group{n: n, target: Target{URL: raw}}
		got, err := g.lookup(context.Background())
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %v, %v", raw, got, err)
		}
	}
}
