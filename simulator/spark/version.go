package spark

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// The versions from which Spark does something differently. Compare with
// event.Version.Less or AtLeast.
var (
	V34 = event.Version{Major: 3, Minor: 4}
	V35 = event.Version{Major: 3, Minor: 5}
	V40 = event.Version{Major: 4}
	V41 = event.Version{Major: 4, Minor: 1}
	V42 = event.Version{Major: 4, Minor: 2}
	V43 = event.Version{Major: 4, Minor: 3}
)

// supported lists the versions that can be played: of each minor version the
// release whose real streams the simulator is measured against.
var supported = []event.Version{
	{Major: 3, Minor: 4, Patch: 4},
	{Major: 3, Minor: 5, Patch: 8},
	{Major: 4, Minor: 0, Patch: 5},
	{Major: 4, Minor: 1, Patch: 4},
	{Major: 4, Minor: 2, Patch: 1},
	{Major: 4, Minor: 3, Patch: 0},
}

// Versions returns the versions that can be played, oldest first. The slice is
// the caller's.
func Versions() []event.Version { return append([]event.Version(nil), supported...) }

// AtLeast reports whether v is since or newer.
func AtLeast(v, since event.Version) bool { return !v.Less(since) }

// ParseVersion reads "3.5" or "4.1.4". Without a patch level the one that was
// measured is meant; any other of a known minor version behaves the same.
func ParseVersion(text string) (event.Version, error) {
	v, full, ok := splitVersion(text)
	if !ok {
		return event.Version{}, fmt.Errorf("spark version %q is not like 3.5 or 4.1.4", text)
	}
	for _, s := range supported {
		if s.Major != v.Major || s.Minor != v.Minor {
			continue
		}
		if full {
			return v, nil
		}
		return s, nil
	}
	return event.Version{}, fmt.Errorf("spark version %q cannot be played, only %s", text, minors())
}

// splitVersion reads two or three numbers with points between them.
func splitVersion(text string) (v event.Version, full, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 2 && len(parts) != 3 {
		return v, false, false
	}
	var n [3]uint16
	for i, p := range parts {
		u, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return v, false, false
		}
		n[i] = uint16(u)
	}
	return event.Version{Major: n[0], Minor: n[1], Patch: n[2]}, len(parts) == 3, true
}

func minors() string {
	var out []string
	for _, s := range supported {
		out = append(out, fmt.Sprintf("%d.%d", s.Major, s.Minor))
	}
	return strings.Join(out, ", ")
}
