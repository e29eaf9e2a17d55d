package exporter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// kind is the type of a family.
type kind uint8

const (
	gauge kind = iota
	counter
	histogram
)

var (
	kindNames = [...]string{"gauge", "counter", "histogram"}
	dtoTypes  = [...]dto.MetricType{dto.MetricType_GAUGE, dto.MetricType_COUNTER, dto.MetricType_HISTOGRAM}
)

// family is one Prometheus family: what stands above its samples in each format,
// and its series. The list of series is guarded by Exporter.mu.
type family struct {
	name, help, unit string
	kind             kind
	scale            scale
	bounds           []float64 // upper bounds of the classic buckets, raw; histograms only
	bucketText       [][]byte  // le labels for text pages, +Inf last
	bucketOM         [][]byte  // le labels for OpenMetrics
	dynamic          bool      // made for an unknown key or a slot: goes with its last series
	slots            bool      // made for slots

	text, om, proto []byte // header of each format
	open            []byte // name{
	base            string // name without _total

	series []series
}

// series is one child of a family.
type series struct {
	labels *labels
	extra  *labels // nil where the family has no label of its own
	born   *stamp  // nil for gauges and where the time is not known
	query  uint32  // place in Exporter.queries
	slot   uint32  // place in the query's values, or histograms
}

// stamp is the time at which a counter was 0, in the forms that pages need. It
// is shared by the series that began together.
type stamp struct {
	ms    int64
	text  []byte
	proto []byte // length and content of a Timestamp
}

// newStamp returns nil for a time that is not known.
func newStamp(ms int64) *stamp {
	if ms <= 0 {
		return nil
	}
	return &stamp{
		ms:    ms,
		text:  appendDecimal(nil, ms, 3),
		proto: appendTimestamp(nil, 0, ms)[1:],
	}
}

// newFamily returns a family without series.
func newFamily(name, help, unit string, k kind, s scale) *family {
	f := &family{name: name, help: help, unit: unit, kind: k, scale: s, base: name}
	if k == counter {
		f.base = strings.TrimSuffix(name, "_total")
	}
	f.open = []byte(name + "{")
	f.text = header(name, help, kindNames[k], "", false)
	f.om = header(f.base, help, kindNames[k], unit, true)
	f.proto = appendString(nil, tagFamilyName, name)
	f.proto = appendString(f.proto, tagFamilyHelp, help)
	f.proto = append(f.proto, tagFamilyType, byte(dtoTypes[k]))
	if unit != "" {
		f.proto = appendString(f.proto, tagFamilyUnit, unit)
	}
	return f
}

// newHistogram returns a histogram family with the given upper bounds in
// exported units.
func newHistogram(name, help, unit string, s scale, bounds []float64) *family {
	f := newFamily(name, help, unit, histogram, s)
	for _, b := range bounds {
		f.bounds = append(f.bounds, b*s.div)
		short := strconv.FormatFloat(b, 'g', -1, 64)
		f.bucketText = append(f.bucketText, []byte(`le="`+short+`"`))
		if !strings.ContainsAny(short, ".e") {
			short += ".0" // OpenMetrics wants bounds to look like floats
		}
		f.bucketOM = append(f.bucketOM, []byte(`le="`+short+`"`))
	}
	inf := []byte(`le="+Inf"`)
	f.bucketText, f.bucketOM = append(f.bucketText, inf), append(f.bucketOM, inf)
	return f
}

func header(name, help, kind, unit string, om bool) []byte {
	b := append([]byte("# HELP "), name...)
	b = append(b, ' ')
	b = appendEscaped(b, help, om)
	b = append(b, "\n# TYPE "+name+" "+kind+"\n"...)
	if unit != "" {
		b = append(b, "# UNIT "+name+" "+unit+"\n"...)
	}
	return b
}

// gaugeWeight is what a gauge or counter counts for.
const gaugeWeight = 1

// weight is how many series one child of f counts for.
func (f *family) weight() int64 {
	if f.kind != histogram {
		return gaugeWeight
	}
	return int64(len(f.bounds)) + 3 // +Inf, sum and count
}

// addFamily puts f among the families, which stay sorted by name. The caller
// holds mu.
func (x *Exporter) addFamily(f *family) *family {
	i, _ := slices.BinarySearchFunc(x.families, f.name, func(g *family, name string) int { return cmp.Compare(g.name, name) })
	x.families = slices.Insert(x.families, i, f)
	x.byName[f.name] = f
	x.byName[f.base] = f
	return f
}

// dropFamily takes a dynamic family without series away. The caller holds mu.
func (x *Exporter) dropFamily(f *family) {
	i := slices.Index(x.families, f)
	x.families = slices.Delete(x.families, i, i+1)
	delete(x.byName, f.name)
	delete(x.byName, f.base)
	x.forgetKey(f)
}

// ref is where a query's series stands: its family and the place in it.
type ref struct {
	family *family
	pos    uint32
}

// add makes a series of q in f, without a value yet, and returns its place in
// q's values or histograms; false if a limit forbids it. The caller owns q.
func (x *Exporter) add(q *query, f *family, l, ex *labels, born *stamp) (uint32, bool) {
	x.mu.Lock()
	reason := x.admit(q, f.weight())
	if reason != "" {
		x.mu.Unlock()
		x.drop(reason, q)
		return 0, false
	}
	defer x.mu.Unlock()
	if f.kind == gauge {
		born = nil
	}
	return x.place(q, f, l, ex, born), true
}

// admit returns the limit that forbids q a series of weight w, empty if none,
// and books it. The caller holds mu.
func (x *Exporter) admit(q *query, w int64) string {
	slots, of := q == x.slots.q, x.slotted.Load()
	switch {
	case slots && of+w > slotLimit(x.o.Series):
		return dropTotal
	case slots: // what queries take up does not count
		x.slotted.Add(w)
	case x.total.Load()-of+w > int64(x.o.Series):
		return dropTotal
	case q.count+w > int64(x.o.SeriesPerQuery):
		return dropPerQuery
	}
	q.count += w
	x.total.Add(w)
	return ""
}

// slotLimit is how many slots there may be beside so many series of queries.
func slotLimit(series int) int64 { return int64(max(1000, series/10)) }

// place appends the series to f and gives it a slot in q. The caller holds mu.
func (x *Exporter) place(q *query, f *family, l, ex *labels, born *stamp) uint32 {
	var slot uint32
	at := ref{f, uint32(len(f.series))}
	if f.kind == histogram {
		slot = q.addHist(f, at)
	} else {
		slot = q.addValue(at)
	}
	f.series = append(f.series, series{labels: l, extra: ex, born: born, query: q.id, slot: slot})
	return slot
}

// remove takes the series at r away by moving the family's last one into its
// place. The caller holds mu.
func (x *Exporter) remove(r ref) {
	f, last := r.family, len(r.family.series)-1
	moved := f.series[last]
	f.series[r.pos] = moved
	f.series[last] = series{}
	f.series = f.series[:last]
	if int(r.pos) != last {
		x.queries[moved.query].refsOf(f)[moved.slot].pos = r.pos
	}
	x.total.Add(-f.weight())
	if last == 0 && f.dynamic {
		x.dropFamily(f)
		return
	}
	// A family keeps room for what it once held; give most of it back when nearly all has gone.
	if cap(f.series) > 64 && last < cap(f.series)/4 {
		f.series = append(make([]series, 0, 2*last), f.series...)
	}
}
