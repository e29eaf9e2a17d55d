package rules

import "github.com/stategauge/stategauge/event"

// Alert is one finding in its life: what Alertmanager, the API and backtests see.
// Labels never hold changing values; whatever changes stands in Annotations.
type Alert struct {
	// Labels identify the alert: alertname, symptom, severity, query_id,
	// query_name, application, spark_cluster, operator, operator_index where it
	// matters, and the labels of the rule and of the per-query overrides.
	Labels      Labels
	Annotations Labels
	State       AlertState
	// PendingAtMs, FiringAtMs and ResolvedAtMs are event time, Unix milliseconds;
	// event.Absent where it has not come to that.
	PendingAtMs, FiringAtMs, ResolvedAtMs int64
	// FirstBatch is where the finding began, FiringBatch the newest executed
	// batch when it fired, LastBatch the newest one judged.
	FirstBatch, FiringBatch, LastBatch int64
	Value                              float64 // what the detector measured, in the signal's unit; NaN where it has none
	Reason                             string  // why it resolved
	// AsOfMs is the event time of what the alert was last judged by: the end of a batch,
	// the time of an event, the present where time passing was judged. An alert whose
	// AsOfMs lies far back comes from events that arrived late, or again.
	AsOfMs int64
	// InhibitedBy is the alert that names the cause of this one, which is therefore
	// not sent; empty where it stands for itself.
	InhibitedBy string
	// Members are the queries that an alert about many rests on, by name; nil for an
	// alert about one.
	Members []string
}

// AlertState is where an alert stands.
type AlertState uint8

// The states of an alert.
const (
	Inactive AlertState = iota
	Pending
	Firing
	Resolved
)

// String returns the state as the API and the alerts series show it.
func (s AlertState) String() string {
	switch s {
	case Pending:
		return "pending"
	case Firing:
		return "firing"
	case Resolved:
		return "resolved"
	}
	return "inactive"
}

// Label is a name and a value.
type Label struct{ Name, Value string }

// Labels is a set of labels sorted by name, without repeats or empty values.
type Labels []Label

// Get returns the value of name, empty where it is not set.
func (l Labels) Get(name string) string {
	for i := range l {
		if l[i].Name == name {
			return l[i].Value
		}
	}
	return ""
}

// Verdict is what the engine has to say after an update or a tick: an alert that
// changed its state, or a judgement that is no alert.
type Verdict struct {
	Alert *Alert // nil for a judgement without an alert
	Was   AlertState
	Rule  string
	Query event.QueryRef
	Said  Said
}

// Said is a detector's judgement of one signal at one batch.
type Said uint8

// The judgements. TooFew, CannotTell and CannotSeparate are verdicts, not errors.
const (
	SaidNothing Said = iota
	SaidClear
	SaidFound
	SaidTooFew
	SaidCannotTell
	SaidCannotSeparate
	SaidExplained // raw finding that load explains
)

// String returns the judgement in words.
func (s Said) String() string {
	switch s {
	case SaidClear:
		return "clear"
	case SaidFound:
		return "found"
	case SaidTooFew:
		return "too few points"
	case SaidCannotTell:
		return "cannot tell"
	case SaidCannotSeparate:
		return "cannot separate"
	case SaidExplained:
		return "explained by load"
	}
	return "nothing"
}
