package score

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/stategauge/stategauge/event"
)

const (
	blockMean   = 15 // batches of a donor that stay together, on average
	restartDays = 5  // mean time between two clean restarts of a query
)

// healthyQuery makes the batches of one query: blocks of a donor, on a grid of its
// own, under noise and load of its own.
type healthyQuery struct {
	from   *donor
	noise  *noise
	every  int64
	offset int64 // from the grid
	id     int64 // of the next batch
	// skipped counts triggers of the grid that did not happen since one before them took
	// too long; behind are those since the newest batch.
	skipped, behind int64
	at              int // place in the donor of the batch that is made
	left            int // batches that are left of the block
	memory          []operatorMemory
	run             int
	fresh           bool   // the next batch is the first of its run
	sender          string // of the listener that tells of the query; empty: none does

	ref     event.QueryRef
	batch   event.Batch
	event   event.Event
	update  event.Update
	started event.Update
	ended   event.Update
	out     []*event.Update
}

func newHealthyQuery(from *donor, every int64, i int, seed uint64) *healthyQuery {
	r := rand.New(rand.NewPCG(seed, 1))
	q := &healthyQuery{
		from: from, noise: newNoise(r), at: r.IntN(len(from.batches)), every: every, offset: r.Int64N(max(1, every/4)), fresh: true,
		ref: event.QueryRef{ID: event.QueryID(fmt.Sprintf("healthy-%d", i)), Name: fmt.Sprintf("healthy_%d", i), Application: "made"},
	}
	return q
}

// next returns the updates of the next batch: the batch, and before it the end of a run
// and the start of another where the query is restarted. They are valid until the next
// call.
func (q *healthyQuery) next() []*event.Update {
	q.out = q.out[:0]
	start := healthyStartMs + (q.id+q.skipped)*q.every + q.offset
	if !q.fresh && q.noise.r.Float64() < float64(q.every)/(restartDays*dayMs) {
		q.say(&q.ended, event.KindTerminated, event.OutcomeTerminated, event.StateTerminated, start-2000)
		q.run++
		q.fresh = true
	}
	if q.fresh {
		q.say(&q.started, event.KindStarted, event.OutcomeStarted, event.StateRunning, start-1000)
		q.started.Event.Envelope = q.envelope()
	}
	q.make(start)
	q.fresh = false
	q.id++
	return q.out
}

func (q *healthyQuery) runID() event.RunID { return event.RunID(fmt.Sprintf("run-%d", q.run)) }

func (q *healthyQuery) say(u *event.Update, k event.Kind, o event.Outcome, s event.State, atMs int64) {
	*u = event.Update{
		Event:   &event.Event{Kind: k, Query: q.ref, Run: q.runID(), AtMs: atMs},
		Outcome: o, State: s, Was: event.StateRunning, NewRun: o == event.OutcomeStarted, NewQuery: o == event.OutcomeStarted && q.run == 0,
		StartedSeen: true, Trigger: event.TriggerInterval, IntervalMs: float64(q.every), Origin: event.Origin{ReceivedMs: atMs},
	}
	q.out = append(q.out, u)
}

// envelope is what a listener tells with the start of a run: which Spark it is, so that
// rules know as much of the query as they do without a listener. nil without one.
func (q *healthyQuery) envelope() *event.Envelope {
	if q.sender == "" {
		return nil
	}
	return &event.Envelope{Sender: q.sender, App: event.App{SparkVersion: q.from.batches[0].Spark.String()}}
}

// make puts the next batch together.
func (q *healthyQuery) make(start int64) {
	seam := q.step()
	src := q.from.batches[q.at]
	b := &q.batch
	b.CopyFrom(src)
	b.Query, b.Run, b.ID, b.StartMs = q.ref, q.runID(), q.id, start
	shift(&b.EventTimeMaxMs, start-src.StartMs)
	shift(&b.WatermarkMs, start-src.StartMs)
	times, load := q.noise.next(start)
	if q.fresh {
		times *= 2 // caches are cold
	}
	if q.behind > 0 { // what came meanwhile is read now
		more := float64(1 + q.behind)
		times, load = times*math.Pow(more, q.noise.growth), load*more
	}
	q.scale(b, times, load)
	q.pause(b, q.noise.pause(q.every))
	q.remember(b, src, seam)
	for i := range b.Operators {
		o := &b.Operators[i]
		if o.SnapshotMin >= 0 {
			o.SnapshotMin += q.id - src.ID
		}
	}
	q.event = event.Event{Kind: event.KindProgress, Batch: b, Query: q.ref, Run: b.Run, AtMs: start}
	q.update = event.Update{
		Event: &q.event, Outcome: event.OutcomeExecuted, State: event.StateRunning, Was: event.StateRunning,
		SegmentStart: q.fresh && q.run > 0, StartedSeen: true, Trigger: event.TriggerInterval, IntervalMs: float64(q.every),
		IntervalFrom: event.IntervalInferred, Origin: event.Origin{ReceivedMs: b.EndMs()},
	}
	q.out = append(q.out, &q.update)
}

// step goes to the donor's next batch and reports whether a new block begins there. A
// block follows another where the donor stood alike: what the watermark gives back comes
// at a rhythm, windows by windows, and would not where blocks began anywhere.
func (q *healthyQuery) step() (seam bool) {
	next := q.at + 1
	if q.left > 0 && next < len(q.from.batches) {
		q.at, q.left = next, q.left-1
		return false
	}
	q.left = int(q.noise.r.ExpFloat64() * blockMean)
	alike := q.from.alike(next)
	q.at = alike[q.noise.r.IntN(len(alike))]
	return true
}

// operatorMemory is what ties an operator's batch to the one before.
type operatorMemory struct {
	raw, factor [len(stickyIDs)]float64
	total, last [len(cumulativeIDs)]float64
}

// stickyIDs are figures that stand still from one upload to the next: noise must not
// make them move, or changelog checkpointing would seem to be off.
var stickyIDs = [...]event.MetricID{
	event.RocksDBBytesCopied, event.RocksDBFilesCopied, event.RocksDBFilesReused, event.RocksDBZipFileBytesUncompressed,
	event.RocksDBCommitFlushLatency, event.RocksDBCommitCompactLatency, event.RocksDBCommitCheckpointLatency,
}

// cumulativeIDs only grow within a run.
var cumulativeIDs = [...]event.MetricID{event.LoadedMapCacheHitCount, event.LoadedMapCacheMissCount}

// remember gives figures that stand still, and those that only grow, what they had in the
// batch before.
func (q *healthyQuery) remember(b, src *event.Batch, seam bool) {
	if len(q.memory) != len(b.Operators) {
		q.memory = make([]operatorMemory, len(b.Operators))
	}
	for i := range b.Operators {
		m, made, raw := &q.memory[i], &b.Operators[i].Values, &src.Operators[i].Values
		for k, id := range stickyIDs {
			if raw[id] == 0 {
				m.raw[k] = 0
				continue
			}
			if seam || raw[id] != m.raw[k] {
				m.raw[k], m.factor[k] = raw[id], made[id]/raw[id]
			}
			made[id] = raw[id] * m.factor[k]
		}
		for k, id := range cumulativeIDs {
			if q.fresh {
				m.total[k] = 0
			}
			if !seam {
				m.total[k] += max(0, raw[id]-m.last[k])
			}
			m.last[k] = raw[id]
			made[id] = m.total[k] + 0*raw[id] // absent stays absent
		}
	}
}

func shift(ms *int64, by int64) {
	if *ms != event.Absent {
		*ms += by
	}
}

// secondsOf and amountsOf are the figures of work, by scope: those that are times,
// and those that are rows, bytes and counts.
var secondsOf, amountsOf = func() (s, a [2][]event.MetricID) {
	for _, m := range event.Catalog() {
		if m.Kind != event.KindWork || m.Scope > event.ScopeOperator {
			continue
		}
		if m.Unit == event.UnitSeconds {
			s[m.Scope] = append(s[m.Scope], m.ID)
		} else {
			a[m.Scope] = append(a[m.Scope], m.ID)
		}
	}
	return s, a
}()

// pause lets the batch stand still for so many milliseconds. Triggers that were due
// meanwhile do not happen.
func (q *healthyQuery) pause(b *event.Batch, ms float64) {
	q.behind = 0
	if ms == 0 {
		return
	}
	for _, id := range [...]event.MetricID{event.DurationAddBatch, event.DurationTriggerExecution, event.BatchDuration} {
		b.Values[id] += ms // absent stays absent
	}
	q.behind = max(0, (b.EndMs()-b.StartMs+q.every-1)/q.every-1)
	q.skipped += q.behind
}

// scale applies noise and load. A healthy batch ends before the next is due, but for a
// pause.
func (q *healthyQuery) scale(b *event.Batch, times, load float64) {
	if ms, _ := b.DurationMs(); ms*times > 0.9*float64(q.every) {
		times = 0.9 * float64(q.every) / ms
	}
	multiply(&b.Values, secondsOf[event.ScopeQuery], times)
	multiply(&b.Values, amountsOf[event.ScopeQuery], load)
	for i := range b.Operators {
		own := times * (1 + 0.05*q.noise.r.NormFloat64())
		multiply(&b.Operators[i].Values, secondsOf[event.ScopeOperator], max(0.1*times, own))
		multiply(&b.Operators[i].Values, amountsOf[event.ScopeOperator], load)
	}
}

func multiply(v *event.Vector, ids []event.MetricID, by float64) {
	for _, id := range ids {
		v[id] *= by // absent stays absent
	}
}
