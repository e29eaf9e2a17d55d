package scenario

// symptoms are the ids that an expectation can name: one per rule of the pack.
var symptoms = []string{
	"commit-sync-rising", "checkpoint-store-slow", "commit-flush-slow", "local-disk-slow", "writer-stall",
	"scales-with-state", "periodic-slow", "state-reload", "reload-loop", "memory-unbounded", "memory-cap-too-small",
	"cache-misses", "checkpoint-growth", "snapshot-lag", "state-never-expires", "watermark-stuck", "watermark-in-future",
	"watermark-too-wide", "late-data-dropped", "falling-behind", "headroom-forecast", "duration-rising", "load-rising",
	"offsets-slow", "provider-hdfs", "posture", "state-evaluated-twice", "partitions-changed", "checkpoint-shared",
	"checkpoint-reset", "rewound", "restart-loop", "failed", "stalled", "sender-lost", "freshness", "missed-events",
	"auto-repair",
}

// Symptoms returns the ids that an expectation can name, in the order of the
// reference. The slice is the caller's.
func Symptoms() []string { return append([]string(nil), symptoms...) }
