// Package decode turns the bytes of a request body, a Kafka message or a line of
// a file into events. It is strict about JSON, apart from the few extensions that
// real senders need, and tolerant about what the JSON says.
//
// # What is taken
//
// A body is one JSON value, an array, one value per line, or values one after
// another; commas between top-level values count as blanks. An element is one of:
// a bare progress, the JSON of the four listener events, a line of an event log
// (lines of other listeners are skipped, not refused), the Jackson form that
// Connect hands out, or the envelope of our own listeners. The kind is what
// `Event` or the envelope's `type` says; without either it follows from the keys.
//
// # What is forgiven
//
// Numbers may be quoted; NaN, Infinity and -Infinity may be quoted or bare; all
// three mean absent, as does null or a value of the wrong type, because absent is
// never zero. Unknown keys are allowed at every level and a repeated key counts by
// its last value. Offsets may have any type: only Kafka's topic-partition maps and
// plain numbers are folded, also where they hide inside a string. Times are
// ISO 8601 or epoch milliseconds. Broken UTF-8, lone surrogates and NUL become
// U+FFFD. A progress or event member may be a string that holds JSON.
//
// The text `null` as the name of a started event is no name: a Connect client
// writes it for queries without one. Anywhere else it is taken as a name.
//
// # Two tiers
//
// The parser goes over an element once and allocates nothing in the steady state.
// Before it, the shape cache remembers the last shapes of each query: bytes that
// stay the same are compared, only values are parsed. It is an accelerator and
// nothing else: on any difference the parser decides, and both give the same
// event.
package decode
