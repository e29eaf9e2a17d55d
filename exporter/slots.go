package exporter

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Slot is a gauge that another part of the program sets. The zero Slot ignores
// what it is set to.
type Slot struct{ index, gen uint32 } // gen starts at 1

// slotTable holds the gauges that are set from outside. They are the values of a
// query that nobody asks.
type slotTable struct {
	q     *query
	byKey map[string]Slot
	known map[Slot]slotKey
	gens  []uint32 // by index; guarded by q.mu
}

type slotKey struct {
	key   string
	query string // value of query_id, empty where the labels have none
}

func newSlotTable(x *Exporter) *slotTable {
	q := x.newQuery("")
	return &slotTable{q: q, byKey: map[string]Slot{}, known: map[Slot]slotKey{}}
}

// slotPrefix is what names of families made by Slot begin with.
const slotPrefix = "stategauge_"

// Slot returns the gauge of the given family and labels, making it absent at
// first; the same family and labels give the same Slot. The name must begin with
// stategauge_ and be one that no other family has; the help that counts is that
// of the family's first slot. Labels without a value or with an unusable name are
// left out. Where a name or a limit forbids the series, the Slot returned ignores
// what it is set to, and the fact is counted.
//
// A slot whose labels name a query in query_id leaves the page when that query's
// series go, until it is set again. Whoever asked for a slot drops it.
func (x *Exporter) Slot(family, help string, labels ...event.Label) Slot {
	t := x.slots
	pairs, query := x.slotLabels(labels)
	ex := extra(pairs...)
	key := family + "{" + string(ex.text)
	t.q.owner.Lock()
	defer t.q.owner.Unlock()
	if s, ok := t.byKey[key]; ok {
		return s
	}
	s, reason := x.placeSlot(family, help, pairs)
	if reason != "" {
		x.drop(reason, t.q)
		return Slot{}
	}
	t.byKey[key] = s
	t.known[s] = slotKey{key, query}
	return s
}

// slotLabels returns the usable labels sorted by name, and the value of query_id.
func (x *Exporter) slotLabels(in []event.Label) (out []event.Label, query string) {
	for _, l := range in {
		repeat := slices.ContainsFunc(out, func(o event.Label) bool { return o.Name == l.Name })
		if l.Value == "" || repeat || !classicName(l.Name) || strings.Contains(l.Name, ":") || strings.HasPrefix(l.Name, "__") {
			continue
		}
		v := cleanValue(l.Value, x.o.LabelBytes)
		if l.Name == "query_id" {
			v = cleanID(event.QueryID(l.Value), x.o.LabelBytes)
			query = v
		}
		out = append(out, event.Label{Name: l.Name, Value: v})
	}
	slices.SortFunc(out, func(a, b event.Label) int { return strings.Compare(a.Name, b.Name) })
	return out, query
}

// placeSlot makes the series of a slot and, if need be, its family.
func (x *Exporter) placeSlot(name, help string, pairs []event.Label) (Slot, string) {
	t := x.slots
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.byName[name]
	if f == nil && (!classicName(name) || !strings.HasPrefix(name, slotPrefix) || reservedName(name)) || f != nil && !f.slots {
		return Slot{}, dropName
	}
	if reason := x.admit(t.q, gaugeWeight); reason != "" {
		return Slot{}, reason
	}
	if f == nil {
		f = newFamily(name, help, "", gauge, scaleOf(1))
		f.dynamic, f.slots = true, true
		x.addFamily(f)
	}
	l := &labels{}
	l.render("", pairs)
	index := x.place(t.q, f, l, nil, nil)
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	for int(index) >= len(t.gens) {
		t.gens = append(t.gens, 1)
	}
	return Slot{index, t.gens[index]}, ""
}

// Set gives a slot its value; NaN takes it off the page. It does not allocate.
func (x *Exporter) Set(s Slot, v float64) {
	t := x.slots
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if s.gen != 0 && int(s.index) < len(t.gens) && t.gens[s.index] == s.gen {
		t.q.values[s.index] = v
	}
}

// Drop ends a slot's series. Dropping one again, or one that never was, does nothing.
func (x *Exporter) Drop(s Slot) {
	t := x.slots
	t.q.owner.Lock()
	defer t.q.owner.Unlock()
	x.dropSlot(s)
}

// dropSlot ends a slot. The caller owns the table's query.
func (x *Exporter) dropSlot(s Slot) {
	t := x.slots
	key, ok := t.known[s]
	if !ok {
		return
	}
	delete(t.known, s)
	delete(t.byKey, key.key)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(t.q.refs[s.index])
	t.q.refs[s.index] = ref{}
	t.q.count -= gaugeWeight
	x.slotted.Add(-gaugeWeight)
	t.q.free = append(t.q.free, s.index)
	t.q.mu.Lock()
	t.q.values[s.index] = absent
	t.gens[s.index]++
	t.q.mu.Unlock()
}

// blankSlotsOf takes the slots off the page whose labels name a query.
func (x *Exporter) blankSlotsOf(query string) {
	t := x.slots
	t.q.owner.Lock()
	defer t.q.owner.Unlock()
	for s, k := range t.known {
		if k.query == query {
			x.Set(s, absent)
		}
	}
}
