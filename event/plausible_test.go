package event

import "testing"

func TestTimesBeyondTheBatchAndItsStoresAreImplausible(t *testing.T) {
	const batchMs, stores = 3000, 4
	for _, c := range []struct {
		name string
		id   MetricID
		raw  float64
		want bool
	}{
		{"within one store's share", RocksDBPutLatency, 2500, true},
		{"every store busy all the time", RocksDBPutLatency, batchMs * stores, true},
		{"more than all stores could", RocksDBPutLatency, 1.1 * batchMs * stores, false},
		{"an overflowed counter", RocksDBPutLatency, 5.6e10, false},
		{"a stall in nanoseconds", RocksDBWriterStallLatency, 2e9, true},
		{"a stall beyond all stores", RocksDBWriterStallLatency, 13e9, false},
		{"background threads at work", RocksDBTotalCompactionLatency, 2 * batchMs * stores, true},
		{"more than background threads could", RocksDBTotalCompactionLatency, 5 * batchMs * stores, false},
		{"below zero", CommitTime, -1, false},
		{"absent", CommitTime, nan, true},
		{"no time at all", RocksDBBytesCopied, 1e15, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := plausibleBatch(batchMs, stores)
			b.Operators[0].Values[c.id] = c.raw
			if got := b.PlausibleTaskSeconds(&b.Operators[0], c.id); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNothingToCompareWithRefusesNothing(t *testing.T) {
	noDuration := plausibleBatch(nan, 4)
	noStores := plausibleBatch(3000, nan)
	for _, b := range []*Batch{noDuration, noStores} {
		b.Operators[0].Values[CommitTime] = 1e12
		if !b.PlausibleTaskSeconds(&b.Operators[0], CommitTime) {
			t.Error("a value was refused without a limit")
		}
	}
}

func TestPartitionsStandInForStores(t *testing.T) {
	b := plausibleBatch(3000, nan)
	b.Operators[0].Values[NumShufflePartitions] = 4
	b.Operators[0].Values[CommitTime] = 1e12
	if b.PlausibleTaskSeconds(&b.Operators[0], CommitTime) {
		t.Error("the limit by partitions was not applied")
	}
}

func plausibleBatch(ms, stores float64) *Batch {
	b := &Batch{}
	b.Reset()
	b.Values[BatchDuration] = ms
	b.AddOperator().Values[NumStateStoreInstances] = stores
	b.Settle()
	return b
}
