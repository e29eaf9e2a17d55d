package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is what every Faults is: errors.Is(err, ErrInvalid) tells a file
// that says the wrong thing from one that could not be read.
var ErrInvalid = errors.New("invalid file")

// Position is a place in a file, counted from 1. A zero Line or Column is not known.
type Position struct{ Line, Column int }

// Fault is one thing wrong with a file.
type Fault struct {
	File string
	Position
	Err error // what is wrong, without the position
}

// Error returns "file:line:column: message", without the parts that are unknown.
func (f Fault) Error() string {
	switch {
	case f.Line == 0:
		return fmt.Sprintf("%s: %v", f.File, f.Err)
	case f.Column == 0:
		return fmt.Sprintf("%s:%d: %v", f.File, f.Line, f.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", f.File, f.Line, f.Column, f.Err)
}

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Err }

// Faults is everything wrong with one or more files, one line each.
type Faults []Fault

// Error returns one line per fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Is reports whether target is ErrInvalid.
func (f Faults) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the single faults, so that errors.Is and errors.As see causes.
func (f Faults) Unwrap() []error {
	out := make([]error, len(f))
	for i := range f {
		out[i] = f[i]
	}
	return out
}

// Err returns the faults as an error in file order without repeats, nil if there
// are none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(sorted, func(a, b Fault) bool { return a.Error() == b.Error() })
}

// Join makes one error of several, keeping the faults among them together and in
// order; errors that are no Faults become faults without a position. nil if all
// are nil.
func Join(errs ...error) error {
	var all Faults
	for _, err := range errs {
		var fs Faults
		switch {
		case err == nil:
		case errors.As(err, &fs):
			all = append(all, fs...)
		default:
			all = append(all, Fault{File: "configuration", Err: err})
		}
	}
	return all.Err()
}
