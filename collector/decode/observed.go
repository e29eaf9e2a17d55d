package decode

import (
	"strconv"

	"github.com/stategauge/stategauge/event"
)

// observedRow is one observation in the event log's form, whose values and names
// come in two lists.
type observedRow struct {
	places []place  // of its numeric values
	names  []string // of all its columns, from the schema
}

// place says where the value of a column stands in Batch.Observed.
type place struct{ observed, column int }

// observed parses observedMetrics: for each name an object of columns, or the
// event log's pair of values and schema. Numeric columns are kept.
func (d *Decoder) observed() {
	d.repeated(len(d.batch.Observed) > 0)
	d.batch.Observed = d.batch.Observed[:0]
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		name := d.intern(key)
		if d.open('{') {
			d.observation(name)
		}
	}
}

// observation parses the columns of one observation.
func (d *Decoder) observation(name string) {
	d.row.places, d.row.names = d.row.places[:0], d.row.names[:0]
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			break
		}
		switch ch := d.c.peek(); {
		case ch == '[' && string(key) == "values":
			d.observedValues(name)
		case ch == '{' && string(key) == "schema":
			d.schema()
		case isNumber(ch):
			d.column(name, d.intern(key))
		default:
			d.c.skip()
		}
	}
	d.nameColumns()
}

// isNumber reports whether a value that begins with ch can only be a number.
func isNumber(ch byte) bool { return ch == '-' || ch-'0' <= 9 }

// column parses a numeric column of an observation.
func (d *Decoder) column(name, column string) {
	b := d.batch
	if !d.room() {
		d.c.rec.giveUp()
		d.c.skip()
		return
	}
	v := d.c.number(slot{kind: slotObserved, id: uint32(len(b.Observed))})
	if v != v {
		d.c.rec.giveUp()
		return
	}
	d.unknown++
	b.Observed = append(b.Observed, event.Observed{Name: name, Column: column, Value: v})
}

// observedValues parses the values of an observation, whose names may come before
// or after them.
func (d *Decoder) observedValues(name string) {
	d.c.enter()
	for i := 0; d.c.element(i == 0); i++ {
		if !isNumber(d.c.peek()) {
			d.c.skip()
			continue
		}
		n := len(d.batch.Observed)
		d.column(name, "")
		if len(d.batch.Observed) > n {
			d.row.places = append(d.row.places, place{n, i})
		}
	}
}

// schema parses the names of an observation's columns.
func (d *Decoder) schema() {
	d.c.enter()
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		if string(key) != "fields" {
			d.c.skip()
			continue
		}
		if !d.open('[') {
			continue
		}
		for one := true; d.c.element(one); one = false {
			d.row.names = append(d.row.names, d.fieldName())
		}
	}
}

// fieldName parses one field of a schema.
func (d *Decoder) fieldName() (name string) {
	if !d.open('{') {
		return ""
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return name
		}
		if string(key) == "name" {
			name = d.intern(d.c.text())
			continue
		}
		d.c.skip()
	}
}

// nameColumns gives the values of an observation their names, or their numbers
// where the schema is missing.
func (d *Decoder) nameColumns() {
	for _, p := range d.row.places {
		column := &d.batch.Observed[p.observed].Column
		if p.column < len(d.row.names) && d.row.names[p.column] != "" {
			*column = d.row.names[p.column]
			continue
		}
		*column = strconv.Itoa(p.column)
	}
}
