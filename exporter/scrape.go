package exporter

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// scrape is what one scrape works with: a copy of all values, and the page or,
// where it is compressed on the way, the part of it that is being written.
// Scrapes are pooled and keep their memory.
type scrape struct {
	page     []byte
	peak     int          // longest that page was
	zip      *gzip.Writer // nil for a plain page
	packed   bytes.Buffer // what zip has written
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
		sc.page, sc.peak = sc.page[:0], 0
		return sc
	default:
		return &scrape{}
	}
}

// release gives a scrape back. A page that has shrunk far below its buffer lets
// the buffer go.
func (x *Exporter) release(sc *scrape) {
	const keep = 1 << 20
	if cap(sc.page) > keep && max(sc.peak, len(sc.page)) < cap(sc.page)/8 {
		sc.page = nil
	}
	if sc.packed.Cap() > keep && sc.packed.Len() < sc.packed.Cap()/8 {
		sc.packed = bytes.Buffer{}
	}
	select {
	case x.buffers <- sc:
	default:
	}
}

// expect makes room for a plain page as long as the last one, so that it does not
// grow step by step, leaving its halves to the garbage collector.
func (sc *scrape) expect(bytes int64) {
	if sc.zip == nil && cap(sc.page) < int(bytes) {
		sc.page = slices.Grow(sc.page[:0], int(bytes+bytes/16))
	}
}

// zippers keeps writers at the fastest level: compression costs more than all the
// rest of a scrape, and a higher level saves little on pages.
var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return z
}}

// compress makes the page a compressed one.
func (sc *scrape) compress() {
	sc.packed.Reset()
	sc.zip = zippers.Get().(*gzip.Writer)
	sc.zip.Reset(&sc.packed)
}

// packAt is how much of a page is gathered before it is compressed.
const packAt = 128 << 10

// pack compresses what there is of the page if it is worth it. Nothing that was
// written before may be taken back afterwards.
func (sc *scrape) pack() {
	sc.peak = max(sc.peak, len(sc.page))
	if sc.zip == nil || len(sc.page) < packAt {
		return
	}
	_, _ = sc.zip.Write(sc.page) // to memory, which does not fail
	sc.page = sc.page[:0]
}

// finished ends the page and returns its bytes, which are the scrape's.
func (sc *scrape) finished() ([]byte, error) {
	sc.peak = max(sc.peak, len(sc.page))
	if sc.zip == nil {
		return sc.page, nil
	}
	z := sc.zip
	sc.zip = nil
	defer zippers.Put(z)
	_, err := z.Write(sc.page)
	err = errors.Join(err, z.Close())
	sc.page = sc.page[:0]
	return sc.packed.Bytes(), err
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
