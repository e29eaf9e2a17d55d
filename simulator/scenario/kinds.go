package scenario

import (
	"slices"
	"strings"
)

// Kind describes one kind of fault: what it does, and which fields of a Fault
// mean something to it beside kind, from_batch and query, which all have.
type Kind struct {
	Name   string
	Does   string // one sentence
	Fields []Field
}

// Field is what a field means to one kind of fault.
type Field struct {
	Name    string
	Means   string
	Default string // as it is written in a file; empty: none
	Must    bool   // a fault of the kind says nothing without it
}

// Fields that mean the same to many kinds.
var (
	until   = Field{Name: "to_batch", Means: "first batch that is well again", Default: "never"}
	size    = Field{Name: "size", Means: "factor that is reached", Default: "1.5"}
	fixed   = Field{Name: "fixed", Means: "a size given for the run does not replace this one", Default: "false"}
	ramp    = Field{Name: "ramp", Means: "batches over which the fault grows to its size", Default: "0"}
	every   = Field{Name: "every", Means: "batches from one time to the next", Default: "once"}
	source  = Field{Name: "source", Means: "which input, 1 and up; 0: all", Default: "0"}
	pause   = Field{Name: "for", Means: "how long the query is down", Default: "1m"}
	class   = Field{Name: "error", Means: "error class that the query ends with", Default: "none, as of the user's own code"}
	message = Field{Name: "text", Means: "first line of the exception", Default: "that of the class"}
)

func share(means, def string) Field    { return Field{Name: "share", Means: means, Default: def} }
func count(means, def string) Field    { return Field{Name: "count", Means: means, Default: def} }
func length(means, def string) Field   { return Field{Name: "for", Means: means, Default: def} }
func scaled(more ...Field) []Field     { return append([]Field{until, size, fixed, ramp}, more...) }
func lasting(more ...Field) []Field    { return append([]Field{until}, more...) }
func repeated(more ...Field) []Field   { return append([]Field{until, every}, more...) }
func must(f Field) Field               { f.Must = true; return f }
func kind(n, d string, f []Field) Kind { return Kind{Name: n, Does: d, Fields: f} }

// faultKinds is the reference of all kinds, in the order in which it is shown.
var faultKinds = []Kind{
	// Devices.
	kind("store-slow", "requests to the checkpoint store take longer, bytes too", scaled()),
	kind("store-throttled", "the checkpoint store refuses requests until each has been sent size times in the mean", scaled()),
	kind("disk-slow", "local disks of executors are slower", scaled()),
	kind("network-slow", "shuffles between executors are slower", scaled()),
	kind("cpu-slow", "all cores are slower: a noisy neighbour", scaled()),
	kind("code-slow", "the user's own code takes longer per row", scaled()),
	kind("sink-slow", "the sink, or a call that each batch makes, takes longer", scaled(length("additional time per batch at size 1.5", "5s"))),
	kind("source-listing-slow", "the source takes longer to name its newest offsets", scaled()),
	kind("checkpoint-listing-slow", "offsets/ and commits/ hold so many files that each new one takes longer", scaled(length("additional time per file at size 1.5", "1s"))),
	// Input.
	kind("input-growth", "more rows arrive", scaled(source)),
	kind("input-stopped", "no rows arrive", lasting(source)),
	kind("state-growth", "rows come from a larger set of keys", scaled(source)),
	kind("large-writes", "values are larger", scaled(source)),
	kind("key-skew", "one key gets a share of all rows", scaled(source, share("of rows at size 1.5", "30%"))),
	kind("late-rows", "rows come later than the watermark allows", scaled(source, share("of rows at size 1.5", "5%"))),
	kind("upstream-late", "what arrives is older than it was, all of it alike", scaled(source, length("age at size 1.5", "1h"))),
	kind("watermark-future", "one row has a timestamp far ahead, once", []Field{source, length("how far ahead", "30d")}),
	kind("source-frozen", "event time of a source stands still, which holds the watermark of the query", lasting(source)),
	kind("kafka-partition-stalled", "partitions of a source cannot be read", lasting(source, count("partitions", "1"))),
	// State.
	kind("state-never-expires", "nothing is removed from state any more", lasting()),
	kind("watermark-stuck", "the watermark does not move", lasting()),
	kind("memory-unbounded", "each store holds more memory than it shows a need for, batch by batch, until its container is killed",
		[]Field{until, size, fixed, every, count("executors that die each time", "all"), must(Field{Name: "bytes", Means: "memory that a store gains per batch at size 1.5"})}),
	kind("cap-too-small", "other users of the memory cap leave the stores little block cache", scaled(share("of the cache that is left at size 1.5", "5%"))),
	kind("cache-too-small", "the block cache of each store holds little of what is read", scaled(share("of the cache that is left at size 1.5", "5%"))),
	kind("compaction-debt", "background compaction does not keep up", lasting()),
	kind("maintenance-stuck", "the maintenance thread does nothing: no snapshot is uploaded, none deleted", lasting()),
	kind("snapshot-damaged", "an executor dies and the newest snapshots turn out to be damaged", []Field{
		count("state versions up to the batch whose snapshots are damaged", "15"), share("of partitions that are hit", "50%"),
	}),
	kind("evaluated-twice", "foreachBatch runs more actions on a batch that is not persisted", lasting(count("evaluations per batch", "2"))),
	// Executors.
	kind("executor-lost", "executors die, with the state on their disks", repeated(count("executors each time", "1"))),
	kind("autoscale-churn", "executors come and go: added ones leave again, with the state on their disks",
		lasting(Field{Name: "every", Means: "batches that they stay, and stay away", Default: "10"}, count("executors that come and go", "2"))),
	kind("locality-lost", "tasks are placed on other executors than the ones that hold their state",
		lasting(Field{Name: "every", Means: "batches from one time to the next", Default: "in each batch"}, share("of partitions that move", "50%"))),
	// Runs.
	kind("restart", "the query is stopped in order and started again", repeated(pause)),
	kind("crash", "the driver is killed, without a last word, and started again", repeated(pause)),
	kind("redeploy", "the query is stopped and started as another application", repeated(pause)),
	kind("upgrade", "the query is stopped and started on the next version of Spark", []Field{pause}),
	kind("outage", "the query is down for long while input goes on", repeated(length("how long", "2h"))),
	kind("conf-changed", "the query is restarted with other settings", []Field{pause, must(Field{Name: "conf", Means: "the settings, by Spark's keys"})}),
	kind("partitions-changed", "the query is restarted with another number of shuffle partitions", []Field{pause, must(Field{Name: "count", Means: "partitions"})}),
	kind("checkpoint-rewound", "a backup of the checkpoint is put back, then the query restarted", []Field{pause, count("batches that are undone", "20")}),
	kind("checkpoint-reset", "the checkpoint is deleted: the query starts anew, with another id", []Field{pause}),
	kind("checkpoint-shared", "a second run works on the same checkpoint", lasting()),
	kind("query-failed", "a batch fails and nobody starts the query again", []Field{class, message}),
	kind("restart-loop", "each attempt fails soon after its start", []Field{
		every, until, count("attempts that fail", "6"), length("time between attempts", "1m"), class, message,
	}),
	kind("batch-hung", "a batch stands still", repeated(length("how long", "12h"))),
	kind("driver-frozen", "the driver is gone without a word: no batch, no event, no heartbeat", nil),
	// Events.
	kind("events-dropped", "the listener queue is full and events are thrown away",
		scaled(share("of events that are dropped at size 1.5", "10%"))),
	kind("sender-lost", "nothing of this sender arrives, while its queries run on", lasting()),
}

// FaultKinds returns what is known of each kind of fault. The slice is the
// caller's, what it holds is not.
func FaultKinds() []Kind { return append([]Kind(nil), faultKinds...) }

// KindOf returns the kind of that name.
func KindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(faultKinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return faultKinds[i], true
}

// Has reports whether the field means anything to the kind.
func (k Kind) Has(field string) bool {
	return slices.ContainsFunc(k.Fields, func(f Field) bool { return f.Name == field })
}

// names of what a file can choose from.
var (
	operatorKinds = strings.Fields("aggregation dedupe dedupe_within_watermark join flat_map_groups transform_with_state session_window")
	outputModes   = strings.Fields("append update complete")
	languages     = strings.Fields("scala python")
	sourceKinds   = strings.Fields("kafka rate files")
	sinkKinds     = strings.Fields("noop kafka delta foreach_batch console")
	noiseKinds    = strings.Fields("none lognormal ar1 heavy_tail wander")
)

func kindNames() []string {
	out := make([]string, len(faultKinds))
	for i := range faultKinds {
		out[i] = faultKinds[i].Name
	}
	return out
}
