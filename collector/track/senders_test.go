package track

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stategauge/stategauge/event"
)

func env(seq, dropped int64) *event.Envelope {
	return &event.Envelope{Sender: "s", Seq: seq, Dropped: dropped}
}

func TestLossOfASenderIsCountedOnceHoweverItsEventsArrive(t *testing.T) {
	for name, tc := range map[string]struct {
		seqs, dropped  []int64
		received, lost int64
	}{
		"in order":                       {seqs: []int64{5, 6, 7}, received: 3},
		"a hole":                         {seqs: []int64{5, 6, 9}, received: 3, lost: 2},
		"a hole that is filled":          {seqs: []int64{5, 8, 6, 7}, received: 4},
		"repeats":                        {seqs: []int64{5, 6, 6, 5, 7, 7}, received: 3},
		"older than the first":           {seqs: []int64{5, 3, 6}, received: 2},
		"a long hole":                    {seqs: []int64{5, 5005, 5006}, received: 3, lost: 4999},
		"too late to fill":               {seqs: []int64{5, 7, 5007, 6}, received: 3, lost: 5000},
		"an absurd step":                 {seqs: []int64{5, 1 << 40, 1<<40 + 1}, received: 3},
		"numbers that cannot be":         {seqs: []int64{-3, 5, event.Absent, 6, 1<<63 - 1}, received: 2},
		"dropped, not numbered":          {seqs: []int64{5, 6, 7}, dropped: []int64{2, 2, 6}, received: 3, lost: 4},
		"dropped and numbered":           {seqs: []int64{5, 10}, dropped: []int64{0, 4}, received: 2, lost: 4},
		"dropped before we listened":     {seqs: []int64{5, 6}, dropped: []int64{9, 9}, received: 2},
		"dropped, of which some unknown": {seqs: []int64{5, 6}, dropped: []int64{event.Absent, 2}, received: 2, lost: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewSenders()
			for i, seq := range tc.seqs {
				d := int64(event.Absent)
				if i < len(tc.dropped) {
					d = tc.dropped[i]
				}
				s.Observe(env(seq, d), int64(i))
			}
			got := s.Statuses(nil)
			if len(got) != 1 || got[0].Received != tc.received || got[0].Lost != tc.lost {
				t.Errorf("got %+v, want %d received and %d lost", got, tc.received, tc.lost)
			}
		})
	}
}

func TestSendersWithoutIdentityAreNotFollowed(t *testing.T) {
	s := NewSenders()
	if s.Observe(nil, 0) != 0 || s.Observe(&event.Envelope{Seq: 5}, 0) != 0 || len(s.Statuses(nil)) != 0 {
		t.Error("an envelope without a sender was followed")
	}
}

func TestTableOfSendersIsBounded(t *testing.T) {
	s := NewSenders()
	for i := range int64(maxSenders + 100) {
		s.Observe(&event.Envelope{Sender: fmt.Sprint(i), Seq: 1, Dropped: event.Absent}, i)
	}
	all := s.Statuses(nil)
	if len(all) != maxSenders {
		t.Fatalf("%d senders, want %d", len(all), maxSenders)
	}
	for _, p := range all {
		if p.LastSeenMs < 100 {
			t.Errorf("sender %s is older than those that were dropped", p.Sender)
		}
	}
}

func TestSendersMayBeSharedByShards(t *testing.T) {
	s := NewSenders()
	order := rand.New(rand.NewPCG(1, 1)).Perm(900)
	s.Observe(env(0, event.Absent), 0)
	var wg sync.WaitGroup
	for shard := range 4 {
		wg.Go(func() {
			for i, seq := range order {
				if i%4 == shard && seq != 77 {
					s.Observe(env(int64(seq), event.Absent), int64(i))
				}
			}
		})
	}
	wg.Wait()
	if got := s.Statuses(nil)[0]; got.Received != 899 || got.Lost != 1 {
		t.Errorf("got %+v, want 899 received and 1 lost", got)
	}
}
