// Package device turns work into time. A Node stands for one executor or the
// driver: its disk, its cores and its way to the checkpoint store, each with
// noise that a seed fixes. It is the only place of the simulator that knows what
// anything costs; in live mode the wall clock takes its place.
package device

import "time"

// Step is what time is spent on. The model charges each in its own way.
type Step uint8

// The steps.
const (
	StepGet        Step = iota // native point reads: Ops, and CacheMisses that went to disk
	StepPut                    // native writes and removes: Ops, BytesOut
	StepScan                   // iterating over state: Ops (steps), BytesIn, CacheMisses
	StepCode                   // code per row, the operator's and the user's: Rows
	StepHeap                   // the HDFS provider's map: Ops
	StepGC                     // garbage collection: BytesIn is the live heap
	StepWriteBatch             // 3.4: the write batch applied at commit
	StepFlush                  // memtable to SST: BytesOut, Files
	StepCompact                // compaction inside the commit: BytesIn, BytesOut
	StepBackground             // compaction outside of it: BytesIn, BytesOut
	StepCheckpoint             // hard links on local disk, and a manifest and a folder made durable: Files
	StepZip                    // packing small files: BytesIn
	StepUpload                 // files to the checkpoint store: Requests, RemoteOut
	StepChangelog              // one changelog file to the checkpoint store: Requests, RemoteOut
	StepDownload               // files from it: Requests, RemoteIn
	StepOpen                   // opening a database: Files
	StepReplay                 // applying changelog records: Ops, RemoteIn, Requests
	StepList                   // listing directories of the checkpoint store: Requests, Files listed
	StepLog                    // a small file of offsets/ or commits/: Requests, RemoteOut
	StepSourceList             // asking a source for its newest offset: Requests, Files listed
	StepSourceRead             // reading input: Rows, RemoteIn
	StepPlan                   // planning on the driver: Ops (operators planned)
	StepSchedule               // launching a task
	StepShuffle                // moving rows between stages: Rows, BytesIn
	StepSink                   // writing output: Rows, Requests
	NumSteps
)

// Work says how much of each thing one step did. Bytes are of local disk unless
// named remote, which is the checkpoint store or a source.
type Work struct {
	Rows, Ops           int64
	BytesIn, BytesOut   int64
	Files, Requests     int64
	RemoteIn, RemoteOut int64
	CacheMisses         int64
}

// Add adds o to w.
func (w *Work) Add(o Work) {
	w.Rows += o.Rows
	w.Ops += o.Ops
	w.BytesIn += o.BytesIn
	w.BytesOut += o.BytesOut
	w.Files += o.Files
	w.Requests += o.Requests
	w.RemoteIn += o.RemoteIn
	w.RemoteOut += o.RemoteOut
	w.CacheMisses += o.CacheMisses
}

// Mark is when a step began, by a Meter's own clock.
type Mark int64

// Meter says how long a step took. The virtual one computes it from the work at
// End, the live one reads a clock at both ends. One goroutine uses a Meter.
type Meter interface {
	Begin(s Step) Mark
	End(s Step, m Mark, w Work) time.Duration
}

// Conditions is what faults and noisy neighbours make of the devices for one
// batch: factors on time, 1 where nothing is wrong. The zero value is not valid;
// Normal gives the ordinary state of things.
type Conditions struct {
	StoreLatency    float64 // checkpoint store, per request
	StoreThroughput float64 // checkpoint store, per byte
	StoreThrottled  float64 // share of requests answered with "slow down" and tried again
	ListLatency     float64 // listings of the checkpoint store
	SourceLatency   float64 // asking the source
	Disk            float64 // local disk, latency and per byte
	Code            float64 // per row of the user's own code
	Network         float64 // shuffle
	CPU             float64 // all cores
}

// Normal is the state without faults.
func Normal() Conditions {
	return Conditions{StoreLatency: 1, StoreThroughput: 1, ListLatency: 1, SourceLatency: 1, Disk: 1, Code: 1, Network: 1, CPU: 1}
}
