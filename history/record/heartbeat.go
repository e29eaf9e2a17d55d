package record

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// heartbeatVersion is the form of a heartbeat, which comes every half minute and says
// little: that a sender lives, which queries it runs, and whether their triggers are
// under way. A program that knows version 1 alone refuses it by its version.
const heartbeatVersion = 2

// AppendHeartbeat appends the record of a heartbeat to dst, in a form of its own that
// holds what rules and trackers ask of one: the envelope without the application's id and
// names, when it was said and received. See Append for the dictionary.
func AppendHeartbeat(dst []byte, u *event.Update, d *Dictionary) []byte {
	c := codec{buf: append(dst, heartbeatVersion), d: d, writing: true}
	c.heartbeat(u, nil)
	return c.buf
}

func (c *codec) heartbeat(u *event.Update, s *spare) {
	if !c.writing {
		s.heartbeat(u)
	}
	e := u.Event
	n := e.Envelope
	conf, executors := n.Conf != nil, n.Executors != nil
	c.bools(&executors, &conf)
	text(c, &n.Sender)
	c.whole(&n.Seq, 0)
	c.whole(&n.Dropped, 0)
	c.whole(&e.AtMs, 0)
	c.whole(&n.AtMs, e.AtMs)
	c.whole(&u.Origin.ReceivedMs, e.AtMs)
	word(c, &n.App.SparkVersion)
	if conf {
		c.conf(&n.Conf)
	}
	if executors {
		if !c.writing {
			n.Executors = &event.Executors{} // whoever reads them may keep them
		}
		c.executors(n.Executors)
	}
	c.active(&n.Active)
}

// heartbeat makes u a heartbeat that says nothing yet.
func (s *spare) heartbeat(u *event.Update) {
	e, n := s.eventIf(true), s.envelopeIf(true)
	*n = event.Envelope{Sender: n.Sender, Active: n.Active[:0]}
	*e = event.Event{Kind: event.KindHeartbeat, Envelope: n}
	*u = event.Update{
		Event: e, Outcome: event.OutcomeHeartbeat, IntervalMs: math.NaN(),
		Origin: event.Origin{Offset: event.Absent},
	}
}
