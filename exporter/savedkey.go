package exporter

import (
	"errors"

	"github.com/stategauge/stategauge/event"
)

// savedKey names a series of an entity in what is saved. Rows of the catalog go by
// their ids, which are never used again for something else; what is derived from
// them by numbers that are written down in savedNumbers; the rest by its labels.
type savedKey struct {
	class    uint8
	id       uint64
	name     string  // phase, observation or key
	column   string  // observed column
	quantile float64 // percentile
}

const (
	keyRow     uint8 = iota // a row of the catalog
	keyLast                 // the newest batch of a row
	keyDerived              // by number
	keyPhase                // work of a phase that the catalog does not have
	keyLastPhase
	keyObserved
	keyQuantile // id is the row
	keyUnknown  // a metric that the catalog does not have
	numKeyClasses
)

// savedNumbers are the numbers of derived series. They go to disk: append only.
var savedNumbers = []struct {
	number uint64
	first  defID
	count  defID // so many numbers for so many definitions in a row
}{
	{1, defInfo, 1},
	{2, defLastEvent, 1},
	{3, defLastDuration, 1},
	{4, defUtilization, 1},
	{5, defBatchesData, 1},
	{6, defBatchesNoData, 1},
	{7, defUnaccounted, 1},
	{8, defLastUnaccounted, 1},
	{9, defBacklog, 1},
	{10, defBatchHist, 1},
	{11, defSyncHist, 1},
	{16, defState, defStateEnd - defState},
	{32, defInterval, defIntervalEnd - defInterval},
	{48, defMissed, defMissedEnd - defMissed},
}

// keyTable translates between definitions and keys.
type keyTable struct {
	keys [numDefs]savedKey
	defs map[savedKey]defID
}

// newKeyTable builds the table from what define made.
func newKeyTable(p *plan) *keyTable {
	t := &keyTable{defs: map[savedKey]defID{}}
	add := func(d defID, k savedKey) {
		t.keys[d] = k
		t.defs[k] = d
	}
	for id := range defID(event.NumMetrics) {
		add(id, savedKey{class: keyRow, id: uint64(id)})
		if last := p.last[id]; last != 0 {
			add(last, savedKey{class: keyLast, id: uint64(id)})
		}
	}
	for _, n := range savedNumbers {
		for i := range n.count {
			add(n.first+i, savedKey{class: keyDerived, id: n.number + uint64(i)})
		}
	}
	return t
}

// visit carries the key: the class in the low bits, since ids are small.
func (k *savedKey) visit(c *saver) {
	v := k.id<<3 | uint64(k.class)
	c.uint(&v)
	k.class, k.id = uint8(v&7), v>>3
	switch k.class {
	case keyPhase, keyLastPhase, keyUnknown:
		c.str(&k.name)
	case keyObserved:
		c.str(&k.name)
		c.str(&k.column)
	case keyQuantile:
		if c.bits(&k.quantile); !(k.quantile >= 0 && k.quantile <= 1) || k.id >= event.NumMetrics {
			c.fail(errors.New("an impossible percentile"))
		}
	}
}
