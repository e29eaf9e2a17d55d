package simulator

import (
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/spark"
)

// say queues an event of the query for the merge.
func (q *query) say(m message, data []byte) {
	m.id, m.run, m.app = q.id, q.runID, q.app
	m.execs, m.lostExecs, m.gcMs = len(q.execs), q.lost, ms(q.gc)
	if m.kind != event.KindProgress {
		m.batch = event.Absent
		m.busyFromMs = m.atMs
	}
	m.quietFromMs = -1
	if q.frozen {
		m.quietFromMs, q.frozen = q.lastSaid, false
	}
	if q.mute && m.lost == arrives {
		m.lost, m.quietFromMs = sendFailed, q.lastSaid
	}
	q.lastSaid = m.atMs
	q.out.push(m, data)
	q.text = data[:0]
}

// note tells the merge something that no event says.
func (q *query) note(m message) {
	m.atMs, m.lost = ms(q.now), unheard
	q.say(m, q.text[:0])
}

func (q *query) sayStarted() {
	s := spark.Started{ID: q.id, RunID: q.runID, Name: q.name, AtMs: ms(q.now)}
	m := message{atMs: ms(q.now), kind: event.KindStarted, version: q.version, conf: q.conf.ListenerConf(q.version)}
	q.say(m, spark.AppendStarted(q.text[:0], &s, q.version))
}

func (q *query) sayTerminated(f *spark.Failure) {
	q.say(message{atMs: ms(q.now), kind: event.KindTerminated}, q.appendTerminated(q.runID, f))
}

// appendTerminated writes the end of a run; nil is one in order.
func (q *query) appendTerminated(run string, f *spark.Failure) []byte {
	t := spark.Terminated{ID: q.id, RunID: run}
	if f != nil {
		f.Batch, f.Query, f.RunID, f.Topic = q.next, q.id, run, q.sc.Query.Sources[0].Topic
		t.Exception, t.Class = f.Exception(q.version)
	}
	if q.wrapped {
		return spark.AppendListenerTerminated(q.text[:0], &t)
	}
	return spark.AppendTerminated(q.text[:0], &t)
}

// sayIdle reports a trigger without a batch, which up to 3.4 is a progress.
func (q *query) sayIdle(took time.Duration) {
	at := ms(q.now + took)
	if !q.version.Less(spark.V35) {
		i := spark.Idle{ID: q.id, RunID: q.runID, AtMs: ms(q.now)}
		q.say(message{atMs: at, kind: event.KindIdle}, spark.AppendIdle(q.text[:0], &i))
		return
	}
	m := message{atMs: at, kind: event.KindProgress, batch: q.next, busyFromMs: at}
	q.say(m, spark.AppendProgress(q.text[:0], q.idleProgress(took), q.version))
}

// sayProgress reports the batch that just ended, as far as faults let it through.
func (q *query) sayProgress(f *fault.State, took time.Duration, r *rng) {
	m := message{atMs: ms(q.now), kind: event.KindProgress, batch: q.next, busyFromMs: ms(q.now - took)}
	if f.DropEvent {
		m.lost = busDropped
	}
	q.account.deliver(m.lost == arrives && !q.mute)
	q.say(m, spark.AppendProgress(q.text[:0], &q.progress, q.version))
	q.playRival(f, r)
}
