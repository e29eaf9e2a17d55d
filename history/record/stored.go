package record

import (
	"errors"

	"github.com/stategauge/stategauge/event"
)

// Stored records lie in the history behind one byte that says how they came there.

// How says how an update came to be stored.
type How byte

const (
	// Live is an update of events that came for the first time.
	Live How = 0
	// Reread is an update of events that were read again from a topic, to fill the
	// windows of a process that took them over: they were counted elsewhere.
	Reread How = 1
)

// AppendStored appends the record of u as the history keeps it. See Append, and
// AppendHeartbeat for what is kept of a heartbeat.
func AppendStored(dst []byte, how How, u *event.Update, d *Dictionary) []byte {
	dst = append(dst, byte(how))
	if u.Outcome == event.OutcomeHeartbeat && u.Event != nil && u.Event.Envelope != nil {
		return AppendHeartbeat(dst, u, d)
	}
	return Append(dst, u, d)
}

// DecodeStored reads what AppendStored wrote. See Decode for how long the update is
// valid.
func (x *Decoder) DecodeStored(b []byte, d *Dictionary) (*event.Update, How, error) {
	if len(b) == 0 {
		return nil, Live, errors.New("decode stored record: it is empty")
	}
	u, err := x.Decode(b[1:], d)
	return u, How(b[0]), err
}
