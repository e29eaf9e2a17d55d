// Package workload makes the input of a simulated query: how many rows arrive
// when, which keys they have, how late they are, and the sources that offer them
// with offsets and a backlog. It is pure: time and seeds come as arguments.
package workload

// Row is one input row, or a row that one operator hands to the next.
type Row struct {
	Key     uint64
	EventMs int64 // event time, Unix milliseconds
	Bytes   int32 // size of the value
	Side    uint8 // 0 left or only source, 1 the right side of a join
	Again   bool  // a copy of an earlier row: what deduplication drops
}

// Poll is what a source answers when the query asks for its newest offset.
type Poll struct {
	Available int64 // rows between what was read and the newest
	Requests  int64 // round trips that the answer took
	Files     int64 // files listed
}

// Take is what a source hands out for one batch. Offsets are the JSON text that
// the offset log and the progress show.
type Take struct {
	Rows               []Row   // valid until the next Take
	Start, End, Latest string  // "null" where Spark has none: before the first batch, and the latest of files
	Count              int64   // rows read, which is len(Rows)
	Bytes              int64   // bytes read
	BehindMin          int64   // Kafka: offsets behind latest, per partition
	BehindMax          int64   //
	BehindAvg          float64 //
	HasBehind          bool
	MinMs, MaxMs       int64   // event times, undefined without rows
	SumMs              float64 // sum of event times, for the mean
}

// Conditions is what faults make of the input for one batch; Normal gives the
// ordinary state.
type Conditions struct {
	Rate      float64 // factor on the arrival rate
	KeySpace  float64 // factor on the number of keys
	Skew      float64 // share of rows that one key gets beyond its own, 0 to 1
	Late      float64 // share of rows beyond the watermark's delay, added to the ordinary one
	RowBytes  float64 // factor on the size of values
	FutureMs  int64   // one row this far ahead of now; 0: none
	DelayMs   int64   // rows are this much older than they were, all of them
	Frozen    bool    // event time of one source stands still: nothing new from it
	Stalled   int     // partitions of a Kafka source that can not be read
	StopInput bool    // nothing arrives at all
}

// Normal is the state without faults.
func Normal() Conditions { return Conditions{Rate: 1, KeySpace: 1, RowBytes: 1} }

// Source is one input of a query.
type Source interface {
	// Description is the text that the progress shows.
	Description() string
	// Advance lets rows arrive until nowMs under c. Times never go back.
	Advance(nowMs int64, c Conditions)
	// Poll asks for the newest offset, without reading.
	Poll() Poll
	// Take reads what is available, up to the source's own limit per batch, and
	// moves the offset on. Rows are made up at this moment, not held.
	Take() Take
	// TakeTo reads exactly up to an end offset, whatever has arrived since: the
	// batch that the offset log holds and no commit does. Spark then does not ask for
	// the newest offset: Latest is "null", HasBehind false. It is an error if the
	// text is no offset of this source, lies before the present one or asks for
	// more than Config.MaxRows rows; nothing has moved then. A file source takes no
	// offset, as Seek has it, for one while it has read none.
	TakeTo(end string) (Take, error)
	// Seek goes back (or on) to an end offset that an earlier Take returned: a
	// restart from the offset log reads the same rows again. Empty, "null" or "-":
	// where the query began, which is the first row or the last Skip. Any other text that is no offset of this source is an error and
	// moves nothing.
	Seek(end string) error
	// Skip moves to the newest offset without reading, as a new checkpoint with
	// startingOffsets=latest does.
	Skip()
}
