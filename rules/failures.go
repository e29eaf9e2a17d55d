package rules

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// exception is why a query died.
type exception struct {
	class string // Spark's error class, or a word of failureKinds
	text  string // first line of the exception
	run   event.RunID
	atMs  int64 // our clock at the first failure since there was progress
}

// Words for failures that Spark has no class for.
const (
	classOwnCode   = "own code"
	classCancelled = "cancelled"
)

// classShared is how Spark says that two drivers work on one checkpoint.
const classShared = "CONCURRENT_STREAM_LOG_UPDATE"

// failureKind is what is known of one kind of failure.
type failureKind struct {
	class string   // error class or the part of it before a dot; or our word where Spark has none
	words []string // of the exception's first line, where there is no class; any of them
	means string
	fix   string
}

// failureKinds are tried in order: what is said in words of one may be a detail of
// the next.
var failureKinds = []failureKind{
	{
		class: classCancelled,
		words: []string{"SparkContext was shut down", "cancelled as part of cancellation of all jobs", "cancelled part of cancelled job group", "Cannot call methods on a stopped SparkContext"},
		means: "the application ended, or somebody cancelled the query's jobs",
		fix:   "nothing, if that was meant; otherwise see who ends the cluster",
	},
	{
		class: classShared, words: []string{"Multiple streaming jobs detected", "Multiple streaming queries are concurrently using"},
		means: "another run wrote to the same checkpoint",
		fix:   "stop one of the two, and give each query a checkpointLocation of its own",
	},
	{
		class: "KAFKA_DATA_LOSS", words: []string{"some data may have been missed", "OffsetOutOfRange", "Some data may have been lost"},
		means: "offsets that the query has yet to read are gone from the topic: it was behind for longer than the topic keeps its data, or the topic was made anew",
		fix:   "raise retention.ms of the topic above the longest outage; failOnDataLoss=false goes on without the rows that are lost",
	},
	{
		class: "CANNOT_LOAD_STATE_STORE", words: []string{"Error reading delta file", "Error reading snapshot file", "Error loading state"},
		means: "a state store cannot be read from the checkpoint: a file of it is missing or damaged",
		fix:   "see whether a lifecycle policy or a person removes files under state/; restart from a backup, or from a new checkpoint with a planned replay",
	},
	{
		class: "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
		means: "the checkpoint has offsets or commits and no metadata: part of it was deleted",
		fix:   "restore the file metadata with the query's id, or begin a new checkpoint with a planned replay",
	},
	{
		class: "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", words: []string{"Provided schema doesn't match to the schema for existing state"},
		means: "the keys of the state have another schema than the checkpoint",
		fix:   "go back to the schema of before, or begin a new checkpoint with a planned replay",
	},
	{
		class: "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
		means: "the values of the state have another schema than the checkpoint",
		fix:   "go back to the schema of before, or begin a new checkpoint with a planned replay",
	},
	{
		class: "UNSUPPORTED_FEATURE",
		means: "the query uses what this version of Spark cannot do",
		fix:   "see the first line of the exception; compare the version of Spark with the one that wrote the checkpoint",
	},
	{
		class: "disk full", words: []string{"No space left on device", "DISK.FULL", "Disk quota exceeded"},
		means: "a disk is full: the local one, where state stores work, or the one of the checkpoint",
		fix:   "free or enlarge the disk behind spark.local.dir; state needs its SST files and as much again while it compacts",
	},
	{
		class: "out of memory", words: []string{"OutOfMemoryError", "GC overhead limit", "exit code 137", "OOMKilled", "beyond the 'PHYSICAL' memory limit", "Container killed by YARN for exceeding"},
		means: "an executor had too little memory: heap for OutOfMemoryError, native memory, RocksDB's among it, where the container was killed",
		fix:   "for native memory set spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage to true and spark.executor.memoryOverhead above maxMemoryUsageMB; for heap raise spark.executor.memory",
	},
	{
		class: "executor lost", words: []string{"ExecutorLostFailure", "Executor heartbeat timed out", "Remote RPC client disassociated"},
		means: "executors were lost while they ran tasks of the batch, more often than a task is tried",
		fix:   "see why: preemption and spot machines, memory of the container, nodes that fail",
	},
	{
		class: "no access", words: []string{"AccessDenied", "Access Denied", "Status Code: 403", "AuthorizationException", "Permission denied", "ExpiredToken", "SaslAuthenticationException"},
		means: "the storage or the broker refused: credentials ran out or rights were taken away",
		fix:   "renew the credentials, and see that the application renews them before they run out",
	},
	{
		class: "time out", words: []string{"TimeoutException", "timed out", "SocketTimeout", "Connection refused", "UnknownHostException", "SlowDown", "Status Code: 503"},
		means: "a service that the query needs did not answer",
		fix:   "see the service that the exception names; a restart usually goes on where it stopped",
	},
	{
		class: "FOREACH_BATCH_USER_FUNCTION_ERROR",
		means: "the function given to foreachBatch raised an exception",
		fix:   "see the exception; a batch that always fails will fail again after a restart",
	},
	{
		class: "STREAM_FAILED",
		means: "the query, or one that it waits for, ended by an exception",
		fix:   "see the cause further down in the exception",
	},
	{
		class: classOwnCode,
		means: "the query's own code, or a row that it cannot take, raised an exception",
		fix:   "see the exception; a batch that always fails will fail again after a restart",
	},
}

// genericClasses say that something failed, and not what.
var genericClasses = []string{"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "INTERNAL_ERROR", ""}

// failureOf names a failure: by Spark's error class, by a class that the message
// quotes, by words of the message, and else as the query's own code.
func failureOf(f *event.Failure) exception {
	if f == nil {
		return exception{class: classOwnCode}
	}
	out := exception{class: f.Class, text: f.Message}
	if f.Class == "SPARK_JOB_CANCELLED" || f.Class == "INTERRUPTED" {
		out.class = classCancelled
		return out
	}
	if !slices.Contains(genericClasses, f.Class) {
		return out
	}
	if quoted := quotedClass(f.Message); !slices.Contains(genericClasses, quoted) {
		out.class = quoted
		return out
	}
	for i := range failureKinds {
		for _, w := range failureKinds[i].words {
			if strings.Contains(f.Message, w) {
				out.class = failureKinds[i].class
				return out
			}
		}
	}
	if out.class == "" {
		out.class = classOwnCode
	}
	return out
}

// quotedClass finds the error class that Spark writes in brackets at the beginning
// of a message, empty where there is none.
func quotedClass(message string) string {
	_, rest, _ := strings.Cut(message, "[")
	class, _, found := strings.Cut(rest, "]")
	if !found || len(class) > 100 || !strings.Contains(class, "_") {
		return ""
	}
	for _, r := range class {
		if r != '_' && r != '.' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return ""
		}
	}
	return class
}

// is reports whether the failure is of the class, or of one below it.
func (f *exception) is(class string) bool {
	return f.class == class || strings.HasPrefix(f.class, class+".")
}

// stopped reports whether a failure is the way in which a query is stopped from
// outside: no fault of its own.
func (f *exception) stopped() bool { return f.class == classCancelled }

// kindOf returns what is known of a class; nil for one that is not in the table.
func kindOf(class string) *failureKind {
	f := exception{class: class}
	for i := range failureKinds {
		if f.is(failureKinds[i].class) {
			return &failureKinds[i]
		}
	}
	return nil
}

// errorMeans says in words what an error class means, for templates.
func errorMeans(class string) string {
	if k := kindOf(class); k != nil {
		return k.means
	}
	return "Spark ended the query with the error class " + class
}

// errorFix says what to do about an error class, for templates.
func errorFix(class string) string {
	if k := kindOf(class); k != nil {
		return k.fix
	}
	return "see the first line of the exception, and Spark's documentation of the error class " + class
}

// fail notes that a run ended by an exception. other is true for a second driver,
// while the first one works on.
func (s *story) fail(u *event.Update, nowMs int64, other bool) {
	f := failureOf(u.Event.Failure)
	f.run, f.atMs = runOf(u), nowMs
	if f.is(classShared) {
		s.note(changeShared, occurrence{
			atMs: s.timeOf(u), batch: s.place, count: 1, text: f.class,
			why: "a run found that another one had written to the checkpoint, and gave way",
		})
	}
	switch {
	case f.stopped() && !other:
		s.stop(u)
		s.died = true
		s.failure = &f
		return
	case f.stopped():
		return
	case !other:
		s.ended, s.died = true, true
	}
	s.starts.last = f
	if old := s.failure; old != nil && !old.stopped() {
		f.atMs = old.atMs // without progress since, it is still the same outage
	}
	s.failure = &f
}
