package device

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Model is what things cost on an undisturbed node. CPU costs are of one core of
// a cloud server of about 2024 at CoreSpeed 1.
type Model struct {
	// Local disk.
	DiskBytesPerSecond float64
	Fsync              time.Duration // making one new file durable
	DiskRead           time.Duration // one block that the block cache missed
	Link               time.Duration // one hard link

	// Checkpoint store, per request of one connection.
	StoreLatency        time.Duration // median
	StoreSigma          float64       // of the logarithm of ordinary requests
	StoreTail           float64       // Pareto index of the slow requests; smaller is heavier
	StoreTailShare      float64       // of requests that are slow, 0 to 1
	StoreBytesPerSecond float64
	StoreBackoff        time.Duration // first pause of a client that was told to slow down; doubles
	ListFactor          float64       // a listing takes so many times as long as another request
	ListEntry           time.Duration // per name in it, on the client

	// Source and shuffle.
	SourceLatency         time.Duration // one request to a Kafka broker
	NetworkBytesPerSecond float64

	// CPU.
	CoreSpeed     float64       // 2: everything on a core takes half as long
	Row           time.Duration // code of an operator per row
	UserRow       time.Duration // the user's own code per row, on top
	ReadRow       time.Duration // decoding one row of input
	ShuffleRow    time.Duration // serialising and sorting one row
	SinkRow       time.Duration
	Get           time.Duration // native read from memory, with the way through JNI
	Put           time.Duration
	ScanStep      time.Duration
	BatchWrite    time.Duration // per record of a write batch applied at commit
	Replay        time.Duration // per changelog record
	HeapOp        time.Duration // map operation of the HDFS-backed provider
	SSTByte       time.Duration // building or merging 1,000 bytes of SST
	ZipByte       time.Duration // packing 1,000 bytes
	StoreOpen     time.Duration // opening a database, without its files
	FlushBase     time.Duration // of a flush, whatever its size
	TaskLaunch    time.Duration // from the scheduler's decision to the task's first row
	PlanBase      time.Duration
	PlanOperator  time.Duration
	MemoryBytes   float64       // heap of the executor, for garbage collection
	GCByte        time.Duration // stop-the-world time per 1,000,000 live bytes with an empty heap around them
	GCWorstFactor float64       // how much longer at most as the heap fills
}

// DefaultModel is an executor on a general purpose cloud instance with a local
// SSD and the checkpoint in an object store of the same region.
//
// Where the figures come from: object stores answer small requests in tens of
// milliseconds and move 80 to 90 MB/s per connection (their vendors' performance
// guides); a fsync on a cloud SSD takes about a millisecond; RocksDB reads take 1
// to 3 us from its cache through JNI, which the native latencies that Spark reports
// for a thousand gets agree with; compaction runs at about 150 MB/s a core and
// deflate at 50; a task of Spark costs 5 to 10 ms before its first row, and a
// warm planner some tens of milliseconds, as queryPlanning of running queries shows.
// The rest is chosen to keep those proportions.
func DefaultModel() Model {
	const (
		us = time.Microsecond
		ms = time.Millisecond
	)
	return Model{
		DiskBytesPerSecond: 400e6, Fsync: ms, DiskRead: 40 * us, Link: 40 * us,
		StoreLatency: 35 * ms, StoreSigma: 0.25, StoreTail: 3, StoreTailShare: 0.02,
		StoreBytesPerSecond: 80e6, StoreBackoff: 100 * ms, ListFactor: 1.5, ListEntry: 2 * us,
		SourceLatency: 4 * ms, NetworkBytesPerSecond: 600e6,
		CoreSpeed: 1, Row: 1500, ReadRow: us, ShuffleRow: 800, SinkRow: us,
		Get: 2 * us, Put: 1500, ScanStep: 700, BatchWrite: us, Replay: 2500, HeapOp: 400,
		SSTByte: 6 * us, ZipByte: 20 * us, StoreOpen: 6 * ms, FlushBase: 2 * ms,
		TaskLaunch: 6 * ms, PlanBase: 20 * ms, PlanOperator: 12 * ms,
		MemoryBytes: 8 << 30, GCByte: 100 * us, GCWorstFactor: 30,
	}
}

// Validate names every field that time can not be computed from.
func (m *Model) Validate() error {
	var faults []error
	positive := func(what string, v float64) {
		if !(v > 0) || math.IsInf(v, 0) {
			faults = append(faults, fmt.Errorf("%s (%v) must be above 0", what, v))
		}
	}
	positive("disk bytes per second", m.DiskBytesPerSecond)
	positive("store bytes per second", m.StoreBytesPerSecond)
	positive("network bytes per second", m.NetworkBytesPerSecond)
	positive("core speed", m.CoreSpeed)
	positive("store tail", m.StoreTail)
	positive("memory bytes", m.MemoryBytes)
	if !(m.StoreTailShare >= 0 && m.StoreTailShare <= 1) {
		faults = append(faults, fmt.Errorf("store tail share (%v) must be from 0 to 1", m.StoreTailShare))
	}
	if m.StoreLatency < 0 || m.Fsync < 0 || m.StoreSigma < 0 {
		faults = append(faults, errors.New("store latency, store sigma and fsync must not be below 0"))
	}
	return errors.Join(faults...)
}
