package track

import (
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

const (
	// atOnceMs is the longest pause after which a trigger counts as having followed
	// at once; Spark polls every 10 ms and needs some more to begin.
	atOnceMs = 100
	// polledMs: a batch whose rate says that the trigger before began less than this
	// ago, though the batch before began long ago, ended a spell of polling, which
	// only the default trigger does that fast.
	polledMs = 500
	// minPairs and minFree are the evidence below which nothing is inferred.
	minPairs = 5
	minFree  = 5
	// minRealTimeMs is the shortest batch that real-time mode allows.
	minRealTimeMs = 5000
)

// beat is one executed batch as trigger inference sees it.
type beat struct {
	startMs int64
	durMs   int32
	flags   beatFlags
}

type beatFlags uint8

const (
	adjacent beatFlags = 1 << iota // follows the beat before without a gap in the ids
	polled                         // ended a spell of fast polling
	hollow                         // its phases explain little of its duration
)

// beats keeps the newest executed batches of a run, oldest first from next.
type beats struct {
	ring [memory]beat
	n    uint8
	next uint8
}

func (b *beats) add(x beat) {
	b.ring[b.next] = x
	b.next = (b.next + 1) % memory
	b.n = min(b.n+1, memory)
}

func (b *beats) reset() { b.n, b.next = 0, 0 }

func (b *beats) last() *beat {
	if b.n == 0 {
		return nil
	}
	return &b.ring[(b.next+memory-1)%memory]
}

// ordered copies the beats into dst, oldest first.
func (b *beats) ordered(dst *[memory]beat) []beat {
	from := (b.next + memory - b.n) % memory
	for i := range b.n {
		dst[i] = b.ring[(from+i)%memory]
	}
	return dst[:b.n]
}

// medianDuration returns milliseconds, NaN while nothing is known.
func (b *beats) medianDuration() float64 {
	var tmp [memory]float32
	for i := range b.n {
		tmp[i] = float32(b.ring[i].durMs)
	}
	return median32(tmp[:b.n])
}

// infer tells the trigger of a run from its batches: its kind and the interval in
// milliseconds (NaN where the kind has none). known is the interval believed so
// far, NaN if none. TriggerUnknown where the batches do not tell.
//
// Interval triggers start on a grid, except that a batch which overran is
// followed at once: only starts after a pause speak for a grid, and starts at
// once speak against it only where the batch before ended within its interval.
func (b *beats) infer(known float64) (event.TriggerKind, float64) {
	var tmp [memory]beat
	bs := b.ordered(&tmp)
	if ms, ok := realTime(bs); ok {
		return event.TriggerRealTime, ms
	}
	p := pairUp(bs)
	if t := grid(p.diffs()); t > 0 && p.free > p.polled && p.agrees(bs, t, p.lastFree) {
		return event.TriggerInterval, t
	}
	busy := p.atOnce + p.polled
	if busy < minPairs || float64(busy) < 0.8*float64(p.pairs) {
		return event.TriggerUnknown, math.NaN()
	}
	if known > 0 && p.polled == 0 && overran(bs, known) {
		return event.TriggerInterval, known
	}
	return event.TriggerDefault, math.NaN()
}

// realTime recognises batches of one configured, constant length that are not
// explained by work.
func realTime(bs []beat) (ms float64, ok bool) {
	if len(bs) < 8 {
		return 0, false
	}
	lo, hi, n := int32(math.MaxInt32), int32(0), 0
	for _, x := range bs {
		lo, hi = min(lo, x.durMs), max(hi, x.durMs)
		if x.flags&hollow != 0 {
			n++
		}
	}
	if lo < minRealTimeMs || n < len(bs)*3/4 || float64(hi-lo) > 0.02*float64(lo)+100 {
		return 0, false
	}
	return roundMs(float64(lo+hi) / 2), true
}

// pairs sums up how batches followed each other.
type pairs struct {
	pairs, atOnce, polled, free int
	lastFree                    int64 // start of the newest batch that began after a pause
	d                           [memory]float64
	nd                          int
}

func (p *pairs) diffs() []float64 { return p.d[:p.nd] }

func pairUp(bs []beat) *pairs {
	p := &pairs{lastFree: event.Absent}
	for i := 1; i < len(bs); i++ {
		if bs[i].flags&adjacent == 0 {
			continue
		}
		p.pairs++
		switch pause := bs[i].startMs - bs[i-1].startMs - int64(bs[i-1].durMs); {
		case pause <= atOnceMs:
			p.atOnce++
		case bs[i].flags&polled != 0:
			p.polled++
		default:
			p.addFree(bs[i].startMs)
		}
	}
	return p
}

func (p *pairs) addFree(start int64) {
	p.free++
	if p.lastFree != event.Absent {
		p.d[p.nd] = float64(start - p.lastFree)
		p.nd++
	}
	p.lastFree = start
}

// agrees reports whether the starts at once can be overruns of interval t on the
// grid through phase.
func (p *pairs) agrees(bs []beat, t float64, phase int64) bool {
	against := 0
	for i := 1; i < len(bs); i++ {
		prev := &bs[i-1]
		end := prev.startMs + int64(prev.durMs)
		if bs[i].flags&adjacent == 0 || bs[i].startMs-end > atOnceMs {
			continue
		}
		steps := math.Floor((float64(prev.startMs-phase)+tolerance(t))/t) + 1
		if float64(end-phase) < steps*t-tolerance(t)-atOnceMs {
			against++
		}
	}
	return float64(against) <= 0.2*float64(p.pairs)
}

// overran reports whether nearly every batch lasted longer than the interval.
func overran(bs []beat, interval float64) bool {
	n := 0
	for _, x := range bs {
		if float64(x.durMs) >= 0.95*interval {
			n++
		}
	}
	return float64(n) >= 0.8*float64(len(bs))
}

func tolerance(t float64) float64 { return min(0.05*t, 1000) }

// grid returns the largest interval of which nearly all distances are multiples,
// 0 where there is none.
func grid(d []float64) float64 {
	if len(d) < minFree {
		return 0
	}
	var tmp [memory]float64
	s := tmp[:copy(tmp[:], d)]
	slices.Sort(s)
	best := 0.0
	for _, from := range [...]float64{s[0], s[1], s[len(s)/4], s[len(s)/2]} {
		for parts := 1.0; parts <= 6; parts++ {
			t := from / parts
			if t >= 100 && t > best*1.02 && fits(s, t) {
				best = t
			}
		}
	}
	if best == 0 {
		return 0
	}
	return refine(s, best)
}

func fits(d []float64, t float64) bool {
	n := 0
	for _, v := range d {
		if k := math.Round(v / t); k >= 1 && math.Abs(v-k*t) <= tolerance(t) {
			n++
		}
	}
	return float64(n) >= 0.85*float64(len(d))
}

// refine takes the middle of what each fitting distance says.
func refine(d []float64, t float64) float64 {
	var tmp [memory]float64
	each := tmp[:0]
	for _, v := range d {
		if k := math.Round(v / t); k >= 1 && math.Abs(v-k*t) <= tolerance(t) {
			each = append(each, v/k)
		}
	}
	slices.Sort(each)
	return roundMs(each[len(each)/2])
}

// roundMs rounds to a whole second where that is near enough, because people
// configure whole numbers, otherwise to 10 ms.
func roundMs(ms float64) float64 {
	if s := math.Round(ms/1000) * 1000; s > 0 && math.Abs(ms-s) <= 0.01*s {
		return s
	}
	return math.Round(ms/10) * 10
}
