package rules

import "time"

// The bounds of Lookback. A minute is what most triggers are; a window counted in
// batches of a slower one fills again by itself.
const (
	minuteBatch = time.Minute
	minLookback = time.Hour
	maxLookback = 24 * time.Hour
)

// historian is a detector that looks further back than its evidence.
type historian interface{ lookback() Extent }

func (d *rising) lookback() Extent {
	out := longer(d.spec.Over, d.spec.AgreeOver)
	if l := d.spec.Level; l != nil {
		out = longer(out, oneAfterOther(l.Recent, l.Before))
	}
	return out
}

func (d *reaches) lookback() Extent { return longer(d.spec.Over, d.spec.AgreeOver) }

func (d *shifted) lookback() Extent { return oneAfterOther(d.spec.Baseline, d.spec.Recent) }

func longer(a, b Extent) Extent { return Extent{max(a.Batches, b.Batches), max(a.Ms, b.Ms)} }

func oneAfterOther(a, b Extent) Extent { return Extent{a.Batches + b.Batches, a.Ms + b.Ms} }

// Lookback is how much of a query's past the rules need to be read again by a
// process that has not seen it: the longest window with the longest hold, batches
// counted as a minute each, and at least an hour, at most a day.
func (p *Pack) Lookback() time.Duration {
	longest := minLookback
	for _, r := range p.rules {
		longest = max(longest, r.looksBack())
	}
	return min(longest, maxLookback)
}

func (r *rule) looksBack() time.Duration {
	window := r.detector.span()
	if d, ok := r.detector.(historian); ok {
		window = d.lookback()
	}
	return window.usual() + r.forExtent.usual()
}

// usual is how long an extent lasts where triggers come as they mostly do.
func (e Extent) usual() time.Duration {
	return max(time.Duration(e.Batches)*minuteBatch, time.Duration(e.Ms)*time.Millisecond)
}
