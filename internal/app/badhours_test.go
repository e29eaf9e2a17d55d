package app

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// lifeRig is a driver whose listener sends everything in envelopes: its queries start,
// fail, come back under another id, and fall silent with it.
type lifeRig struct {
	driverRig
	out []heard
}

func (l *lifeRig) say(at time.Time, kind, body string) {
	l.out = append(l.out, l.wrap(at, kind, []byte(body)))
}

func (l *lifeRig) starts(s *stream, at time.Time) {
	l.say(at, "started", fmt.Sprintf(`{"id":%q,"runId":%q,"name":%q,"timestamp":%q}`, s.id, s.run, s.name, at.Format(sparkTime)))
}

func (l *lifeRig) fails(s *stream, at time.Time, why string) {
	l.say(at, "terminated", fmt.Sprintf(`{"id":%q,"runId":%q,"exception":%q,"errorClassOnException":null}`, s.id, s.run, why))
}

func (l *lifeRig) beats(at time.Time, queries ...*stream) {
	var active []string
	for _, s := range queries {
		active = append(active, fmt.Sprintf(`{"id":%q,"runId":%q,"triggerActive":false}`, s.id, s.run))
	}
	l.say(at, "heartbeat", fmt.Sprintf(`{"active":[%s]}`, strings.Join(active, ",")))
}

// works plays a batch of a query at a minute.
func (l *lifeRig) works(s *stream, minute int64) {
	s.batch = minute
	at := s.at().Add(3241 * time.Millisecond)
	l.out = append(l.out, l.wrap(at, "progress", bytes.TrimSpace(s.next())))
}

// begins plays a batch of a query whose batches are counted from a minute on.
func (l *lifeRig) begins(s *stream, minute, from int64) {
	start := s.start
	s.start = start.Add(time.Duration(from) * time.Minute)
	l.works(s, minute-from)
	s.start = start
}

// badHours are the events of a cluster's bad hours: the store under all checkpoints is
// slow for a while, one query fails and is started again and again, one is replaced by
// another under its name, and a driver falls silent and comes back.
func badHours(minutes int64) []heard {
	rigs := make([]*lifeRig, 3)
	for i := range rigs {
		rigs[i] = &lifeRig{driverRig: driverRig{sender: fmt.Sprintf("%dd7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", i+1)}}
	}
	var all []*stream
	for i := range 9 {
		s := newStream(i)
		s.stepMs, s.operators, s.partitions = 60_000, 1, 2
		all = append(all, s)
	}
	steady, failing, replaced, successor := all[:6], all[6], all[7], all[8]
	successor.name = replaced.name
	for m := range minutes {
		for i, s := range steady {
			rig := rigs[i%2]
			s.fileSyncMs = 6400 + (m*7+int64(i)*3)%13*20
			if m >= 150 && m < 185 {
				s.fileSyncMs *= 4
			}
			if silent := i%2 == 1 && m >= 55 && m < 68; !silent {
				rig.works(s, m)
			}
		}
		at := all[0].start.Add(time.Duration(m) * time.Minute)
		switch {
		case m == 30 || m == 33 || m == 36:
			rigs[2].fails(failing, at.Add(20*time.Second), "org.apache.spark.SparkException: Job aborted due to stage failure: executor lost")
		case m == 32 || m == 35 || m == 40:
			failing.run = fmt.Sprintf("%08d-5555-4666-8777-8888888888%02d", 6, m)
			rigs[2].starts(failing, at.Add(time.Second))
			rigs[2].works(failing, m)
		case m < 30 || m == 34 || m > 40:
			rigs[2].works(failing, m)
		}
		if m < 45 {
			rigs[2].works(replaced, m)
		} else {
			if m == 45 {
				rigs[2].starts(successor, at.Add(time.Second))
			}
			rigs[2].begins(successor, m, 45)
		}
		for _, second := range []time.Duration{14, 44} {
			at := at.Add(second * time.Second)
			rigs[0].beats(at, steady[0], steady[2], steady[4])
			if m < 55 || m >= 68 {
				rigs[1].beats(at, steady[1], steady[3], steady[5])
			}
		}
	}
	var out []heard
	for _, r := range rigs {
		out = append(out, r.out...)
	}
	slices.SortStableFunc(out, func(a, b heard) int { return int(a.atMs - b.atMs) })
	return out
}

// TestDaemonsOfAnyNumberOfShardsSayTheSame spreads the queries of the bad hours over one
// shard and over several, with a history and without. What belongs together need not lie together: the query that is
// replaced and the one that replaces it have two ids.
func TestDaemonsOfAnyNumberOfShardsSayTheSame(t *testing.T) {
	events := badHours(200)
	one := lives(t, 1, events, untouched)
	if !strings.Contains(one, "CheckpointReset") || !strings.Contains(one, "CheckpointStoreSlow") {
		t.Errorf("nothing says that orders_7 began anew, or that the store is slow:\n%s", one)
	}
	others := []int{2, 3, 8}
	if raced {
		others = others[1:2]
	}
	if d := difference(livesOn(t, nil, 2, events, untouched), one); d != "" {
		t.Errorf("without a history:\n%s", d)
	}
	for _, shards := range others {
		if d := difference(lives(t, shards, events, untouched), one); d != "" {
			t.Errorf("%d shards:\n%s", shards, d)
		}
	}
}

// TestAPowerCutShowsInNothingThatBadHoursBring cuts the power of daemons while alerts begin
// and end, by events and by time, of queries and of all of them.
func TestAPowerCutShowsInNothingThatBadHoursBring(t *testing.T) {
	seeds := uint64(2)
	if raced {
		seeds = 1
	}
	survives(t, badHours(200), seeds, 60)
}

// TestABacktestOfAHistorySaysWhatTheDaemonSaidInBadHours is about what begins and ends by
// events and by time together.
func TestABacktestOfAHistorySaysWhatTheDaemonSaidInBadHours(t *testing.T) {
	saysLikeItsHistory(t, badHours(200))
}
