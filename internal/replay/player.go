package replay

import (
	"math"

	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/rules"
)

// How often the daemon looks at silence, in the tracker and in the rules,
// milliseconds. A replay does it as often, in the time of its events.
const (
	TrackEveryMs = 5_000
	JudgeEveryMs = 15_000
)

const (
	// A gap between two events is looked at this often for so long; what remains of
	// it goes by in hours up to calmMs, and then at once. A single date of the far
	// future must not cost minutes.
	closelyMs = 7 * 24 * hourMs
	calmMs    = 90 * 24 * hourMs
	hourMs    = 3600 * 1000
)

// PlayerOptions say what a Player plays to. A zero field means its default.
type PlayerOptions struct {
	Rules    *rules.Pack // nil: none
	Override func(event.QueryRef) rules.Override
	// TriggerFor is the configured trigger of a query; nil: none is configured.
	TriggerFor func(event.QueryRef) (event.TriggerKind, float64)
	// TrackEveryMs and JudgeEveryMs are the distances of ticks, milliseconds; below
	// zero there are none.
	TrackEveryMs, JudgeEveryMs int64
	// Update is shown everything that the tracker makes of the events before the
	// rules are; Verdict what the rules say, and at what time, Unix milliseconds.
	// Both may be nil. Neither may keep what it is shown.
	Update  func(u *event.Update)
	Verdict func(v *rules.Verdict, atMs int64)
}

// Player runs events through the tracker and the rules as the daemon does, on the
// clock of the events: an event is heard when what it reports is over, and between
// two events time passes in ticks. Silence after the newest event is no finding.
// One goroutine owns a Player.
type Player struct {
	o       PlayerOptions
	tracker *track.Tracker
	engine  *rules.Engine

	nowMs    int64 // newest time that any event told, 0 before the first
	tracked  int64 // times of the last ticks
	judged   int64
	updates  []event.Update
	verdicts []rules.Verdict
}

// NewPlayer returns a Player that has heard nothing yet.
func NewPlayer(o PlayerOptions) *Player {
	c := track.DefaultConfig()
	c.TickGapMs = 0 // time passes in steps here
	c.TriggerFor = o.TriggerFor
	if o.TrackEveryMs == 0 {
		o.TrackEveryMs = TrackEveryMs
	}
	if o.JudgeEveryMs == 0 {
		o.JudgeEveryMs = JudgeEveryMs
	}
	return &Player{
		o: o, tracker: track.New(c, nil),
		engine: rules.New(o.Rules, rules.Options{TickMs: max(1, o.JudgeEveryMs), Override: o.Override}),
	}
}

// NowMs is the newest time that any event told, Unix milliseconds; 0 before the
// first dated event.
func (p *Player) NowMs() int64 { return p.nowMs }

// Engine is the engine that judges.
func (p *Player) Engine() *rules.Engine { return p.engine }

// Queries is what the tracker knows of every query.
func (p *Player) Queries() []track.QueryStatus { return p.tracker.Queries(nil) }

// Play lets time pass until the event is heard, and plays it. The event is the
// caller's again when Play returns.
func (p *Player) Play(e *event.Event, o event.Origin) event.Outcome {
	p.AdvanceTo(heardOrReceivedMs(e, &o))
	o.ReceivedMs = p.nowMs
	outcome := event.OutcomeUnjudgeable
	p.updates = p.tracker.Apply(e, p.nowMs, p.updates[:0])
	for i := range p.updates {
		u := &p.updates[i]
		u.Origin = o
		if u.Event == e {
			outcome = u.Outcome
		}
		p.PlayUpdate(u)
	}
	return outcome
}

// PlayUpdate shows the rules an update that no tracker of this Player made. Its
// ReceivedMs is the time it is heard at.
func (p *Player) PlayUpdate(u *event.Update) {
	if p.o.Update != nil {
		p.o.Update(u)
	}
	if !rules.Judgeable(u.Outcome) {
		return
	}
	p.verdicts = p.engine.Apply(u, p.verdicts[:0])
	p.say()
}

// heardMs is when an event leaves its sender, Unix milliseconds; event.Absent
// where nothing dates it.
func heardMs(e *event.Event) int64 {
	if e.Batch != nil {
		return max(e.AtMs, e.Batch.EndMs())
	}
	return e.AtMs
}

// heardOrReceivedMs is when an event leaves its sender, or, where nothing dates it,
// when it was received. That is 0 for events of files.
func heardOrReceivedMs(e *event.Event, o *event.Origin) int64 {
	if ms := heardMs(e); ms != event.Absent {
		return ms
	}
	return o.ReceivedMs
}

// AdvanceTo lets time pass to nowMs, with the ticks that lie between. Time does not
// go back.
func (p *Player) AdvanceTo(nowMs int64) {
	if p.nowMs == 0 && nowMs > 0 {
		p.nowMs, p.tracked, p.judged = nowMs, nowMs, nowMs
		return
	}
	if nowMs <= p.nowMs {
		return
	}
	from := p.nowMs
	for {
		at := min(p.next(p.tracked, p.o.TrackEveryMs, from), p.next(p.judged, p.o.JudgeEveryMs, from))
		if at >= nowMs {
			break
		}
		if at-from > calmMs {
			p.tracked, p.judged = nowMs, nowMs
			break
		}
		p.tick(at)
	}
	p.nowMs = nowMs
}

// next is when a tick that comes each every, last at last, is due again.
func (p *Player) next(last, every, gapFrom int64) int64 {
	if every < 0 {
		return math.MaxInt64
	}
	if last+every-gapFrom > closelyMs {
		every = max(every, hourMs)
	}
	return last + every
}

// tick lets one tick happen: the tracker's first, so that the rules know what it
// found.
func (p *Player) tick(atMs int64) {
	p.nowMs = atMs
	if e := p.o.TrackEveryMs; e >= 0 && atMs-p.tracked >= e {
		p.tracked = atMs
		p.updates = p.tracker.Tick(atMs, p.updates[:0])
		for i := range p.updates {
			p.PlayUpdate(&p.updates[i])
		}
	}
	if e := p.o.JudgeEveryMs; e >= 0 && atMs-p.judged >= e {
		p.judged = atMs
		p.verdicts = p.engine.Tick(atMs, p.verdicts[:0])
		p.say()
	}
}

func (p *Player) say() {
	if p.o.Verdict == nil {
		return
	}
	for i := range p.verdicts {
		p.o.Verdict(&p.verdicts[i], p.nowMs)
	}
}
