package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// worker reads one assigned partition for the length of one generation.
type worker struct {
	source    *Source
	commits   *committer
	partition partition
	committed int64     // the group's offset at assignment; event.Absent for none
	news      int64     // what lies before it was handled by somebody whose word counts
	told      int64     // newest offset that the group was told, or has; never falls
	start     int64     // where to begin by the hook's wish; event.Absent for none
	fresh     freshness // of a partition that turned up while we ran
	hint      *place    // from a look made for all partitions; used once

	replaying  bool  // counted among the source's replays
	replayFrom int64 // where that began

	reader fetcher // nil while there is none
	buf    []message
	step   step

	outOfRange, vanished bool // what the broker said when the last reader failed
	failures             backoff
	broken               int // failures in a row because of a batch that cannot be read
	idle                 int // fetches in a row without a message, in a replay

	live    atomic.Int64 // first offset that is news; event.Absent where all is, or nothing is left before it
	reached atomic.Int64 // next offset to be handled; event.Absent before it is known
	end     atomic.Int64 // end of the log, as told last; event.Absent likewise
}

func newWorker(s *Source, a collector.Assignment, start collector.Start) *worker {
	w := &worker{source: s, partition: partitionOf(a), committed: a.Committed, told: a.Committed, start: start.Offset, news: newsFrom(a, start)}
	w.step.init(w)
	w.live.Store(start.Live)
	w.reached.Store(event.Absent)
	w.end.Store(event.Absent)
	return w
}

// run reads until ctx ends; handling is the context for handlers, which lives a
// little longer.
func (w *worker) run(ctx, handling context.Context) {
	defer w.step.release()
	defer w.dropReader()
	for ctx.Err() == nil {
		err := w.turn(ctx, handling)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			continue
		}
		w.failed(err)
		if !pause(ctx, w.failures.next()) {
			return
		}
	}
}

// turn fetches once and handles what came.
func (w *worker) turn(ctx, handling context.Context) error {
	if w.reader == nil {
		if err := w.open(ctx); err != nil {
			return err
		}
	}
	msgs, err := w.reader.fetch(ctx, w.buf[:0])
	if err != nil {
		return err
	}
	w.succeeded(len(msgs))
	if next := w.reader.position(); len(msgs) == 0 && next != w.reached.Load() {
		w.gap(gapEmpty, 0, w.reached.Load(), next)
	}
	if !w.step.handle(ctx, handling, msgs, w.reader.position()) {
		return ctx.Err()
	}
	w.showLag()
	w.doubt(len(msgs))
	clear(msgs) // let the values go before the next wait
	w.buf = msgs
	return nil
}

func (w *worker) succeeded(messages int) {
	w.failures.reset()
	w.broken = 0
	w.end.Store(w.reader.highWater())
	w.wellAgain()
	if messages > 0 {
		w.source.metrics.Fetches.Inc()
		w.source.metrics.Messages.Add(float64(messages))
	}
}

// wellAgain ends the partition's fault. Only a fetch that worked is proof: a broken
// batch lets every connection succeed.
func (w *worker) wellAgain() {
	if w.source.faults.clear(faultPartition + w.partition.String()) {
		w.source.setUp()
	}
}

func (w *worker) failed(err error) {
	w.dropReader()
	w.outOfRange = errors.Is(err, errOutOfRange)
	w.vanished = w.vanished || errors.Is(err, errUnknownTopic)
	w.source.faults.raise(faultPartition+w.partition.String(), settling,
		fmt.Sprintf("partition %s cannot be read: %v", w.partition, err))
	w.source.metrics.Restarts.WithLabelValues(w.partition.topic).Inc()
	if !errors.Is(err, errBroken) {
		w.broken = 0
		return
	}
	if w.broken++; w.broken > brokenPatience {
		w.stepOver()
	}
}

// brokenPatience is how often in a row a batch may be unreadable before it counts
// as poison. With the pauses in between that is some seconds.
const brokenPatience = 3

// stepOver gives up the offset that cannot be read. The next one may lie in the
// same batch: then it is given up at once.
func (w *worker) stepOver() {
	pos := w.reached.Load()
	if !known(pos) {
		return
	}
	w.gap(gapUnreadable, 1, pos, pos+1)
	w.advance(pos + 1)
	w.failures.reset()
}

func (w *worker) dropReader() {
	if w.reader != nil {
		w.reader.close()
		w.reader = nil
	}
}

// open finds out where to read from and begins to.
func (w *worker) open(ctx context.Context) error {
	at, err := w.where(ctx)
	if err != nil {
		return err
	}
	offset := w.settle(at)
	w.reader, err = w.source.cluster.open(ctx, w.partition, at.leader, offset)
	if err != nil {
		return err
	}
	w.showLag()
	return nil
}

func (w *worker) where(ctx context.Context) (place, error) {
	if at := w.hint; at != nil {
		w.hint = nil
		if !w.beyond(*at) { // or the log has grown since
			return *at, nil
		}
	}
	looks, err := w.source.cluster.look(ctx, []string{w.partition.topic})
	if err != nil {
		return place{}, err
	}
	return placeOf(looks, w.partition)
}

func placeOf(looks map[string]topicLook, p partition) (place, error) {
	look, ok := looks[p.topic]
	switch {
	case !ok:
		return place{}, errors.New("the brokers say nothing about it")
	case look.err != nil:
		return place{}, look.err
	case int(p.id) >= len(look.places):
		return place{}, errUnknownTopic
	}
	return look.places[p.id], look.places[p.id].err
}

// settle decides where to read from, given what the log holds now. The place is
// committed where it is news, because a configured start of "latest" must not be
// worked out twice, with events lost in between.
func (w *worker) settle(at place) int64 {
	pos := w.reached.Load()
	switch {
	case !known(pos):
		pos = w.first(at)
	case w.vanished && at.last < w.end.Load(), w.outOfRange && pos > at.last:
		pos = w.anew(at, pos)
	case w.live.Load() > at.last: // the log has lost its end, and news with it
		pos = w.anew(place{first: pos}, w.live.Load())
	}
	if pos < at.first {
		if from := max(pos, w.news); from < at.first {
			w.gap(gapRetention, at.first-from, from, at.first)
		}
		pos = at.first
	}
	w.outOfRange, w.vanished = false, false
	w.end.Store(at.last)
	w.advance(pos)
	return pos
}

// newsFrom is where the news of a partition begin: of what lies before, nothing can
// be lost. The hook's word counts, and where it has none the group's.
func newsFrom(a collector.Assignment, start collector.Start) int64 {
	switch {
	case known(start.Live):
		return start.Live
	case known(start.Offset):
		return start.Offset
	}
	return a.Committed
}

// beyond reports whether the log ends before what was handled of it already: then
// it is another log.
func (w *worker) beyond(at place) bool { return max(w.live.Load(), w.start) > at.last }

// anew begins with a log that has taken the place of the one that was read up to
// pos: no offset of the old one means anything.
func (w *worker) anew(at place, pos int64) int64 {
	w.gap(gapRecreated, 0, pos, at.first)
	w.committed, w.told, w.news = event.Absent, event.Absent, event.Absent
	w.endReplay()
	return at.first
}

// first is where a partition that was just assigned is read from.
func (w *worker) first(at place) int64 {
	switch {
	case w.fresh == reborn:
		return w.anew(at, at.first)
	case w.beyond(at):
		return w.anew(at, max(w.live.Load(), w.start))
	case known(w.start):
		return w.start
	case known(w.committed):
		return w.committed
	case w.fresh == newborn || w.source.cfg.StartOffset == StartEarliest:
		return at.first
	}
	return at.last
}

// gap counts and tells a jump over offsets that cannot be read.
func (w *worker) gap(reason string, lost, from, to int64) {
	m := w.source.metrics
	m.Gaps.WithLabelValues(w.partition.topic, reason).Inc()
	m.OffsetsLost.WithLabelValues(w.partition.topic).Add(float64(lost))
	log := w.source.log
	if reason == gapEmpty || reason == gapUnreadable { // these can be many
		log = w.source.warnings.line()
	}
	log.Warn("kafka partition goes on elsewhere: offsets are gone",
		"partition", w.partition.String(), "reason", reason, "from", from, "to", to, "lost", lost)
}

// advance notes that everything before offset is handled. The group is told what is
// news to it: while history is read again, where the news begin.
func (w *worker) advance(offset int64) {
	w.reached.Store(offset)
	w.followReplay(offset)
	if to := max(offset, w.live.Load()); to > w.told {
		w.told = to
		w.commits.mark(w.partition, to)
	}
}

// showLag shows what is to be read yet: news as lag, history on its own.
func (w *worker) showLag() {
	reached, end, live := w.reached.Load(), w.end.Load(), w.live.Load()
	if !known(reached) || !known(end) {
		return
	}
	w.source.metrics.setLag(w.partition, end-max(reached, live))
	w.source.metrics.setReplayLag(w.partition, live, reached)
}
