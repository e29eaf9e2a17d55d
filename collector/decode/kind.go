package decode

import (
	"bytes"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// eventType is what an element says it is.
type eventType uint8

const (
	typeUntold eventType = iota
	typeStarted
	typeProgress
	typeIdle
	typeTerminated
	typeHeartbeat
	typeLegacy // the listener events before Spark 2.1
	typeNew    // a streaming listener event that we do not know
	typeOther  // any other listener's event
)

var listenerClass = []byte("StreamingQueryListener$")

// typeOfClass reads the class name of an event log line.
func typeOfClass(class []byte) eventType {
	at := bytes.Index(class, listenerClass)
	if at < 0 {
		if t := typeOf(class); t != typeUntold {
			return t
		}
		return typeOther
	}
	switch string(class[at+len(listenerClass):]) {
	case "QueryStartedEvent":
		return typeStarted
	case "QueryProgressEvent":
		return typeProgress
	case "QueryIdleEvent":
		return typeIdle
	case "QueryTerminatedEvent":
		return typeTerminated
	case "QueryStarted", "QueryProgress", "QueryTerminated":
		return typeLegacy
	}
	return typeNew
}

// typeOf reads the short name of a kind, as the envelope and hand-made events
// have it; typeUntold for any other text.
func typeOf(name []byte) eventType {
	switch string(name) {
	case "started", "QueryStartedEvent", "onQueryStarted":
		return typeStarted
	case "progress", "QueryProgressEvent", "onQueryProgress":
		return typeProgress
	case "idle", "QueryIdleEvent", "onQueryIdle":
		return typeIdle
	case "terminated", "QueryTerminatedEvent", "onQueryTerminated":
		return typeTerminated
	case "heartbeat":
		return typeHeartbeat
	}
	return typeUntold
}

// setType keeps what an element says it is; text that names no kind says nothing.
func (d *Decoder) setType(t eventType) {
	if t != typeUntold {
		d.head.typed = t
	}
}

// kind tells what the element is, by its own word or by its keys.
func (h *header) kind() event.Kind {
	switch h.typed {
	case typeStarted:
		return event.KindStarted
	case typeProgress:
		return event.KindProgress
	case typeIdle:
		return event.KindIdle
	case typeTerminated:
		return event.KindTerminated
	case typeHeartbeat:
		return event.KindHeartbeat
	}
	switch {
	case h.seen&seenProgress != 0:
		return event.KindProgress
	case h.seen&seenException != 0 && h.seen&(seenID|seenRun) != 0:
		return event.KindTerminated
	case h.seen&seenBatch != 0:
		return event.KindProgress
	case h.seen&seenRun == 0 || h.seen&seenID == 0:
		// Too little to be sure: many a JSON object has an id or a name.
		return event.KindUnknown
	case h.seen&seenName != 0:
		return event.KindStarted
	}
	return event.KindIdle
}

// judge says why the parsed element is no usable event; an empty reason means
// that it is one.
func (d *Decoder) judge() (collector.Reason, string) {
	h := &d.head
	if h.typed == typeLegacy || h.seen&seenLegacy != 0 && h.seen&(seenProgress|seenBatch) == 0 {
		return collector.ReasonLegacy, "an event of Spark 2.0, which says nothing of today's figures"
	}
	if h.typed == typeNew {
		return collector.ReasonShape, "a streaming listener event of an unknown kind"
	}
	switch k := h.kind(); {
	case k == event.KindUnknown:
		return collector.ReasonShape, "JSON, but no event of a streaming query"
	case k == event.KindHeartbeat:
		return "", ""
	case k == event.KindProgress && h.seen&(seenProgress|seenBatch) == 0:
		return collector.ReasonShape, "a progress event without a progress"
	case h.id == "":
		return collector.ReasonIdentity, "an event that names no query: id is missing or empty"
	}
	return "", ""
}

// finish hands over the parsed event. The decoder keeps nothing of it.
func (d *Decoder) finish() *event.Event {
	h, ev := &d.head, d.pool.newEvent()
	ev.Kind = h.kind()
	ev.Query = event.QueryRef{ID: event.QueryID(h.id), Name: h.name}
	ev.Run = event.RunID(h.run)
	ev.AtMs = h.atMs
	ev.Envelope, d.env = d.env, nil
	if ev.Envelope != nil {
		ev.Cluster = ev.Envelope.App.Cluster
		ev.Query.Application = application(&ev.Envelope.App)
		if ev.AtMs == event.Absent {
			ev.AtMs = ev.Envelope.AtMs
		}
	}
	switch ev.Kind {
	case event.KindProgress:
		d.finishBatch(ev)
	case event.KindStarted:
		ev.JobTags = h.jobTags
		if h.name == "null" {
			ev.Query.Name = ""
		}
	case event.KindTerminated:
		if h.failed {
			ev.Failure = &event.Failure{Class: h.class, Message: h.message}
		}
	}
	return ev
}

func application(a *event.App) string {
	if a.Name != "" {
		return a.Name
	}
	return a.ID
}

// finishBatch moves the batch into ev and derives what follows from its values.
func (d *Decoder) finishBatch(ev *event.Event) {
	b := d.batch
	d.batch = nil
	b.Query, b.Run, b.StartMs = ev.Query, ev.Run, d.head.atMs
	if b.Trigger == event.TriggerInterval && b.Values[event.TriggerIntervalMs] == 0 {
		b.Trigger = event.TriggerDefault
	}
	d.parts.fold(b.Sources)
	b.Settle()
	ev.Batch = b
}
