package spark

import "github.com/stategauge/stategauge/event"

// Started is a QueryStartedEvent.
type Started struct {
	ID, RunID string
	Name      string // empty: null
	AtMs      int64  // Unix milliseconds
	JobTags   []string
}

// Idle is a QueryIdleEvent, which Spark sends from 3.5 on.
type Idle struct {
	ID, RunID string
	AtMs      int64 // Unix milliseconds
}

// Terminated is a QueryTerminatedEvent.
type Terminated struct {
	ID, RunID string
	Exception string // stack trace; empty: null, a clean stop
	Class     string // errorClassOnException; empty: null
}

// AppendStarted appends the event as its json method of version v gives it; the
// form is that of 3.5 for 3.4 too, where the method did not exist and senders
// write it themselves.
func AppendStarted(dst []byte, s *Started, v event.Version) []byte {
	dst = appendIDs(dst, s.ID, s.RunID)
	dst = appendNullable(append(dst, `,"name":`...), s.Name)
	dst = appendTimestamp(append(dst, `,"timestamp":`...), s.AtMs)
	if AtLeast(v, V41) {
		dst = append(dst, `,"jobTags":[`...)
		for i, tag := range s.JobTags {
			dst = appendString(comma(dst, i), tag)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// AppendIdle appends the event as its json method gives it.
func AppendIdle(dst []byte, i *Idle) []byte {
	dst = appendIDs(dst, i.ID, i.RunID)
	dst = appendTimestamp(append(dst, `,"timestamp":`...), i.AtMs)
	return append(dst, '}')
}

// AppendTerminated appends the event as its json method gives it.
func AppendTerminated(dst []byte, t *Terminated) []byte {
	dst = appendIDs(dst, t.ID, t.RunID)
	dst = appendNullable(append(dst, `,"exception":`...), t.Exception)
	dst = appendNullable(append(dst, `,"errorClassOnException":`...), t.Class)
	return append(dst, '}')
}
