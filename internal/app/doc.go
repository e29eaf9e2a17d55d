// Package app puts the parts together into a running daemon: configuration,
// shards, sources, rules, delivery, HTTP routes, start, stop and reload. It is the
// only package that knows all the others; everything that waits or talks and is
// not a source or a notifier lives here.
package app
