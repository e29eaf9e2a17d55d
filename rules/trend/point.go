package trend

import "math"

// MaxPoints is the number of points a Window keeps unless told otherwise.
const MaxPoints = 240

// maxMagnitude bounds what is taken for a measurement: differences and products
// of two such values stay finite.
const maxMagnitude = 1e100

// Point is what one batch measured.
type Point struct {
	Batch int64   // the x axis: gaps between ids count as distance
	AtMs  int64   // start of the batch, event time, Unix milliseconds
	Value float64 // in the signal's unit; a value that is not finite is no point
	Load  float64 // what the batch had to do (rows, say); NaN where unknown
}

// Span is how far a window reaches back: Batches batches and Ms milliseconds,
// whichever reaches further. A zero part asks for nothing.
type Span struct {
	Batches int
	Ms      int64
}

// Plus returns the span that covers s and, before it, o.
func (s Span) Plus(o Span) Span { return Span{Batches: s.Batches + o.Batches, Ms: s.Ms + o.Ms} }

// covered reports whether so many batches over so many milliseconds fill the span.
func (s Span) covered(batches int, ms int64) bool { return batches >= s.Batches && ms >= s.Ms }

// Verdict is what a detector says of one window.
type Verdict uint8

// The verdicts. Only Found is a finding.
const (
	// TooFew means that the window does not hold enough points yet.
	TooFew Verdict = iota
	// Clear means that the window was judged and shows nothing.
	Clear
	// Found means that the value moved as the options ask, and that load, where
	// it was to be looked at, does not explain it.
	Found
	// Explained means that the raw value moved, and load accounts for it.
	Explained
	// CannotTell means that the raw value moved, load was to be looked at, and it
	// is known for fewer than half of the points.
	CannotTell
)

// String returns the verdict in words.
func (v Verdict) String() string {
	switch v {
	case TooFew:
		return "too few points"
	case Clear:
		return "clear"
	case Found:
		return "found"
	case Explained:
		return "explained by load"
	case CannotTell:
		return "cannot tell"
	}
	return "unknown"
}

// measurable reports whether v can be computed with.
func measurable(v float64) bool { return math.Abs(v) <= maxMagnitude }
