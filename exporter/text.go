package exporter

import (
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// writeText appends all families to the page, as text 0.0.4 or as OpenMetrics
// 1.0 without its end. The caller holds mu and took the snapshot.
func (x *Exporter) writeText(sc *scrape, om bool) {
	for _, f := range x.families {
		if len(f.series) == 0 {
			continue
		}
		head := f.text
		if om {
			head = f.om
		}
		start := len(sc.page)
		sc.page = append(sc.page, head...)
		begun := len(sc.page)
		if f.kind == histogram {
			f.textHistograms(sc, om)
		} else {
			sc.page = f.textSamples(sc.page, sc, om)
		}
		if len(sc.page) == begun {
			sc.page = sc.page[:start] // all absent: no family either
		}
		sc.pack()
	}
}

// textSamples appends the lines of a gauge or counter family.
func (f *family) textSamples(b []byte, sc *scrape, om bool) []byte {
	for i := range f.series {
		s := &f.series[i]
		v := sc.value(s)
		if v != v { // absent
			continue
		}
		b = append(b, f.open...)
		b = append(b, s.labels.text...)
		if s.extra != nil {
			b = append(b, s.extra.text...)
		}
		b = append(b, '}', ' ')
		b = f.scale.append(b, v)
		b = append(b, '\n')
		if om && s.born != nil {
			b = f.appendCreated(b, s)
		}
	}
	return b
}

// appendCreated appends the time at which the series was 0.
func (f *family) appendCreated(b []byte, s *series) []byte {
	b = f.appendOpen(b, s, "_created")
	b = append(b, '}', ' ')
	b = append(b, s.born.text...)
	return append(b, '\n')
}

// appendOpen appends name, suffix and labels of a sample, without the closing
// brace. The name of a counter loses its _total before the suffix.
func (f *family) appendOpen(b []byte, s *series, suffix string) []byte {
	b = append(b, f.base...)
	b = append(b, suffix...)
	b = append(b, '{')
	b = append(b, s.labels.text...)
	if s.extra != nil {
		b = append(b, s.extra.text...)
	}
	return b
}

// textHistograms appends the lines of a histogram family: the classic buckets,
// since text has no native ones.
func (f *family) textHistograms(sc *scrape, om bool) {
	b := sc.page
	for i := range f.series {
		s := &f.series[i]
		h := sc.hist(s)
		b = f.textBuckets(b, s, h, om)
		b = append(f.appendOpen(b, s, "_sum"), '}', ' ')
		b = append(f.scale.append(b, h.sum), '\n')
		b = append(f.appendOpen(b, s, "_count"), '}', ' ')
		b = append(strconv.AppendUint(b, h.count, 10), '\n')
		if om && s.born != nil {
			b = f.appendCreated(b, s)
		}
	}
	sc.page = b
}

// textBuckets appends the buckets, which pages want cumulative and we keep apart so
// that an observation touches one of them.
func (f *family) textBuckets(b []byte, s *series, h *hist, om bool) []byte {
	le := f.bucketText
	if om {
		le = f.bucketOM
	}
	total := uint64(0)
	for i := range le {
		total += h.counts[i]
		b = append(f.appendOpen(b, s, "_bucket"), ',')
		b = append(b, le[i]...)
		b = append(b, '}', ' ')
		b = strconv.AppendUint(b, total, 10)
		if om && h.exemplars[i].set {
			b = h.exemplars[i].appendText(b)
		}
		b = append(b, '\n')
	}
	return b
}

// appendText appends the exemplar as OpenMetrics has it: behind the value.
func (e *exemplar) appendText(b []byte) []byte {
	b = append(b, ` # {batch_id="`...)
	b = strconv.AppendInt(b, e.batch, 10)
	b = append(b, `"} `...)
	b = strconv.AppendFloat(b, e.value, 'g', -1, 64)
	if e.atMs != event.Absent {
		b = appendDecimal(append(b, ' '), e.atMs, 3)
	}
	return b
}
