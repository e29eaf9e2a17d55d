package track

import (
	"hash/fnv"
	"io"

	"github.com/stategauge/stategauge/event"
)

const (
	idleStamps  = 8  // idle events of a run that are told from repeats
	batchStamps = 64 // the same for executed batches without an id
)

// run is one start of a query.
type run struct {
	id       event.RunID
	startMs  int64 // earliest time heard of, by the sender's clock
	newestMs int64 // start of the newest trigger or idle poll
	endMs    int64 // end of the newest executed batch

	win      window
	unnamed  stamps // executed batches that carry no id
	idles    stamps
	executed int64
	// previous is the newest batch id of the run before, event.Absent if unknown.
	previous int64

	// settled is the batch id up to which holes have become missed batches; no id
	// up to base ever does. Holes up to acrossTo lie between two runs.
	base, settled, acrossTo int64
	holeMs                  int64 // our clock when the oldest open hole was noticed
	holeTo                  int64 // newest batch id at that time: holes below have waited since
	holeSender              bool  // the sender lost something about then
	filled                  int64 // counted as missed, came after all
	carried                 int64 // holes that left the window before they were settled
	handed                  bool  // somebody else may have read what comes before the next batch
	passFrom, passTo        int64 // ids in (passFrom, passTo] went by elsewhere: no holes

	started, ended, failed, idleSeen bool
	failure                          *event.Failure
}

// reset makes r as good as new and keeps its memory.
func (r *run) reset(id event.RunID, at, previous int64) {
	r.win.reset()
	r.unnamed.reset()
	r.idles.reset()
	*r = run{
		id: id, startMs: at, newestMs: at, endMs: event.Absent, previous: previous,
		win: r.win, unnamed: r.unnamed, idles: r.idles,
		base: event.Absent, settled: event.Absent, acrossTo: event.Absent, holeMs: event.Absent, holeTo: event.Absent,
		passFrom: event.Absent, passTo: event.Absent,
	}
}

// touch widens the span of the run's times.
func (r *run) touch(at int64) {
	if at == event.Absent {
		return
	}
	if r.startMs == event.Absent || at < r.startMs {
		r.startMs = at
	}
	r.newestMs = max(r.newestMs, at)
}

// judge says whether an executed batch was counted before, and notes it if not.
// senderLost tells whether its sender lost something since the batch before.
func (r *run) judge(id, at, nowMs int64, senderLost bool, c *Config) verdict {
	if id == event.Absent {
		return r.unnamed.note(at, batchStamps)
	}
	switch {
	case id < 0 || id > maxBatch:
		return absurd
	case r.win.has(id):
		return seen
	case r.win.below(id):
		return tooOld
	case r.win.newest != event.Absent && id-r.win.newest > c.MaxJump:
		return absurd
	}
	r.note(id, nowMs, senderLost, c)
	return fresh
}

func (r *run) note(id, nowMs int64, senderLost bool, c *Config) {
	if r.settled == event.Absent {
		r.open(id, nowMs, c)
	}
	newest := r.win.newest
	switch {
	case newest == event.Absent || id == newest+1:
	case id > newest && r.handed:
		r.pass(id)
	case id > newest:
		r.notice(id, nowMs, senderLost)
	case id > r.base && id <= r.settled && !r.passed(id):
		r.filled++
	}
	if id > newest { // Absent is less than any id
		r.handed = false
	}
	r.carry(id)
	r.win.mark(id)
}

// open sets where counting missed batches begins: after the run before, where
// that is known and near, otherwise at the first batch seen.
func (r *run) open(id, nowMs int64, c *Config) {
	r.base = id - 1
	if p := r.previous; p != event.Absent && !r.handed && p < id-1 && id-p <= c.MaxJump {
		r.base, r.acrossTo = p, id-1
		r.notice(id, nowMs, false)
	}
	r.settled = r.base
}

func (r *run) notice(id, nowMs int64, senderLost bool) {
	if r.holeMs == event.Absent {
		r.holeMs, r.holeTo = nowMs, id
		r.holeSender = false
	}
	r.holeSender = r.holeSender || senderLost
}

// carry counts the open holes before a jump to id wipes them out of the window.
func (r *run) carry(id int64) {
	if r.win.newest == event.Absent || id-r.win.size() <= r.settled {
		return
	}
	r.carried += r.gaps(r.settled, r.win.newest)
	r.settled = r.win.newest
}

// settle turns holes that are old enough into missed batches. One call tells of
// one reason; what is left follows with the next.
func (r *run) settle(nowMs int64, c *Config) (missed int64, why event.MissedReason) {
	if r.holeMs == event.Absent {
		r.settled = max(r.settled, r.win.newest)
		return 0, event.MissedNone
	}
	to := r.reordered(int64(c.ReorderBatches))
	waited := nowMs-r.holeMs >= c.ReorderMs
	if waited {
		to = max(to, r.holeTo)
	}
	why = event.MissedDropped
	if r.holeSender {
		why = event.MissedSender
	}
	if r.settled < r.acrossTo {
		to, why = min(to, r.acrossTo), event.MissedAcrossRuns
	}
	if missed = r.settleTo(to); waited && r.holeMs != event.Absent && r.settled >= r.holeTo {
		r.holeMs, r.holeTo = nowMs, r.win.newest
	}
	if missed == 0 {
		why = event.MissedNone
	}
	return missed, why
}

func (r *run) settleTo(to int64) int64 {
	n := r.carried
	r.carried = 0
	if to > r.settled {
		n += r.gaps(r.settled, to)
		r.settled = to
	}
	if r.settled >= r.win.newest {
		r.holeMs, r.holeSender = event.Absent, false
	}
	back := min(n, r.filled)
	r.filled -= back
	return n - back
}

// newer reports whether a batch is the newest of its run so far.
func (r *run) newer(id, at int64) bool {
	if id != event.Absent && r.win.newest != event.Absent {
		return id > r.win.newest
	}
	return at == event.Absent || at >= r.newestMs
}

// ghosts remembers by hash the newest runs whose windows were given up, so that
// none of them can pass for a new one.
type ghosts struct {
	hash [32]int64
	next uint8
}

func (g *ghosts) add(id event.RunID) {
	if id == "" {
		return
	}
	g.hash[g.next%32] = ghost(id)
	g.next = (g.next + 1) % 32
}

func (g *ghosts) has(id event.RunID) bool {
	h := ghost(id)
	for _, v := range g.hash {
		if v == h {
			return id != ""
		}
	}
	return false
}

// ghost never returns 0, which marks a free place.
func ghost(id event.RunID) int64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, string(id))
	return int64(h.Sum64() | 1)
}
