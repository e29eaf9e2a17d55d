// Package rules judges queries batch by batch: rule files, signals compiled from
// expressions, detectors, and the life of an alert from pending to resolved. It is
// pure: no goroutine, no wall clock, no network. Time comes in with the events.
//
// Load compiles rule files into a Pack: loader.go and pack.go put a file together,
// expression.go and operators.go turn expressions into closures, names.go says
// which names they know, template.go and decorate.go compile labels and
// annotations. An Engine (engine.go) keeps a queryState per query (query.go) and in
// it a series per rule and operator: a detector's tracker, the evidence beside it
// (evidence.go), and the alert, if there is one (life.go, render.go).
//
// What happens to a query, and silence, is kept in its story (story.go,
// happened.go, shape.go, reloaded.go, succession.go, heartbeats.go); the detectors
// of events (silent.go, failed.go, restarting.go, changed.go, sender.go) are views
// of it and keep nothing. retire.go says which alerts outlive their query.
//
// What an engine knows can be saved, query by query, and loaded into another one:
// save.go, saverest.go, and the visits of savestory.go, savecolumns.go and
// savetracker.go, each of which serves both ways by way of codec.go. Whatever judging
// depends on is carried; memo.go and the like are worked out anew.
//
// Another detector is a type with compile and newTracker, a field in
// detectorSpecs and a line in its list (detector.go), and a carry for its tracker;
// rising.go is the model.
//
// Ground rules that hold for every detector: only executed batches with data, in
// order, feed windows; the warm-up of a run is left out; windows break where a run
// or a long pause does; a value that cannot be true is no value; silence resolves
// nothing.
package rules
