package simulator

import (
	"fmt"

	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/workload"
)

// preloadRows is how many rows a batch of the query's life before the simulation
// brought: it bounds memory.
const preloadRows = 500_000

// preload plays, unseen, the life of a query that has run for long: as many
// batches as the scenario's initial rows need. They cost no virtual time and no
// event tells of them; the first one told has the number after the last of them.
func (q *query) preload() error {
	if q.next > 0 || q.turn > 0 {
		return nil
	}
	for batch := int64(0); ; batch++ {
		more, err := q.preloadBatch(batch)
		if err != nil || !more {
			return err
		}
		q.next, q.turn, q.acted = batch+1, batch+1, batch
	}
}

// preloadBatch plays one such batch, or reports that there is nothing left to
// bring.
func (q *query) preloadBatch(batch int64) (bool, error) {
	var rows [][]workload.Row
	any := false
	for i := range q.stages {
		r := q.initialRows(i, batch*preloadRows)
		rows = append(rows, r)
		any = any || len(r) > 0
	}
	if !any {
		return false, nil
	}
	for i, s := range q.stages {
		s.version, s.lateMs, s.evictMs, s.nowMs = batch, 0, 0, ms(q.now)
		s.shuffle([][]workload.Row{rows[i]})
		if _, err := s.run(q.execs, q.place, q.now, q.o.Parallel); err != nil {
			return false, fmt.Errorf("initial rows: %w", err)
		}
	}
	o := checkpoint.Offsets{TimestampMs: ms(q.now), Conf: q.conf.OffsetLogConf(q.version), Sources: make([]string, len(q.source))}
	if _, err := q.ckpt.WriteOffsets(batch, &o); err != nil {
		return false, err
	}
	_, err := q.ckpt.WriteCommit(batch, &checkpoint.Commit{StateIDs: q.stateIDs()})
	return true, err
}

// initialRows makes an operator's rows with keys from first on, all as of now. They
// are of the left side where there are two.
func (q *query) initialRows(operator int, first int64) []workload.Row {
	left := q.sc.Query.Operators[operator].InitialRows - first
	if left <= 0 {
		return nil
	}
	size := int32(q.sc.Query.Sources[0].RowBytes)
	rows := make([]workload.Row, min(left, preloadRows))
	for i := range rows {
		rows[i] = workload.Row{Key: uint64(first) + uint64(i), EventMs: ms(q.now), Bytes: size}
	}
	return rows
}
