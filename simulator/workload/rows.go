package workload

import (
	"math"
	"math/rand/v2"

	"github.com/stategauge/stategauge/simulator/seed"
)

const (
	copyAfter = 5.0 // seconds within which the copy of a row comes
	maxLateMs = 400 * 86_400_000
)

// maker makes up rows. Each is a function of its offset and of when it arrived,
// so that reading again gives the same rows, in whatever batches.
type maker struct {
	cfg      *Config
	arrivals *arrivals
	base     uint64
	stride   int64 // offsets between two rows of one partition
	early    bool  // event time is when the row's turn began, as the rate source has it
	keys     keySpace
	random   *stream    // of the row that is being made
	tail     *rand.Rand // draws from random
}

func newMaker(cfg *Config, a *arrivals, stride int) maker {
	random := new(stream)
	return maker{
		cfg: cfg, arrivals: a, stride: int64(stride), random: random, tail: rand.New(random),
		base: seed.Mix(cfg.Seed, seed.ForRows, uint64(cfg.Query), uint64(cfg.Source)),
	}
}

// fill appends the rows of every step-th offset from first up to, not including,
// end.
func (m *maker) fill(rows []Row, first, end, step int64) []Row {
	if first >= end {
		return rows
	}
	at := m.arrivals.find(first)
	s := &m.arrivals.segments[at]
	for offset := first; offset < end; offset += step {
		for offset >= s.end() {
			at++
			s = &m.arrivals.segments[at]
		}
		rows = append(rows, m.row(offset, s))
	}
	return rows
}

// row is the row of an offset within a segment.
func (m *maker) row(offset int64, s *segment) Row {
	*m.random = rowStream(m.base, offset)
	if m.cfg.Duplicates > 0 && m.copies(offset) {
		return m.copyOf(offset)
	}
	row := m.draw(offset, s)
	if s.futureMs != 0 && offset == s.first {
		row.EventMs = s.arrivalMs(offset, m.early) + s.futureMs
	}
	return row
}

// copies tells whether the row of an offset is a copy. It always takes one number.
func (m *maker) copies(offset int64) bool {
	share := m.cfg.Duplicates / (1 + m.cfg.Duplicates)
	return m.random.uniform() < share && offset >= m.stride
}

// copyOf repeats an earlier row of the partition, one that is no copy itself.
func (m *maker) copyOf(offset int64) Row {
	reach := max(1, int64(copyAfter*m.cfg.RowsPerSecond)/m.stride)
	for again := true; again; again = m.copies(offset) {
		offset -= m.stride * (1 + m.random.below(min(reach, offset/m.stride)))
		*m.random = rowStream(m.base, offset)
	}
	row := m.draw(offset, &m.arrivals.segments[m.arrivals.find(offset)])
	row.Again = true
	return row
}

// draw makes up what a row carries.
func (m *maker) draw(offset int64, s *segment) Row {
	arrivedMs := s.arrivalMs(offset, m.early)
	return Row{
		Key:     m.key(offset, arrivedMs, s.situation),
		EventMs: m.eventMs(arrivedMs, s.situation),
		Bytes:   int32(float64(m.cfg.RowBytes) * min(max(s.situation.RowBytes, 0), 1024)),
		Side:    m.cfg.Side,
	}
}

// eventMs is the arrival less the lateness, or less than where event time stands.
func (m *maker) eventMs(arrivedMs int64, s *situation) int64 {
	l := &m.cfg.Late
	var lateMs float64
	if l.Typical > 0 {
		lateMs = float64(l.Typical.Milliseconds()) / math.Ln2 * m.tail.ExpFloat64()
	}
	if l.Share > 0 && m.random.uniform() < l.Share {
		lateMs += float64(l.By.Milliseconds())
	}
	if s.Late > 0 && m.random.uniform() < s.Late {
		lateMs += float64(l.Beyond.Milliseconds()) * (1 + m.tail.ExpFloat64()/4)
	}
	if s.Frozen {
		arrivedMs = min(arrivedMs, s.frozenMs)
	}
	lateMs += float64(max(s.DelayMs, 0))
	return arrivedMs - int64(min(lateMs, maxLateMs))
}

// key draws a row's key.
func (m *maker) key(offset, arrivedMs int64, s *situation) uint64 {
	hot := s.Skew > 0 && m.random.uniform() < s.Skew
	if m.cfg.Keys.Unique {
		if hot {
			return 0
		}
		return uint64(offset) + 1
	}
	m.keys.move(m.cfg, arrivedMs, s.KeySpace)
	if hot {
		return m.keys.key(0)
	}
	return m.keys.key(m.keys.rank(m.random))
}

// keySpace is which keys there are in one second.
type keySpace struct {
	fromMs, untilMs int64 // of the second
	factor          float64
	first           int64 // smallest key
	count           int64
	newest          bool // the newest key is the commonest, as in a window that moves
	skewed          bool
	zipf            zipf
}

// move makes the key space that of the second of an arrival.
func (k *keySpace) move(cfg *Config, arrivedMs int64, factor float64) {
	if arrivedMs >= k.fromMs && arrivedMs < k.untilMs && k.factor == factor {
		return
	}
	second := floorDiv(arrivedMs-cfg.StartMs, 1000)
	passed := int64(cfg.Keys.NewPerSecond * float64(max(second, 0)))
	first, count := int64(0), cfg.Keys.Count
	if cfg.Keys.Grow {
		count += passed
	} else {
		first = passed
	}
	k.resize(max(1, int64(math.Round(float64(count)*min(max(factor, 0), 1e6)))), cfg.Keys.Skew)
	k.fromMs = cfg.StartMs + second*1000
	k.untilMs = k.fromMs + 1000
	k.factor, k.first = factor, first
	k.newest = cfg.Keys.NewPerSecond > 0 && !cfg.Keys.Grow
}

func (k *keySpace) resize(count int64, skew float64) {
	if count == k.count {
		return
	}
	k.count = count
	if k.skewed = skew > 0 && count > 1; k.skewed {
		k.zipf.exponent = skew
		k.zipf.resize(count)
	}
}

func (k *keySpace) rank(random *stream) int64 {
	if k.skewed {
		return k.zipf.rank(random)
	}
	return random.below(k.count)
}

func (k *keySpace) key(rank int64) uint64 {
	if k.newest {
		rank = k.count - 1 - rank
	}
	return uint64(k.first + rank)
}
