package decode

// slotKind says what becomes of the bytes between two literals of a template.
type slotKind uint8

const (
	slotOperator   slotKind = iota // Operators[owner].Values[id]
	slotValue                      // Batch.Values[id]
	slotPart                       // parts[id].at[owner]
	slotNumber                     // a number that nobody reads
	slotString                     // a string that nobody reads, quotes included
	slotText                       // the text of a string of flat JSON that nobody reads
	slotUnknown                    // Operators[owner].Unknown[id]
	slotPhase                      // UnknownPhases[id]
	slotObserved                   // Observed[id]
	slotPercentile                 // Percentiles[id]
	slotBatchID                    // Batch.ID
	slotStart                      // Batch.StartMs, a time
	slotTime                       // Batch.Values[id], a time
	slotSource                     // the figure id of Sources[owner]
	slotRows                       // Sources[owner].Rows
	slotSnapshot                   // Operators[owner]: one SnapshotLastUploaded
	slotSnapshots                  // the same: a run of members, each with its comma
	slotSeq                        // Envelope.Seq
	slotDropped                    // Envelope.Dropped
	slotAt                         // Envelope.AtMs, a time

	// slotCommon is the last of the kinds that most of an event consists of.
	slotCommon = slotPart
)

// slot is where a value of an event goes.
type slot struct {
	kind  slotKind
	owner uint16
	id    uint32
}

// span is a slot and the bytes that filled it.
type span struct {
	slot
	lo, hi int
}

// recorder collects where an event's values stood. An event that cannot become a
// template is abandoned.
type recorder struct {
	spans     []span
	abandoned bool
}

func (r *recorder) reset() { r.spans, r.abandoned = r.spans[:0], false }

func (r *recorder) add(s slot, lo, hi int) {
	r.spans = append(r.spans, span{s, lo, hi})
}

// mark returns a point to roll back to.
func (r *recorder) mark() int {
	if r == nil {
		return 0
	}
	return len(r.spans)
}

// rollback forgets what was added since mark.
func (r *recorder) rollback(mark int) {
	if r != nil {
		r.spans = r.spans[:mark]
	}
}

// giveUp abandons the recording, if there is one.
func (r *recorder) giveUp() {
	if r != nil {
		r.abandoned = true
	}
}
