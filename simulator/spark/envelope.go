package spark

import (
	"strconv"
	"unicode/utf8"

	"github.com/stategauge/stategauge/event"
)

// HeartbeatMs is how often our listeners send a heartbeat, in milliseconds.
const HeartbeatMs = 30_000

// maxException is how many characters our listeners keep of an exception.
const maxException = 8192

// App is the application that a listener runs in.
type App struct {
	ID, Name string
	Version  event.Version
	Cluster  string // empty: not configured
}

// Executors is what a listener tells of the executors.
type Executors struct {
	Count, Cores  int64 // cores of all together
	GCTimeMs      int64 // of all together since they started
	MemoryBytes   int64 // of one
	OverheadBytes int64 // of one, outside its heap; negative: local mode, which has none
	Losses        int64 // that went unasked since the application started
}

// Envelope is an event on its way out of a listener.
type Envelope struct {
	Kind      event.Kind
	AtMs      int64 // when the listener heard of it, Unix milliseconds
	QueryID   string
	Conf      []KV // of the query, as Conf.ListenerConf has it
	Executors Executors
	Event     []byte // JSON; of a terminated event as AppendListenerTerminated writes it
}

// Active is one query of a heartbeat.
type Active struct {
	ID, RunID     string
	TriggerActive bool // a batch is under way
}

// Sender writes the envelopes of one application's listener. Not safe for
// concurrent use.
type Sender struct {
	id      string
	app     App
	seq     int64
	dropped int64
	told    map[string]struct{} // queries whose settings were told
	last    Executors           // as told last with an event: heartbeats do not count
	heard   bool                // last holds something
	beatMs  int64               // when the next heartbeat is due
}

// NewSender makes the sender of an application that starts at startMs, Unix
// milliseconds. id is a UUID; see UUID.
func NewSender(id string, app App, startMs int64) *Sender {
	return &Sender{id: id, app: app, told: map[string]struct{}{}, beatMs: startMs + HeartbeatMs}
}

// Drop counts n events that the listener gave up because its queue was full.
func (s *Sender) Drop(n int64) { s.dropped += n }

// Append appends the envelope of an event. Settings and executors go out with a
// start, with the first progress of a query that is not known yet, and executors
// also with the first event after executors came or went.
func (s *Sender) Append(dst []byte, e *Envelope) []byte {
	dst = s.open(dst, e.AtMs)
	context := s.isContext(e)
	if context {
		s.told[e.QueryID] = struct{}{}
	}
	if context && len(e.Conf) > 0 {
		dst = appendPairs(append(dst, `,"conf":`...), e.Conf)
	}
	if context || s.changed(&e.Executors) {
		s.last, s.heard = e.Executors, true
		dst = appendExecutors(dst, &e.Executors)
	}
	if e.Kind == event.KindTerminated {
		delete(s.told, e.QueryID)
	}
	dst = append(append(dst, `,"type":"`...), e.Kind.String()...)
	dst = append(append(dst, `","event":`...), e.Event...)
	return append(dst, '}')
}

func (s *Sender) isContext(e *Envelope) bool {
	if e.Kind == event.KindStarted {
		return true
	}
	_, known := s.told[e.QueryID]
	return e.Kind == event.KindProgress && !known
}

// changed reports whether executors came or went.
func (s *Sender) changed(x *Executors) bool {
	return !s.heard || x.Count != s.last.Count || x.Cores != s.last.Cores || x.Losses != s.last.Losses
}

// NextHeartbeat returns when the next heartbeat is due, Unix milliseconds.
func (s *Sender) NextHeartbeat() int64 { return s.beatMs }

// AppendHeartbeat appends the heartbeat that is due with the queries that run,
// and sets the next one HeartbeatMs later.
func (s *Sender) AppendHeartbeat(dst []byte, active []Active, x *Executors) []byte {
	dst = s.open(dst, s.beatMs)
	s.beatMs += HeartbeatMs
	dst = appendExecutors(dst, x)
	dst = append(dst, `,"type":"heartbeat","event":{"active":[`...)
	for i := range active {
		a := &active[i]
		dst = appendIDs(comma(dst, i), a.ID, a.RunID)
		dst = strconv.AppendBool(append(dst, `,"triggerActive":`...), a.TriggerActive)
		dst = append(dst, '}')
	}
	return append(dst, `]}}`...)
}

// SkipHeartbeats passes over the heartbeats up to nowMs, Unix milliseconds: those
// of a driver that stands still.
func (s *Sender) SkipHeartbeats(nowMs int64) {
	if nowMs >= s.beatMs {
		s.beatMs += (nowMs - s.beatMs + HeartbeatMs) / HeartbeatMs * HeartbeatMs
	}
}

// open begins an envelope up to the end of its app.
func (s *Sender) open(dst []byte, atMs int64) []byte {
	s.seq++
	dst = appendText(append(dst, `{"v":1,"sender":`...), s.id)
	dst = appendInt(dst, `,"seq":`, s.seq)
	dst = appendInt(dst, `,"dropped":`, s.dropped)
	dst = AppendInstant(append(dst, `,"at":"`...), atMs)
	dst = appendText(append(dst, `","app":{"id":`...), s.app.ID)
	dst = appendText(append(dst, `,"name":`...), s.app.Name)
	dst = appendVersion(append(dst, `,"sparkVersion":"`...), s.app.Version)
	dst = append(dst, '"')
	if s.app.Cluster != "" {
		dst = appendText(append(dst, `,"cluster":`...), s.app.Cluster)
	}
	return append(dst, '}')
}

func appendVersion(dst []byte, v event.Version) []byte {
	dst = strconv.AppendUint(dst, uint64(v.Major), 10)
	dst = strconv.AppendUint(append(dst, '.'), uint64(v.Minor), 10)
	return strconv.AppendUint(append(dst, '.'), uint64(v.Patch), 10)
}

func appendExecutors(dst []byte, x *Executors) []byte {
	dst = appendInt(dst, `,"executors":{"count":`, x.Count)
	dst = appendInt(dst, `,"cores":`, x.Cores)
	dst = appendInt(dst, `,"gcTimeMs":`, x.GCTimeMs)
	dst = appendInt(dst, `,"memoryBytes":`, x.MemoryBytes)
	if x.OverheadBytes >= 0 {
		dst = appendInt(dst, `,"overheadBytes":`, x.OverheadBytes)
	}
	dst = appendInt(dst, `,"losses":`, x.Losses)
	return append(dst, '}')
}

// AppendListenerTerminated appends a terminated event as our listener on the JVM
// writes it: its own notation of strings, and a bounded exception.
func AppendListenerTerminated(dst []byte, t *Terminated) []byte {
	dst = appendIDs(dst, t.ID, t.RunID)
	dst = appendTextOrNull(append(dst, `,"exception":`...), cut(t.Exception, maxException))
	dst = appendTextOrNull(append(dst, `,"errorClassOnException":`...), t.Class)
	return append(dst, '}')
}

// cut keeps the first n UTF-16 units of s, but no half character.
func cut(s string, n int) string {
	for i, r := range s {
		if n--; r > 0xffff {
			n--
		}
		if n < 0 {
			return s[:i]
		}
	}
	return s
}

func appendPairs(dst []byte, pairs []KV) []byte {
	dst = append(dst, '{')
	for i := range pairs {
		dst = appendText(comma(dst, i), pairs[i].Key)
		dst = appendText(append(dst, ':'), pairs[i].Value)
	}
	return append(dst, '}')
}

func appendTextOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendText(dst, s)
}

// appendText appends a quoted string as our listener does: of the short escapes
// only \n, and escapes for what is no character of one unit or ends a line.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c < 0x20:
			dst = appendUnit(dst, uint16(c))
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, width := utf8.DecodeRuneInString(s[i:])
			dst = appendRune(dst, r)
			i += width - 1
		}
	}
	return append(dst, '"')
}

func appendRune(dst []byte, r rune) []byte {
	switch {
	case r > 0xffff:
		r -= 0x10000
		return appendUnit(appendUnit(dst, 0xd800+uint16(r>>10)), 0xdc00+uint16(r&0x3ff))
	case r == 0x2028 || r == 0x2029:
		return appendUnit(dst, uint16(r))
	}
	return utf8.AppendRune(dst, r)
}

func appendUnit(dst []byte, u uint16) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[u>>12], hex[u>>8&15], hex[u>>4&15], hex[u&15])
}

// UUID returns the random UUID (version 4) made of two numbers.
func UUID(a, b uint64) string {
	return string(AppendUUID(nil, a, b))
}

// AppendUUID appends what UUID returns: 36 bytes.
func AppendUUID(dst []byte, a, b uint64) []byte {
	const hex = "0123456789abcdef"
	a = a&^0xf000 | 0x4000
	b = b&^(3<<62) | 1<<63
	for i := range 32 {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			dst = append(dst, '-')
		}
		dst = append(dst, hex[a>>60])
		a = a<<4 | b>>60
		b <<= 4
	}
	return dst
}
