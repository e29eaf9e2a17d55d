package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Extent is how long something lasts, as rule files write it: "20 batches", "30m",
// or "20 batches and 30m", which asks for both. The larger of the two decides, so
// that a rule means the same to a stream of one batch a second and to one of a
// batch an hour. The zero Extent asks for nothing.
type Extent struct {
	Batches int
	Ms      int64
}

// maxExtentBatches bounds what a window may be asked to hold.
const maxExtentBatches = 1_000_000

// DecodeScalar reads an extent.
func (e *Extent) DecodeScalar(text string) error {
	var out Extent
	for i, part := range strings.Split(text, " and ") {
		batches, isBatches := strings.CutSuffix(strings.TrimSpace(part), "batches")
		if !isBatches {
			batches, isBatches = strings.CutSuffix(strings.TrimSpace(part), "batch")
		}
		var err error
		switch {
		case i > 1 || isBatches && out.Batches > 0 || !isBatches && out.Ms > 0:
			err = fmt.Errorf("%q: give batches and a duration once each", text)
		case isBatches:
			out.Batches, err = parseBatches(batches, text)
		default:
			out.Ms, err = parseMs(strings.TrimSpace(part), text)
		}
		if err != nil {
			return err
		}
	}
	*e = out
	return nil
}

func parseBatches(count, text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || n < 1 || n > maxExtentBatches {
		return 0, notAnExtent(text)
	}
	return n, nil
}

func parseMs(duration, text string) (int64, error) {
	d, err := strictyaml.ParseDuration(duration)
	if err != nil {
		return 0, notAnExtent(text)
	}
	return d.Milliseconds(), nil
}

func notAnExtent(text string) error {
	return fmt.Errorf("%q is no extent; write 20 batches, 30m, or 20 batches and 30m", text)
}

// IsZero reports whether nothing is asked for.
func (e Extent) IsZero() bool { return e == Extent{} }

// Met reports whether so many batches over so many milliseconds are enough.
func (e Extent) Met(batches int, ms int64) bool { return batches >= e.Batches && ms >= e.Ms }

// Longer reports whether e reaches further than o in one part and no less in the other.
func (e Extent) Longer(o Extent) bool { return e.Batches >= o.Batches && e.Ms >= o.Ms && e != o }

// String returns the extent as it is written.
func (e Extent) String() string {
	d := shortDuration(time.Duration(e.Ms) * time.Millisecond)
	switch {
	case e.Batches > 0 && e.Ms > 0:
		return fmt.Sprintf("%d batches and %s", e.Batches, d)
	case e.Batches > 0:
		return fmt.Sprintf("%d batches", e.Batches)
	}
	return d
}

// shortDuration leaves out the zero parts that Go prints.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
