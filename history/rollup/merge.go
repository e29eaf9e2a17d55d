package rollup

import (
	"cmp"
	"slices"
)

// Merge appends hours to out, put together in steps of stepMs milliseconds that
// are counted from fromMs, Unix milliseconds. An hour belongs to the step in which
// it begins; hours before fromMs are left out. The hours must come by their begin;
// of two with the same begin, such as those of two checkpoints of one lineage, the
// later in the list is the later one. A step that no hour belongs to is left out,
// and one shorter than an hour counts as an hour.
//
// Median and 95th percentile are approximations where a step has several hours: see
// the package.
func Merge(hours []Hour, fromMs, stepMs int64, out []Hour) []Hour {
	stepMs = max(stepMs, HourMs)
	for len(hours) > 0 {
		if hours[0].StartMs < fromMs {
			hours = hours[1:]
			continue
		}
		step := fromMs + (hours[0].StartMs-fromMs)/stepMs*stepMs
		n := 1
		for n < len(hours) && hours[n].StartMs-step < stepMs {
			n++
		}
		out = append(out, joined(step, hours[:n]))
		hours = hours[n:]
	}
	return out
}

func joined(startMs int64, hours []Hour) Hour {
	h := hours[0]
	h.StartMs = startMs
	if len(hours) == 1 {
		return h
	}
	for _, more := range hours[1:] {
		h.Count += more.Count
		h.Min, h.Max, h.Last = min(h.Min, more.Min), max(h.Max, more.Max), more.Last
	}
	h.Median = typical(hours, h.Count, func(h *Hour) float64 { return h.Median })
	h.P95 = typical(hours, h.Count, func(h *Hour) float64 { return h.P95 })
	return h
}

// weighed is a figure of an hour and how many values stand behind it.
type weighed struct {
	value float64
	count int
}

// typical is the weighted median: half the values stand behind figures up to it, and
// half behind figures from it on. Where two figures part them evenly it lies in the
// middle of the two.
func typical(hours []Hour, total int, of func(*Hour) float64) float64 {
	var room [32]weighed // a day at once without asking for memory
	all := room[:0]
	for i := range hours {
		all = append(all, weighed{of(&hours[i]), hours[i].Count})
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(a.value, b.value) })
	below := 0
	for i, w := range all {
		below += w.count
		if 2*below == total && i+1 < len(all) {
			return between(w.value, all[i+1].value, 0.5)
		}
		if 2*below >= total {
			return w.value
		}
	}
	return all[len(all)-1].value
}
