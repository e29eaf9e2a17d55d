package app

import (
	"fmt"
	"time"
)

// Secret is text that is never written out.
type Secret string

// UnmarshalText keeps the text.
func (s *Secret) UnmarshalText(b []byte) error {
	*s = Secret(b)
	return nil
}

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "<secret>"
}

// Time is an instant as RFC 3339 writes it.
type Time time.Time

// UnmarshalText parses an instant.
func (t *Time) UnmarshalText(b []byte) error {
	v, err := time.Parse(time.RFC3339, string(b))
	if err != nil {
		return fmt.Errorf("%q is not a time such as 2026-01-31T18:00:00Z", b)
	}
	*t = Time(v)
	return nil
}
