package app

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// crew are daemons in processes of their own that share a topic, each with a history
// of its own.
type crew struct {
	*fleetRig
	config string
	deaths *deaths
	sent   int64 // events of each query
}

func newCrew(t *testing.T, queries int) *crew {
	t.Helper()
	r := newFleetRig(t, queries)
	text := fmt.Sprintf("kafka: {brokers: [%q], topics: [%s], group: crew, session_timeout: 2s, heartbeat_interval: 200ms}\n"+
		"alerting: {hold_older_than: 0s, resend_delay: 1s, alertmanagers: [{url: %q}]}\n", r.broker, killTopic, r.am.server.URL)
	c := &crew{fleetRig: r, config: filepath.Join(t.TempDir(), "crew.yml"), deaths: newDeaths(t)}
	rewrite(t, c.config, text)
	return c
}

// launch starts a daemon on its disk; one that is doomed dies as the environment says.
func (c *crew) launch(storage string, doom ...string) *victim {
	c.t.Helper()
	v, err := startVictim(c.t, append(doom, asDaemon+"="+c.config, daemonRules+"="+c.rules, daemonStorage+"="+storage)...)
	if err != nil && len(doom) == 0 {
		c.t.Fatalf("the daemon did not start: %v", err)
	}
	return v
}

// settled sends some events and waits until each query has one daemon that heard all
// of them, and each alert is held by one and began once.
func (c *crew) settled(what string, of ...*victim) {
	c.t.Helper()
	c.send(5)
	c.sent += 5
	await(c.t, what, func() error { return c.shared(of) })
	await(c.t, what+": alerts", func() error { return c.alerts(of) })
	c.pagedOnce(len(c.streams) / 2)
}

// shared tells why not every query is one daemon's.
func (c *crew) shared(of []*victim) error {
	owned := map[string]int{}
	for i, v := range of {
		queries, err := v.queries()
		if err != nil {
			return err
		}
		if len(queries) == 0 {
			return fmt.Errorf("daemon %d has nothing", i)
		}
		for _, q := range queries {
			if q.Batches != c.sent || q.Missed != 0 {
				return fmt.Errorf("%s: daemon %d has heard %d of %d batches, %d missed", q.Name, i, q.Batches, c.sent, q.Missed)
			}
			owned[q.Name]++
		}
	}
	for name, n := range owned {
		if n != 1 {
			return fmt.Errorf("%s has %d owners", name, n)
		}
	}
	if len(owned) != len(c.streams) {
		return fmt.Errorf("%d queries of %d", len(owned), len(c.streams))
	}
	return nil
}

// alerts tells why not every alert fires at one daemon.
func (c *crew) alerts(of []*victim) error {
	var pages []string
	for _, v := range of {
		r, err := http.Get("http://" + v.addr + "/api/v1/alerts")
		if err != nil {
			return err
		}
		page, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return err
		}
		pages = append(pages, string(page))
	}
	return heldOnce(len(c.streams)/2, pages)
}

// dead waits until a daemon has killed itself within its instant.
func (c *crew) dead(v *victim) {
	c.t.Helper()
	await(c.t, "the daemon to die", v.gone)
	if !c.deaths.note() {
		c.t.Fatalf("the daemon ended otherwise: %v", v.end())
	}
}

// TestDaemonsKilledWithinARebalanceLoseNoQueryAndPageNobodyTwice kills the one that joins
// and the one that gives partitions up: when it is told of them, when it lets queries go
// and has not put that on disk, while it reads the past of what it was given, and when it
// stops in order and has not saved. Started again on its disk it goes on; every query is
// one daemon's with all of its batches, and what rings rings on.
func TestDaemonsKilledWithinARebalanceLoseNoQueryAndPageNobodyTwice(t *testing.T) {
	c := newCrew(t, 24)
	disks := [2]string{t.TempDir(), t.TempDir()}
	first := c.launch(disks[0])
	c.send(45)
	c.sent = 45
	c.settled("the first daemon alone", first)
	writes := 2 // of the log after the instant began, up to which a daemon dies
	if os.Getenv(killsEnv) != "" {
		writes = 5
	}
	for n := 1; n <= writes; n++ {
		second := c.launch(disks[1], c.deaths.at(inRebalance, n))
		c.dead(second)
		second = c.launch(disks[1])
		c.settled(fmt.Sprintf("the second after it died at write %d of joining", n-1), first, second)
		second.kill()
		_ = second.end()

		c.settled("the first alone again", first)
		first.signal(syscall.SIGTERM)
		_ = first.end()
		first = c.launch(disks[0], c.deaths.at(inNextRebalance, n))
		c.settled("the first, which will die", first)
		second = c.launch(disks[1])
		c.dead(first)
		first = c.launch(disks[0])
		c.settled(fmt.Sprintf("the first after it died at write %d of giving up", n-1), first, second)

		second.kill()
		_ = second.end()
		c.settled("the first alone again", first)
		second = c.launch(disks[1], c.deaths.at(inStop, n))
		c.settled("the second, which will die when it stops", first, second)
		second.signal(syscall.SIGTERM)
		_ = second.end()
		c.deaths.note() // there may be no so manieth write
		c.settled("the first alone at last", first)
	}
	for _, when := range []instant{inRebalance, inNextRebalance, inStop} {
		if c.deaths.came[when] < 2 {
			t.Errorf("%d daemons died while %s, of %d", c.deaths.came[when], when, writes)
		}
	}
	t.Logf("%v", c.deaths.came)
	first.signal(syscall.SIGTERM)
	if err := first.end(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
	if book := c.am.book(); strings.Count(book, "began 1 times, ended 0 times") != len(c.streams)/2 {
		t.Errorf("pages:\n%s", book)
	}
}
