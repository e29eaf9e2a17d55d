// Package promql holds the trend tests beside PromQL itself: Prometheus' own engine and
// storage, which are too large to be a dependency of the daemon and so live in a module
// of their own. It has no code but its benchmark.
package promql
