package record

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

// BenchmarkEncodeVersusGob measures writing an event of three operators against
// encoding/gob, whose encoder has told its types before.
func BenchmarkEncodeVersusGob(b *testing.B) {
	updates, d := benchUpdates(), NewDictionary(0)
	var peerOut bytes.Buffer
	peer := gob.NewEncoder(&peerOut)
	var dst []byte
	run(b, len(updates), func(i int) {
		dst = Append(dst[:0], updates[i], d)
	}, func(i int) {
		peerOut.Reset()
		if err := peer.Encode(updates[i]); err != nil {
			b.Fatal(err)
		}
	})
	b.ReportMetric(float64(len(dst)), "B/event")
	b.ReportMetric(float64(peerOut.Len()), "B_peer/event")
}

// BenchmarkDecodeVersusGob measures reading the same events back, each side into
// memory that it has used before.
func BenchmarkDecodeVersusGob(b *testing.B) {
	updates, d := benchUpdates(), NewDictionary(0)
	records := encoded(updates, d)
	peer := gob.NewDecoder(endless(b, updates))
	var x Decoder
	var u event.Update
	run(b, len(updates), func(i int) {
		if _, err := x.Decode(records[i], d); err != nil {
			b.Fatal(err)
		}
	}, func(int) {
		if err := peer.Decode(&u); err != nil {
			b.Fatal(err)
		}
	})
}

// loop hands out first once, then again for ever.
type loop struct{ first, again, rest []byte }

func (l *loop) Read(p []byte) (int, error) {
	if len(l.first) > 0 {
		n := copy(p, l.first)
		l.first = l.first[n:]
		return n, nil
	}
	if len(l.rest) == 0 {
		l.rest = l.again
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// endless is a gob stream of the updates, over and over, with its types told once.
func endless(b *testing.B, updates []*event.Update) *loop {
	var out bytes.Buffer
	enc := gob.NewEncoder(&out)
	encode := func() {
		for _, u := range updates {
			if err := enc.Encode(u); err != nil {
				b.Fatal(err)
			}
		}
	}
	encode()
	types := out.Len()
	encode()
	all := out.Bytes()
	return &loop{first: all[:types], again: all[types:]}
}

// BenchmarkEncodeVersusJSON measures writing the same events against encoding/json,
// which has no word for absent and gets zeros in its place.
func BenchmarkEncodeVersusJSON(b *testing.B) {
	updates, d := benchUpdates(), NewDictionary(0)
	plain := make([]*event.Update, len(updates))
	for i, u := range updates {
		plain[i] = withoutNaN(u)
	}
	var dst []byte
	run(b, len(updates), func(i int) {
		dst = Append(dst[:0], updates[i], d)
	}, func(i int) {
		if _, err := json.Marshal(plain[i]); err != nil {
			b.Fatal(err)
		}
	})
}

// run takes turns between ours and the peer over all updates, and reports the
// processor time of ours for one event and the ratio of the two: others' work on
// the machine changes neither.
func run(b *testing.B, events int, ours, peer func(i int)) {
	var mine, theirs time.Duration
	for i := range events { // both have met every word and type
		ours(i)
		peer(i)
	}
	for b.Loop() {
		mine += processorTime(b, events, ours)
		theirs += processorTime(b, events, peer)
	}
	b.ReportMetric(float64(mine.Nanoseconds())/float64(b.N*events), "cpu-ns/event")
	b.ReportMetric(float64(theirs)/float64(mine), "x_peer")
}

// processorTime is what the process spends on some rounds over all events.
func processorTime(b *testing.B, events int, f func(i int)) time.Duration {
	const rounds = 4
	began := usage(b)
	for range rounds {
		for i := range events {
			f(i)
		}
	}
	return (usage(b) - began) / rounds
}

func usage(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchUpdates is a made-up run of a query of three operators: figures as large as
// real ones are, and different from batch to batch.
func benchUpdates() []*event.Update {
	var out []*event.Update
	for n := range 64 {
		out = append(out, madeUpdate(n))
	}
	return out
}

func encoded(updates []*event.Update, d *Dictionary) [][]byte {
	var out [][]byte
	for _, u := range updates {
		out = append(out, Append(nil, u, d))
	}
	return out
}

func withoutNaN(u *event.Update) *event.Update {
	c := cloned(u)
	c.IntervalMs = 0
	b := c.Event.Batch
	zeroNaN(b.Values[:])
	for i := range b.Operators {
		zeroNaN(b.Operators[i].Values[:])
	}
	for i := range b.Sources {
		s := &b.Sources[i]
		for _, v := range []*float64{&s.InputRate, &s.ProcessedRate, &s.MinBehind, &s.MaxBehind, &s.AvgBehind, &s.FilesOutstanding, &s.BytesOutstanding} {
			if math.IsNaN(*v) {
				*v = 0
			}
		}
	}
	return c
}

func zeroNaN(vs []float64) {
	for i := range vs {
		if math.IsNaN(vs[i]) {
			vs[i] = 0
		}
	}
}
