package history

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/history/engine"
)

// Check reads the whole history, without changing it and even while a daemon has
// it open, and reports what it holds and what is wrong with it. An error says that
// it could not be checked at all.
func Check(o Options) (Report, error) {
	o = o.withDefaults()
	o.ReadOnly = true
	r := Report{}
	err := check(place{o.FS, o.Dir}, o, &r)
	if damaged := (damagedError{}); errors.As(err, &damaged) {
		r.fault("%v", damaged.cause)
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("check history %s: %w", o.Dir, err)
	}
	return r, nil
}

func check(p place, o Options, r *Report) (err error) {
	if err := p.present(); err != nil {
		return err
	}
	f, err := freeze(p.fs, p.data())
	if err != nil {
		return damage(err)
	}
	defer f.close()
	eng, err := openPresent(f, p.data(), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	return eng.Do(func(db *pebble.DB, in *engine.Inside) error {
		return in.Call(func() error { return f.examine(db, r) })
	})
}

// examine fills the report.
func (f *frozen) examine(db *pebble.DB, r *Report) error {
	tables, err := liveTables(db)
	if err != nil {
		return err
	}
	for _, name := range tables {
		file, ok := f.tables[name]
		if !ok {
			r.fault("table %s is missing", name)
			continue
		}
		r.Bytes += sizeOf(file)
		if err := verifyTable(file); err != nil {
			r.fault("table %s: %v", name, err)
		}
	}
	if err := f.complete(db, tables); err != nil {
		r.fault("%v", err)
	}
	if !r.OK() {
		return nil // what follows would name the same again
	}
	return survey(db, r)
}

// survey reads every key and value and looks whether they fit together.
func survey(db *pebble.DB, r *Report) error {
	v := surveyor{r: r, db: db}
	if err := scan(db, span{}, v.pair); err != nil {
		return err
	}
	v.end()
	next, err := loadNext(db)
	r.NewestStep = next - 1
	return err
}

// surveyor counts what it is shown, in the order of the keys.
type surveyor struct {
	r       *Report
	db      *pebble.DB // nil: only what is shown is looked at
	step    uint64     // last of the log
	entries []entry
	queries map[uint32]bool
	strange map[uint32]bool // queries without an entry that have records
}

func (v *surveyor) pair(key, value []byte) error {
	if err := v.look(key, value); err != nil {
		v.r.fault("key %x: %v", key, err)
	}
	return nil
}

func (v *surveyor) look(key, value []byte) error {
	if len(key) == 0 {
		return errKey
	}
	switch key[0] {
	case spaceMeta:
		return v.meta(key, value)
	case spaceOffset:
		v.r.Offsets++
		return checkOffset(key, value)
	case spaceHour:
		v.r.Hours++
		return checkHour(key)
	case spaceLog:
		return v.log(key, value)
	case spaceQuery:
		return v.query(key, value)
	case spaceRaw:
		return v.raw(key)
	case spaceState:
		v.r.States++
		_, err := parseUint(value)
		return err
	case spaceTally:
		return checkTally(key, value)
	case spaceWord:
		v.r.Words++
		_, err := parseNumberKey(key)
		return err
	}
	return errKey
}

func (v *surveyor) meta(key, value []byte) error {
	n, err := parseUint(value)
	if string(key[1:]) == metaFormat {
		v.r.Format = n
	}
	return err
}

func (v *surveyor) log(key, value []byte) (err error) {
	seq, err := parseLogKey(key)
	if err != nil {
		return err
	}
	if v.entries, err = parseEntries(value, v.entries); err != nil {
		return err
	}
	if v.step != 0 && seq != v.step+1 {
		v.r.fault("steps %d to %d are missing from the log", v.step+1, seq-1)
	}
	v.step = seq
	v.r.LoggedSteps++
	return nil
}

func (v *surveyor) query(key, value []byte) error {
	n, err := parseNumberKey(key)
	if err != nil {
		return err
	}
	if v.queries == nil {
		v.queries = map[uint32]bool{}
	}
	v.queries[n] = true
	_, lineage, err := parseQuery(value)
	if lineage != "" {
		v.r.Queries++
	}
	return err
}

func (v *surveyor) raw(key []byte) error {
	hour, k, err := parseRawKey(key)
	if err != nil {
		return err
	}
	if hour != k.bucket() {
		return errKey
	}
	if v.r.Records == 0 {
		v.r.FirstMs = k.atMs
	}
	v.r.Records++
	v.r.FirstMs = min(v.r.FirstMs, k.atMs)
	v.r.LastMs = max(v.r.LastMs, k.atMs)
	if !v.queries[k.query] {
		if v.strange == nil {
			v.strange = map[uint32]bool{}
		}
		v.strange[k.query] = true
	}
	return nil
}

func (v *surveyor) end() {
	for n := range v.strange {
		v.r.fault("query number %d has records but no entry", n)
	}
}

func checkOffset(key, value []byte) error {
	_, _, err := parseOffsetKey(key)
	_, err2 := parseUint(value)
	return errors.Join(err, err2)
}

func checkTally(key, value []byte) error {
	_, _, err := parseTallyKey(key)
	_, err2 := parseTally(value)
	return errors.Join(err, err2)
}

func checkHour(key []byte) error {
	rest := key[min(len(key), 5):]
	for range 2 {
		var err error
		if _, rest, err = cutText(rest); err != nil {
			return err
		}
	}
	_, _, err := parseHourKey(rest)
	return err
}
