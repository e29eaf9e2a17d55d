package exporter

// scrape is what one scrape works with: a copy of all values, and the page.
// Scrapes are pooled and keep their memory.
type scrape struct {
	page     []byte
	values   []float64
	base     []uint32 // by query: where its values begin
	hists    []hist
	histBase []uint32
	native   []nativeBucket
}

// acquire returns a scrape to work with.
func (x *Exporter) acquire() *scrape {
	select {
	case sc := <-x.buffers:
		sc.page = sc.page[:0]
		return sc
	default:
		return &scrape{}
	}
}

// release gives a scrape back. A page that has shrunk far below its buffer lets
// the buffer go.
func (x *Exporter) release(sc *scrape) {
	const keep = 1 << 20
	if cap(sc.page) > keep && len(sc.page) < cap(sc.page)/8 {
		sc.page = nil
	}
	select {
	case x.buffers <- sc:
	default:
	}
}

// snapshot copies the values of all queries, those of each query at one moment.
// The caller holds mu.
func (x *Exporter) snapshot(sc *scrape) {
	sc.values, sc.base = sc.values[:0], sc.base[:0]
	sc.hists, sc.histBase, sc.native = sc.hists[:0], sc.histBase[:0], sc.native[:0]
	for _, q := range x.queries {
		sc.base = append(sc.base, uint32(len(sc.values)))
		sc.histBase = append(sc.histBase, uint32(len(sc.hists)))
		if q != nil {
			sc.copy(q)
		}
	}
}

func (sc *scrape) copy(q *query) {
	q.mu.Lock()
	defer q.mu.Unlock()
	sc.values = append(sc.values, q.values...)
	for _, h := range q.hists {
		sc.hists = append(sc.hists, *h)
		at := len(sc.native)
		sc.native = append(sc.native, h.native...)
		sc.hists[len(sc.hists)-1].native = sc.native[at:len(sc.native):len(sc.native)]
	}
}

// value returns the raw value of a gauge or counter.
func (sc *scrape) value(s *series) float64 { return sc.values[sc.base[s.query]+s.slot] }

// hist returns the copy of a histogram.
func (sc *scrape) hist(s *series) *hist { return &sc.hists[sc.histBase[s.query]+s.slot] }
