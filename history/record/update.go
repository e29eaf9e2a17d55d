package record

import (
	"maps"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Bounds of the lists in a record, far above what a decoder of events lets in: a
// broken record must not ask for memory without bound.
const (
	maxOperators = 1 << 14
	maxList      = 1 << 16
)

// update carries everything of u. The fields stand in the order of what refers to
// what: a figure that is written as a distance comes after what it is measured from.
func (c *codec) update(u *event.Update, s *spare) {
	has := u.Event != nil
	missed := u.Missed != 0 || u.MissedReason != event.MissedNone
	interval := !math.IsNaN(u.IntervalMs)
	succeeded := u.Successor != ""
	c.bools(
		&has, &interval, &u.StartedSeen, &u.NewRun, &u.NewQuery, &missed, &u.SegmentStart,
		&u.OutOfOrder, &u.SharedRuns, &u.Reexecuted, &u.Rewound, &succeeded, &u.Moved,
	)
	enum(c, &u.Outcome, lastOutcome)
	enum(c, &u.State, event.StateRetired)
	enum(c, &u.Was, event.StateRetired)
	enum(c, &u.Trigger, event.TriggerContinuous)
	enum(c, &u.IntervalFrom, event.IntervalListener)
	c.optionalNumber(&u.IntervalMs, interval)
	c.missed(u, missed)
	if !c.writing {
		u.Successor = keptIf(succeeded, u.Successor)
		u.Event = s.eventIf(has)
	}
	if succeeded {
		word(c, &u.Successor)
	}
	atMs := int64(event.Absent)
	if has {
		c.event(u.Event, s)
		atMs = u.Event.AtMs
	}
	c.origin(&u.Origin, atMs)
}

var lastOutcome = slices.Max(event.Outcomes())

// keptIf returns v where it is about to be read anew, to be reused, and otherwise
// the zero value.
func keptIf[T any](has bool, v T) T {
	if has {
		return v
	}
	var zero T
	return zero
}

func (c *codec) optionalNumber(v *float64, has bool) {
	switch {
	case has:
		c.number(v)
	case !c.writing:
		*v = math.NaN()
	}
}

func (c *codec) missed(u *event.Update, has bool) {
	if has {
		small(c, &u.Missed, 0)
		enum(c, &u.MissedReason, event.MissedSender)
	} else if !c.writing {
		u.Missed, u.MissedReason = 0, event.MissedNone
	}
}

func (c *codec) origin(o *event.Origin, atMs int64) {
	word(c, &o.Source)
	word(c, &o.Topic)
	small(c, &o.Partition, 0)
	c.whole(&o.Offset, 0)
	c.whole(&o.ReceivedMs, atMs)
}

func (c *codec) event(e *event.Event, s *spare) {
	batch, envelope, failure := e.Batch != nil, e.Envelope != nil, e.Failure != nil
	tags, extra, cluster := len(e.JobTags) > 0, len(e.Extra) > 0, e.Cluster != ""
	c.bools(&batch, &envelope, &extra, &cluster, &failure, &tags)
	enum(c, &e.Kind, event.KindTick)
	c.query(&e.Query)
	text(c, &e.Run)
	c.whole(&e.AtMs, 0)
	if !c.writing {
		e.Cluster = keptIf(cluster, e.Cluster)
		e.JobTags, e.Extra = nil, s.extra[:0]
		e.Batch, e.Envelope = s.batchIf(batch), s.envelopeIf(envelope)
		e.Failure = newIf[event.Failure](failure) // whoever reads it may keep it
	}
	if cluster {
		word(c, &e.Cluster)
	}
	if extra {
		c.labels(&e.Extra)
		s.keepExtra(c, e)
	}
	if tags {
		c.tags(&e.JobTags)
	}
	if failure {
		text(c, &e.Failure.Class)
		text(c, &e.Failure.Message)
	}
	if envelope {
		c.envelope(e.Envelope, e.AtMs)
	}
	if batch {
		c.batch(e.Batch, e)
	}
}

func (c *codec) query(q *event.QueryRef) {
	word(c, &q.ID)
	word(c, &q.Name)
	word(c, &q.Application)
}

func (c *codec) labels(labels *[]event.Label) {
	n := c.length(len(*labels), 2, maxList)
	*labels = resized(c, *labels, n)
	for i := range n {
		word(c, &(*labels)[i].Name)
		word(c, &(*labels)[i].Value)
	}
}

func (c *codec) tags(tags *[]string) {
	n := c.length(len(*tags), 1, maxList)
	*tags = resized(c, *tags, n)
	for i := range n {
		text(c, &(*tags)[i])
	}
}

// resized returns list with n items for reading into. The items that it had are
// left in place, because what is read may find its memory there.
func resized[T any](c *codec, list []T, n int) []T {
	if c.writing {
		return list
	}
	if n > cap(list) {
		list = append(list[:cap(list)], make([]T, n-cap(list))...)
	}
	return list[:n]
}

func (c *codec) envelope(e *event.Envelope, atMs int64) {
	conf, executors, active := e.Conf != nil, e.Executors != nil, len(e.Active) > 0
	c.bools(&conf, &executors, &active)
	text(c, &e.Sender)
	c.whole(&e.Seq, 0)
	c.whole(&e.Dropped, 0)
	c.whole(&e.AtMs, atMs)
	text(c, &e.App.ID)
	word(c, &e.App.Name)
	word(c, &e.App.SparkVersion)
	word(c, &e.App.Cluster)
	if !c.writing {
		// Settings and executors outlive the envelope, so they are always new ones.
		e.Conf, e.Executors = nil, newIf[event.Executors](executors)
		e.Active = e.Active[:0]
	}
	if conf {
		c.conf(&e.Conf)
	}
	if executors {
		c.executors(e.Executors)
	}
	if active {
		c.active(&e.Active)
	}
}

// conf carries settings, sorted so that the same settings are the same bytes.
func (c *codec) conf(m *map[string]string) {
	n := c.length(len(*m), 2, maxList)
	if c.writing {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[k]
			word(c, &k)
			word(c, &v)
		}
		return
	}
	*m = make(map[string]string, n)
	for range n {
		var k, v string
		word(c, &k)
		word(c, &v)
		(*m)[k] = v
	}
}

func (c *codec) executors(x *event.Executors) {
	for _, v := range [...]*int64{&x.Count, &x.Cores, &x.MemoryBytes, &x.OverheadBytes, &x.Losses, &x.GCTimeMs} {
		c.whole(v, 0)
	}
}

func (c *codec) active(list *[]event.ActiveQuery) {
	n := c.length(len(*list), 3, maxList)
	*list = resized(c, *list, n)
	for i := range n {
		q := &(*list)[i]
		word(c, &q.ID)
		text(c, &q.Run)
		c.bools(&q.TriggerActive)
	}
}
