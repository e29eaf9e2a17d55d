// Package rules judges queries batch by batch: rule files, signals compiled from
// expressions, detectors, and the life of an alert from pending to resolved. It is
// pure: no goroutine, no wall clock, no network. Time comes in with the events.
package rules
