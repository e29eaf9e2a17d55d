// Package rollup sums up what a signal said within an hour: what is left of the
// figures once the batches themselves are no longer kept. It is pure: times come
// with the values.
//
// # Quantiles
//
// Median and 95th percentile of an hour are exact, over every value that came: of n
// values in order, x[0] to x[n-1], the quantile q lies at h = (n-1)q, linearly
// between the values on both sides (R's type 7, and the default of NumPy and of
// spreadsheets). A single value is all of its quantiles.
//
// Quantiles do not add up. Where hours are merged into longer steps, count, min,
// max and last stay exact, while median and 95th percentile become the weighted
// medians of the hours' own, weighted by count: what a typical hour said. That is
// an approximation; it lies between the lowest and the highest of the hours'
// figures, and is exact where the hours are alike.
package rollup

import (
	"math"
	"slices"
)

// HourMs is the length of an hour in milliseconds.
const HourMs = 60 * 60 * 1000

// Hour is a signal within one hour, in the signal's unit; after a Merge, within a
// step of several hours.
type Hour struct {
	StartMs                     int64 // Unix milliseconds, a whole hour; after a Merge the begin of the step
	Count                       int   // values that came, at least 1
	Min, Median, P95, Max, Last float64
}

// Start returns the begin of the hour that a moment lies in, both Unix
// milliseconds.
func Start(atMs int64) int64 {
	rest := atMs % HourMs
	if rest < 0 {
		rest += HourMs
	}
	return atMs - rest
}

// Of sums up values that came in an hour, in the order of their times. It puts
// values into order of size. Without values there is nothing to sum up, and ok is
// false. NaN and infinite values must not be among them.
func Of(startMs int64, values []float64) (h Hour, ok bool) {
	n := len(values)
	if n == 0 {
		return Hour{}, false
	}
	h = Hour{StartMs: startMs, Count: n, Last: values[n-1]}
	slices.Sort(values)
	h.Min, h.Max = values[0], values[n-1]
	h.Median, h.P95 = quantile(values, 0.5), quantile(values, 0.95)
	return h, true
}

// quantile returns the quantile q of sorted values, as the package says.
func quantile(sorted []float64, q float64) float64 {
	at := float64(len(sorted)-1) * q
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return between(sorted[i], sorted[i+1], at-float64(i))
}

// between returns the point at share f of the way from a to b, never outside, also
// where the distance is beyond what a float64 holds.
func between(a, b, f float64) float64 {
	d := b - a
	if math.IsInf(d, 0) {
		return a*(1-f) + b*f
	}
	return min(a+d*f, b)
}

// finite reports whether v can be summed up: absent values are NaN.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
