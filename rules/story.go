package rules

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

const (
	// minGaps is how many distances between a query's words make a rhythm.
	minGaps = 5
	// newRunMs is how long a run may take over its first batch, and may be silent
	// before it has a rhythm of its own.
	newRunMs = 30 * 60 * 1000
	// longSilence and usualFloorMs tell a distance that is no rhythm, unless it comes
	// several times in a row.
	longSilence  = 5
	usualFloorMs = 10 * 60 * 1000
	strikesTaken = 3
	// A silence is nothing special either below so many times the second longest of
	// the newest ones, and below what happens on one day and on another.
	aboveLongest = 1.5
	aboveHabit   = 1.25
)

// story is what happened to a query, as far as rules of events ask. Rules are
// views of it and keep nothing themselves, so that a rule that a reload brings
// knows what was before. About 2.5 KiB a query.
//
// Rhythms are learned from the sender's times: what was held up on its way comes
// all at once. Silence is measured by our own clock.
type story struct {
	heardMs int64 // our clock at the newest sign of life, put off by our own pauses; Absent before
	wordMs  int64 // sender's time of the newest word of this run, Absent before
	lastMs  int64 // the same over all runs
	startMs int64 // sender's time of the run's first word
	run     event.RunID
	ran     int  // executed batches of this run
	idle    bool // this run said that it idles
	ended   bool // and that it ended
	died    bool // of an exception
	strikes uint8
	outMs   int64 // sender's time at the end of the newest silence that was too long

	gaps      recent  // distances between the run's words
	before    float64 // what was usual in the run before, milliseconds; 0 unknown
	longest   days
	durations recent // of executed batches, over runs
	runs      recent // distances between starts of runs

	beats   heartbeats
	failure *exception // it failed, and nothing ran since; nil otherwise
	starts  starts
	changes happenings
	first   firstBatch
	newest  int64   // batch id executed last
	place   int64   // and its position, -1 before the first
	rows    float64 // usual rows of a batch
	backlog float64 // of the newest batch, offsets; NaN where not told
	shape   shape
	reload  reload
}

func newStory() story {
	return story{
		heardMs: event.Absent, wordMs: event.Absent, lastMs: event.Absent, startMs: event.Absent,
		beats: heartbeats{ms: event.Absent}, first: firstBatch{id: event.Absent}, backlog: math.NaN(), place: -1,
	}
}

// isWord tells what a query says of itself from what others make of it.
func isWord(u *event.Update) bool {
	switch u.Outcome {
	case event.OutcomeExecuted:
		return u.Event.Batch != nil
	case event.OutcomeIdleCopy, event.OutcomeIdle, event.OutcomeStarted, event.OutcomeTerminated, event.OutcomeFailed:
		return true
	}
	return false
}

// wordAt dates a word by the sender's clock: a batch by its end.
func wordAt(u *event.Update) int64 {
	if b := u.Event.Batch; b != nil && u.Outcome == event.OutcomeExecuted {
		if end := b.EndMs(); end != event.Absent {
			return end
		}
		return b.StartMs
	}
	return u.Event.AtMs
}

// hear takes in an update. Figures of a batch come with batch, once the batch has
// its place.
func (s *story) hear(u *event.Update, nowMs int64) {
	if u.Missed > 0 {
		s.missed(u)
	}
	if !isWord(u) {
		return
	}
	other := u.State != event.StateFailed && u.Outcome == event.OutcomeFailed // of a second driver, while this one works on
	if run := runOf(u); !other && (u.NewRun || run != s.run || s.heardMs == event.Absent) {
		s.begin(u, run, nowMs)
	}
	s.heardMs = nowMs
	switch u.Outcome {
	case event.OutcomeExecuted:
		s.progress(u)
	case event.OutcomeIdle, event.OutcomeIdleCopy:
		s.idle = true
	case event.OutcomeTerminated:
		s.failure = nil
		s.stop(u)
	case event.OutcomeFailed:
		s.fail(u, nowMs, other)
	}
	if !other {
		s.word(u)
	}
}

// stop notes that somebody stopped the query: what happened to it is history,
// unless it is a job of short runs, whose ends mean nothing.
func (s *story) stop(u *event.Update) {
	s.ended, s.died = true, false
	s.starts.clear()
	if !chained(u.Trigger) {
		s.changes = happenings{}
	}
}

// begin enters a run: a new one, or an earlier one that goes on.
func (s *story) begin(u *event.Update, run event.RunID, nowMs int64) {
	at := wordAt(u)
	if b := u.Event.Batch; b != nil {
		at = b.StartMs
	}
	if at == event.Absent {
		at = nowMs
	}
	if u.NewRun {
		if s.startMs != event.Absent {
			s.runs.add(float64(at - s.startMs))
		}
		midway := u.Outcome == event.OutcomeExecuted && !u.StartedSeen && s.heardMs == event.Absent && u.Event.Batch.ID > 0
		if !midway {
			s.starts.add(at)
		}
		s.startMs = at
	}
	if s.gaps.n >= minGaps {
		s.before = s.gaps.p90
	}
	if !chained(u.Trigger) {
		s.gaps.reset()
	}
	s.run, s.ran, s.idle, s.ended, s.died, s.wordMs, s.strikes = run, 0, false, false, false, event.Absent, 0
	s.beats.ms = event.Absent
}

// progress notes that a batch was executed.
func (s *story) progress(u *event.Update) {
	s.ran++
	s.starts.progress(s.timeOf(u))
	if f := s.failure; f != nil && (runOf(u) != f.run || f.run == "") {
		s.failure = nil
	}
	if ms, _ := u.Event.Batch.DurationMs(); ms > 0 {
		s.durations.add(ms)
	}
}

// word learns from when a word was said.
func (s *story) word(u *event.Update) {
	at := wordAt(u)
	if at == event.Absent {
		return
	}
	if s.wordMs != event.Absent && at > s.wordMs {
		s.learn(float64(at-s.wordMs), at, u)
	}
	s.wordMs, s.lastMs = max(s.wordMs, at), max(s.lastMs, at)
}

// learn takes in a distance between two words. One that was far too long is no
// part of the rhythm, unless one batch made it so or the rhythm has changed.
func (s *story) learn(gapMs float64, at int64, u *event.Update) {
	s.longest.add(gapMs, at)
	limit, known := s.limitMs(longSilence, usualFloorMs, math.NaN())
	if known && gapMs > limit && !worked(u, gapMs) {
		s.outMs = at
		if s.strikes++; s.strikes < strikesTaken {
			return
		}
	}
	if gapMs <= limit {
		s.strikes = 0
	}
	s.gaps.add(gapMs)
}

// worked reports whether one batch took most of the time.
func worked(u *event.Update, gapMs float64) bool {
	if u.Outcome != event.OutcomeExecuted || u.Event.Batch == nil {
		return false
	}
	ms, _ := u.Event.Batch.DurationMs()
	return ms >= 0.8*gapMs
}

// usualMs is the distance between words that nine out of ten stay below; 0 while
// there is no rhythm.
func (s *story) usualMs() float64 {
	if s.gaps.n >= minGaps {
		return s.gaps.p90
	}
	return max(s.before, s.gaps.longest())
}

// limitMs is the silence that is too long for a query between batches: factor
// times what is usual, and at least so long. known is false while nothing is
// known of its rhythm.
func (s *story) limitMs(factor, atLeastMs, intervalMs float64) (ms float64, known bool) {
	usual := s.usualMs()
	if intervalMs > usual { // also false where it is not known
		usual = intervalMs
	}
	_, habit := s.longest.largest(s.lastMs)
	ms = max(factor*usual, atLeastMs, aboveLongest*s.gaps.p99, aboveHabit*habit)
	if s.ran == 0 || s.gaps.n < minGaps {
		ms = max(ms, newRunMs)
	}
	return ms, usual > 0
}

// pause takes a time that we did not listen in out of the query's silence.
func (s *story) pause(fromMs, toMs int64) {
	for _, at := range [...]*int64{&s.heardMs, &s.beats.ms} {
		if *at == event.Absent {
			continue
		}
		if from := max(fromMs, *at); from < toMs {
			*at += toMs - from
		}
	}
}

// maxStarts is how many starts are kept.
const maxStarts = 16

// starts are those of runs that nobody stopped, oldest first: each run since
// before the newest ended by an exception, or without a word.
type starts struct {
	list [maxStarts]start
	n    int
	last exception // newest exception among them; zero without one
}

type start struct {
	atMs    int64
	batches int // executed by the run
}

func (s *starts) add(atMs int64) {
	if s.n == maxStarts {
		copy(s.list[:], s.list[1:])
		s.n--
	}
	s.list[s.n] = start{atMs: atMs}
	s.n++
}

func (s *starts) clear() { *s = starts{} }

const (
	// A run that executed so many batches has got going, if they are also more than so
	// many times those of the others in the loop, or if it lasts so long.
	gotGoing     = 3
	gotGoingMore = 2
	gotGoingMs   = 3600 * 1000
)

// progress notes a batch of the newest run. Once that has got going, what was
// before it is over.
func (s *starts) progress(atMs int64) {
	if s.n == 0 {
		return
	}
	run := &s.list[s.n-1]
	run.batches++
	most := 0
	for i := range s.list[:s.n-1] {
		if s.list[i+1].atMs-s.list[i].atMs < gotGoingMs {
			most = max(most, s.list[i].batches)
		}
	}
	if s.n > 1 && run.batches >= gotGoing && (run.batches > gotGoingMore*most || atMs-run.atMs >= gotGoingMs) {
		s.list[0] = *run
		s.n, s.last = 1, exception{}
	}
}

// within counts the most starts that lie within so many milliseconds of each
// other, and how long those took. Being started less often than before is no
// recovery.
func (s *starts) within(ms int64) (count int, tookMs int64) {
	for i, j := 0, 0; i < s.n; i++ {
		for s.list[i].atMs-s.list[j].atMs > ms {
			j++
		}
		if n := i - j + 1; n >= count {
			count, tookMs = n, s.list[i].atMs-s.list[j].atMs
		}
	}
	return count, tookMs
}
