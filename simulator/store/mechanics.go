package store

import (
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

// mechanics is what a version of Spark does differently in its RocksDB provider,
// checked against running Spark.
type mechanics struct {
	// batchedWrites gathers a batch's writes and applies them at the commit.
	batchedWrites bool
	// compactFirst waits for compactions before a snapshot is cut; later versions
	// cut it while they run, so that it holds the tables from before.
	compactFirst bool
	// forgets makes the end of a read store drop what the store has loaded.
	forgets bool
	// freshFromZero counts deltas from version 0 in a store that was just loaded,
	// not from the snapshot that it was loaded from.
	freshFromZero bool
	// recordsPerSnapshot cuts a snapshot early after so many changelog records; 0: never.
	recordsPerSnapshot int64
	// checksAge reuses a table only in versions after the one that brought it.
	checksAge bool
	// sticky leaves the times of the last snapshot standing until the next.
	sticky bool
	// lazyRetention deletes old versions only when enough of them have gathered.
	lazyRetention bool

	hasFlushBytes, hasFamilies, hasLoad, hasRepair bool // keys of 3.5, 4.0, 4.1, 4.2
	swapsFamilies                                  bool // internal and external counts the wrong way round
	memory                                         boundedMemory
}

// boundedMemory is what a store reports as its memory where one cache is shared.
type boundedMemory uint8

const (
	memoryWhole  boundedMemory = iota // the shared cache, counted by every store
	memoryHidden                      // 0, and the shared cache as pinned blocks
	memoryShared                      // its share
)

// mechanicsOf returns what v does.
func mechanicsOf(v event.Version) mechanics {
	v35, v40 := spark.AtLeast(v, spark.V35), spark.AtLeast(v, spark.V40)
	v41, v42 := spark.AtLeast(v, spark.V41), spark.AtLeast(v, spark.V42)
	m := mechanics{
		batchedWrites: !v35,
		compactFirst:  !v35,
		forgets:       v35 && !v41,
		freshFromZero: v35 && !v40,
		checksAge:     v40,
		sticky:        v40 && !v41,
		lazyRetention: v40,
		hasFlushBytes: v35,
		hasFamilies:   v40,
		hasLoad:       v41,
		hasRepair:     v42,
		swapsFamilies: v40 && !v42,
	}
	if v35 && !v40 {
		m.recordsPerSnapshot = 10000
	}
	switch {
	case v41:
		m.memory = memoryShared
	case v40:
		m.memory = memoryHidden
	}
	return m
}
