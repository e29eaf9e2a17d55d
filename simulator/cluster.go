package simulator

import (
	"errors"
	"fmt"
	"time"

	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/store"
)

// freshExecutors starts the executors of a run: none has any state yet. The
// stores of the run before are closed.
func (q *query) freshExecutors() error {
	if err := q.closeExecutors(); err != nil {
		return err
	}
	n := q.faults().Executors
	if n <= 0 {
		n = max(q.sc.Cluster.Executors, 1)
	}
	for slot := range n {
		e, err := q.newExecutor(slot)
		if err != nil {
			return err
		}
		q.execs = append(q.execs, e)
	}
	q.place = newPlacement(q.conf.ShufflePartitions, n)
	return nil
}

func (q *query) closeExecutors() error {
	var errs []error
	for _, e := range q.execs {
		errs = append(errs, e.stores.Close())
	}
	q.execs = q.execs[:0]
	return errors.Join(errs...)
}

// settleExecutors lets executors die, come and go, and partitions move, before
// the tasks of a batch. It returns how long the driver took to notice deaths and
// to have replacements.
func (q *query) settleExecutors(f *fault.State, start time.Duration) (time.Duration, error) {
	var took time.Duration
	if n := min(f.LoseExecutors, len(q.execs)); n > 0 {
		d, err := q.lose(n)
		if err != nil {
			return 0, err
		}
		took += d
	}
	if n := f.Executors; n > 0 && n != len(q.execs) {
		if err := q.resize(n); err != nil {
			return 0, err
		}
	}
	if f.LocalityLost > 0 {
		r := q.rng(q.next, rngPlace)
		if err := q.unload(q.place.scatter(f.LocalityLost, len(q.execs), r.Rand)); err != nil {
			return 0, err
		}
	}
	for _, e := range q.execs {
		if e.next == 0 {
			e.next = start + q.cold + e.every
		}
	}
	return took, nil
}

// lose kills n executors and starts others in their place, which have no state.
func (q *query) lose(n int) (time.Duration, error) {
	r := q.rng(q.next, rngLoss)
	gone := r.Perm(len(q.execs))[:n]
	for _, slot := range gone {
		if err := q.execs[slot].stores.Lose(); err != nil {
			return 0, fmt.Errorf("lose executor %d: %w", q.execs[slot].id, err)
		}
		e, err := q.newExecutor(slot)
		if err != nil {
			return 0, err
		}
		q.execs[slot] = e
	}
	q.lost += int64(n)
	q.place.vacate(gone, len(q.execs)) // their stores are gone with them
	if q.o.Live {
		return 0, nil
	}
	return r.about(6*time.Second, 0.4), nil
}

// resize changes the number of executors. Those that leave take their local
// state with them; those that come get their share of the partitions.
func (q *query) resize(n int) error {
	if n < len(q.execs) {
		var gone []int
		for slot := n; slot < len(q.execs); slot++ {
			gone = append(gone, slot)
			if err := q.execs[slot].stores.Lose(); err != nil {
				return fmt.Errorf("release executor %d: %w", q.execs[slot].id, err)
			}
		}
		q.execs = q.execs[:n]
		q.place.vacate(gone, n)
		return nil
	}
	for slot := len(q.execs); slot < n; slot++ {
		e, err := q.newExecutor(slot)
		if err != nil {
			return err
		}
		q.execs = append(q.execs, e)
	}
	return q.unload(q.place.spread(n))
}

// unload closes the stores of partitions that moved away from where they were.
func (q *query) unload(moves []move) error {
	for _, m := range moves {
		for _, s := range q.stages {
			if !s.copies.real(m.partition) {
				continue
			}
			for _, name := range s.storeNames {
				if err := q.execs[m.from].stores.Unload(store.ID{Operator: s.index, Partition: m.partition, Name: name}); err != nil {
					return fmt.Errorf("unload partition %d: %w", m.partition, err)
				}
			}
		}
	}
	return nil
}
