package history

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// conversion maps a key and value of one format version to those of the next,
// none or several of them.
type conversion func(key, value []byte, put func(key, value []byte) error) error

// conversions lead from each older version to the one after it. They are kept
// for as long as histories of that version can be around.
var conversions = map[uint64]conversion{}

// chain returns the conversion from a version to the present one.
func (o Options) chain(version uint64) (conversion, error) {
	known := conversions
	if o.known != nil {
		known = o.known
	}
	all := func(key, value []byte, put func(key, value []byte) error) error { return put(key, value) }
	for v := version; v < o.format; v++ {
		step, ok := known[v]
		if !ok {
			return nil, fmt.Errorf("format %d can no longer be converted", v)
		}
		before := all
		all = func(key, value []byte, put func(key, value []byte) error) error {
			return before(key, value, func(k, v []byte) error { return step(k, v, put) })
		}
	}
	return all, nil
}

// convert rewrites a database of an older version. The old one stays in place
// until the new one is complete.
func (p place) convert(o Options, version uint64) error {
	c, err := o.chain(version)
	if err != nil {
		return err
	}
	o.Logger.Info("converting the history to a newer format", "from", version, "to", o.format)
	if err := p.rewrite(o, c); err != nil {
		return fmt.Errorf("convert from format %d: %w", version, err)
	}
	before := fmt.Sprint(beforeName, version)
	if err := p.replace(before); err != nil {
		return fmt.Errorf("convert from format %d: %w", version, err)
	}
	return p.fs.RemoveAll(p.path(before))
}

// rewrite makes a new database out of the one in place, and leaves it ready.
func (p place) rewrite(o Options, c conversion) error {
	f, err := freeze(p.fs, p.data())
	if err != nil {
		return err
	}
	defer f.close()
	ro := o
	ro.ReadOnly = true
	old, err := openEngine(f, p.data(), ro)
	if err != nil {
		return err
	}
	defer func() { _ = old.Close() }()
	b, err := p.build(o)
	if err != nil {
		return err
	}
	err = old.Do(func(db *pebble.DB, in *inside) error {
		return scan(db, span{}, func(key, value []byte) error {
			return in.Call(func() error { return c(key, value, b.put) })
		})
	})
	if err != nil {
		b.abandon()
		return err
	}
	return b.finish()
}

// replace moves the database in place aside, and puts the one that is ready there.
// After a crash in between, tidy does the rest.
func (p place) replace(aside string) error {
	if err := p.fs.RemoveAll(p.path(aside)); err != nil {
		return err
	}
	if err := p.rename(dataName, aside); err != nil {
		return err
	}
	return p.rename(readyName, dataName)
}
