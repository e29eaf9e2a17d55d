package operator

import (
	"errors"

	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// dedupe plays dropDuplicates and dropDuplicatesWithinWatermark: a key per row
// seen, with an empty value, or with the time when it expires.
type dedupe struct {
	within    bool // dropDuplicatesWithinWatermark
	timed     bool // event time is part of the key
	expires   bool // state is ever removed
	watermark bool
	delayMs   int64
	padding   int  // bytes of further columns in the key
	twice     bool // a key that is found is read again: asking whether it exists is a read of its own
}

func (o *Operator) chooseDedupe(conf *spark.Conf) error {
	s := o.spec
	d := &dedupe{
		within: s.Kind == spark.DedupeWithinWatermark, watermark: s.Watermark,
		delayMs: s.Delay.Milliseconds(), padding: words(s.ValueBytes),
		twice: conf.Provider == spark.RocksDB && spark.AtLeast(o.version, spark.V42),
	}
	if d.within {
		if !s.Watermark {
			return errors.New("needs a watermark")
		}
		if err := o.needs("dropDuplicatesWithinWatermark", spark.V35); err != nil {
			return err
		}
	}
	d.timed = s.EventTimeInKey && !d.within
	d.expires = d.within || s.Watermark && d.timed
	o.plan = d
	return nil
}

func (d *dedupe) run(x *task) error {
	x.ran(int64(len(x.Rows)))
	for i := range x.Rows {
		if err := d.row(x, &x.Rows[i]); err != nil {
			return err
		}
	}
	if !d.expires {
		return nil
	}
	return x.in(removing, d.evict)
}

func (d *dedupe) row(x *task, row *workload.Row) error {
	if d.watermark && x.late(row.EventMs) {
		x.r.Dropped++
		return nil
	}
	x.key = d.appendKey(x.key[:0], row)
	_, found, err := x.get(0, 0, x.key)
	if err != nil {
		return err
	}
	if found {
		x.counts.duplicates++
		if d.twice {
			_, _, err = x.get(0, 0, x.key)
		}
		return err
	}
	expiry := uint64(0)
	if d.within {
		expiry = micros(row.EventMs + d.delayMs)
	}
	x.value = appendRow(x.value[:0], expiry)
	if err := x.put(0, 0, x.key, x.value); err != nil {
		return err
	}
	x.r.Updated++
	x.emit(*row)
	return nil
}

func (d *dedupe) appendKey(b []byte, row *workload.Row) []byte {
	b = appendRow(b, row.Key)
	if d.timed {
		b = appendWord(b, micros(row.EventMs))
	}
	if d.padding == 0 {
		return b
	}
	b = appendWord(b, uint64(d.padding))
	return appendPayload(b, d.padding, row.Key)
}

// evict reads every key there is to find those behind the watermark.
func (d *dedupe) evict(x *task) error {
	x.doomed.reset()
	err := x.scan(0, 0, nil, nil, func(key, value []byte) bool {
		x.counts.evictionRead++
		at := key
		from := prefix + word // the event time behind the key
		if d.within {
			at, from = value, prefix
		}
		if len(at) >= from+word && x.gone(millisAt(at, from)) {
			x.doomed.add(key)
		}
		return true
	})
	if err != nil {
		return err
	}
	return x.removeDoomed()
}

// removeDoomed deletes the keys that a scan collected.
func (x *task) removeDoomed() error {
	for i := range x.doomed.len() {
		if err := x.remove(0, 0, x.doomed.at(i)); err != nil {
			return err
		}
		x.r.Removed++
	}
	return nil
}
