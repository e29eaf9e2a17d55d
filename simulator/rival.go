package simulator

import (
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
)

// rival is a second run of the query on the same checkpoint. Both run every
// batch until their commits meet; then the second one loses.
type rival struct {
	runID     string
	lastStart int64
}

// playRival lets the second run report the batch that just ended too, while a
// fault keeps it alive. Its figures are those of the first run: it does the same
// work on the same state; its times are its own.
func (q *query) playRival(f *fault.State, r *rng) {
	switch {
	case f.Rival && q.rival == nil:
		q.rival = &rival{runID: uuid(q.seed, seed.ForIDs, uint64(q.turn), 2), lastStart: -1}
		s := spark.Started{ID: q.id, RunID: q.rival.runID, Name: q.name, AtMs: ms(q.now)}
		q.sayAs(q.rival, message{atMs: ms(q.now), kind: event.KindStarted, version: q.version, conf: q.conf.ListenerConf(q.version)},
			spark.AppendStarted(q.text[:0], &s, q.version))
	case f.Rival:
		q.sayRivalProgress(r)
	case q.rival != nil:
		q.endRival()
	}
}

func (q *query) sayRivalProgress(r *rng) {
	g := q.progress
	delay := ms(r.between(20*time.Millisecond, 120*time.Millisecond))
	g.RunID, g.StartMs = q.rival.runID, g.StartMs+delay
	g.InputRate = 0
	if last := q.rival.lastStart; last >= 0 && g.StartMs > last {
		g.InputRate = float64(g.InputRows) / (float64(g.StartMs-last) / 1000)
	}
	q.rival.lastStart = g.StartMs
	q.sayAs(q.rival, message{atMs: ms(q.now), kind: event.KindProgress, batch: g.BatchID, busyFromMs: g.StartMs},
		spark.AppendProgress(q.text[:0], &g, q.version))
}

func (q *query) endRival() {
	f := spark.Failure{Kind: spark.ConcurrentUpdate}
	q.sayAs(q.rival, message{atMs: ms(q.now), kind: event.KindTerminated}, q.appendTerminated(q.rival.runID, &f))
	q.rival = nil
}

// sayAs queues an event of the second run, which is another application's.
func (q *query) sayAs(v *rival, m message, data []byte) {
	own, app := q.runID, q.app
	q.runID, q.app = v.runID, rivalApp|q.index
	q.say(m, data)
	q.runID, q.app = own, app
}

// rivalApp is the number of the application that a second run belongs to.
const rivalApp = 1 << 30
