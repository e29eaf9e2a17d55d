package history

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stategauge/stategauge/history/engine"
)

// builder fills a new database beside the one in place.
type builder struct {
	place place
	eng   *engine.Engine
	batch *pebble.Batch

	version uint64 // of what is put
}

// batchBytes is how much a builder writes at once.
const batchBytes = 1 << 20

// build begins a new database of the present format.
func (p place) build(o Options) (*builder, error) {
	if err := p.fs.RemoveAll(p.path(makingName)); err != nil {
		return nil, err
	}
	o.ReadOnly = false
	eng, err := engine.Open(o.engine(p.fs, p.path(makingName)))
	if err != nil {
		return nil, err
	}
	return &builder{p, eng, eng.NewBatch(), o.format}, nil
}

// put adds a pair. Nothing is durable before finish.
func (b *builder) put(key, value []byte) error {
	if err := b.batch.Set(key, value, nil); err != nil {
		return err
	}
	if b.batch.Len() < batchBytes {
		return nil
	}
	return b.flush()
}

func (b *builder) flush() error {
	batch := b.batch
	b.batch = b.eng.NewBatch()
	return b.eng.Do(func(db *pebble.DB, _ *inside) error {
		return errors.Join(db.Apply(batch, pebble.NoSync), batch.Close())
	})
}

// scan visits what was put, after a flush.
func (b *builder) scan(of span, visit func(key, value []byte) error) error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.eng.Do(func(db *pebble.DB, in *inside) error {
		return scan(db, of, func(key, value []byte) error {
			return in.Call(func() error { return visit(key, value) })
		})
	})
}

// drop deletes a range of what was put.
func (b *builder) drop(of span) error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.eng.Do(func(db *pebble.DB, _ *inside) error {
		return db.DeleteRange(of.from, of.to, pebble.NoSync)
	})
}

// finish makes the database durable under the name of one that is ready.
func (b *builder) finish() error {
	err := b.put(metaKey(metaFormat), appendUint(nil, b.version))
	if err == nil {
		err = b.flush()
	}
	if err == nil {
		err = b.eng.Do(func(db *pebble.DB, _ *inside) error { return db.Flush() })
	}
	if err != nil {
		b.abandon()
		return err
	}
	if err := b.eng.Close(); err != nil {
		return err
	}
	return b.place.rename(makingName, readyName)
}

// abandon leaves the files for the next opening to remove.
func (b *builder) abandon() { _ = b.eng.Close() }
