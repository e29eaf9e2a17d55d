package spark

import (
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// FailureKind is a way in which a query ends by itself.
type FailureKind uint8

// The failures.
const (
	UserCode         FailureKind = iota // a function of the user's raises
	ConcurrentUpdate                    // another run wrote to the checkpoint
	StreamFailed                        // a foreachBatch that waits for a query that failed
	OutOfMemory                         // the heap of an executor is full
	ExecutorLost                        // an executor is killed, for its memory as a rule, too often
	MissingMetadata                     // the checkpoint lost its metadata file
	CorruptSnapshot                     // state that cannot be read
	OffsetOutOfRange                    // rows are gone from Kafka before they were read
	Cancelled                           // somebody cancelled the job
	ContextShutDown                     // the application was stopped under the query
)

// Failure is why a run ends. Its zero value is user code that raises.
type Failure struct {
	Kind  FailureKind
	Class string // error class in place of the kind's own; empty: that one
	Text  string // first line of the exception in place of the kind's own
	Batch int64  // that failed
	Query string // id, for messages that name it
	RunID string
	Topic string // of the source, for messages that name it
}

// failures is what is said of each kind.
var failures = [...]struct {
	name  string
	class string
	// since is the first version that gives the class; zero: 3.5, the first to
	// give any.
	since event.Version
	// message is the first line, with %b for the batch, %q and %r for query and
	// run, %t for the topic.
	message string
	more    string // lines after the first, before the stack
	state   string // SQLSTATE that 4.0 and newer add to the last line
	// cause is the exception in a task where the job fails by one; the message is
	// its then.
	task   bool
	frames []string
}{
	UserCode: {
		name: "user-code", task: true,
		message: "java.lang.IllegalStateException: order without a price",
		frames:  userFrames,
	},
	ConcurrentUpdate: {
		name: "concurrent-update", class: "CONCURRENT_STREAM_LOG_UPDATE", state: "40000",
		message: "org.apache.spark.SparkException: [CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for %b.",
		more:    "Please make sure only one streaming job runs on a specific checkpoint location at a time.",
		frames:  logFrames,
	},
	StreamFailed: {
		name: "stream-failed", class: "STREAM_FAILED", state: "XXKST",
		message: "org.apache.spark.sql.streaming.StreamingQueryException: [STREAM_FAILED] Query [id = %q, runId = %r] terminated with exception: Job aborted",
		frames:  batchSinkFrames,
	},
	OutOfMemory: {
		name: "out-of-memory", task: true,
		message: "java.lang.OutOfMemoryError: Java heap space",
		frames:  stateFrames,
	},
	ExecutorLost: {
		name: "executor-lost", task: true,
		message: "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).",
	},
	MissingMetadata: {
		name: "missing-metadata", class: "STREAMING_CHECKPOINT_MISSING_METADATA_FILE", since: V42, state: "42K03",
		message: "org.apache.spark.SparkException: [STREAMING_CHECKPOINT_MISSING_METADATA_FILE] The checkpoint has offsets or commits, but its metadata file is missing.",
		frames:  startFrames,
	},
	CorruptSnapshot: {
		name: "corrupt-snapshot", task: true,
		message: "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
		frames:  loadFrames,
	},
	OffsetOutOfRange: {
		name: "offset-out-of-range", class: "KAFKA_DATA_LOSS.START_OFFSET_RESET", since: V40, state: "22000",
		message: "java.lang.IllegalStateException: Partition %t-0's offset was changed from 184320 to 0, some data may have been missed. ",
		more: "Some data may have been lost because they are not available in Kafka any more; either the\n data was aged out by Kafka or the topic may have been deleted before all the data in the\n" +
			" topic was processed.",
		frames: kafkaFrames,
	},
	Cancelled: {
		name: "cancelled", class: "SPARK_JOB_CANCELLED", since: V40, state: "XXKDA",
		message: "org.apache.spark.SparkException: Job %b cancelled as part of cancellation of all jobs",
		frames:  schedulerFrames,
	},
	ContextShutDown: {
		name:    "context-shut-down",
		message: "org.apache.spark.SparkException: Job %b cancelled because SparkContext was shut down",
		frames:  schedulerFrames,
	},
}

// String returns the kind's name, e.g. out-of-memory.
func (k FailureKind) String() string {
	if int(k) >= len(failures) {
		return "unknown"
	}
	return failures[k].name
}

// FailureKinds returns all kinds in order.
func FailureKinds() []FailureKind {
	out := make([]FailureKind, len(failures))
	for i := range out {
		out[i] = FailureKind(i)
	}
	return out
}

// ParseFailureKind reads what String gives.
func ParseFailureKind(text string) (FailureKind, error) {
	var names []string
	for k := range failures {
		if failures[k].name == text {
			return FailureKind(k), nil
		}
		names = append(names, failures[k].name)
	}
	return 0, fmt.Errorf("unknown failure %q%s", text, strictyaml.DidYouMean(text, names))
}

// FailureOf finds the kind that an error class, or else the first line of an
// exception, stands for: user code where neither is known. Both are kept, so
// that the exception says them.
func FailureOf(class, text string) Failure {
	f := Failure{Class: class, Text: text}
	for k := range failures {
		if class != "" && failures[k].class == class {
			f.Kind = FailureKind(k)
			return f
		}
	}
	for _, w := range [...]struct {
		word string
		kind FailureKind
	}{
		{"OutOfMemoryError", OutOfMemory},
		{"ExecutorLostFailure", ExecutorLost},
		{"CANNOT_LOAD_STATE_STORE", CorruptSnapshot},
		{"some data may have been missed", OffsetOutOfRange},
		{"OffsetOutOfRange", OffsetOutOfRange},
		{"SparkContext was shut down", ContextShutDown},
		{"cancelled", Cancelled},
		{"Multiple streaming jobs", ConcurrentUpdate},
	} {
		if strings.Contains(class+" "+text, w.word) {
			f.Kind = w.kind
			return f
		}
	}
	return f
}

// Exception returns what a terminated event of version v says: the exception
// with its stack over several lines, and the error class, empty where Spark
// gives none.
func (f *Failure) Exception(v event.Version) (exception, class string) {
	k := min(int(f.Kind), len(failures)-1)
	d := &failures[k]
	first := f.Text
	if first == "" {
		first = f.fill(d.message)
	}
	lines := []string{first}
	if f.Text == "" && d.more != "" {
		lines = append(lines, d.more)
	}
	if f.Text == "" && d.state != "" && AtLeast(v, V40) {
		lines[len(lines)-1] += " SQLSTATE: " + d.state
	}
	head := strings.Join(lines, "\n")
	if d.task {
		return f.stageFailure(head, d.frames, v), f.classOf(v)
	}
	return head + "\n" + stack(d.frames, v) + stack(batchFrames, v), f.classOf(v)
}

func (f *Failure) classOf(v event.Version) string {
	if v.Less(V35) {
		return ""
	}
	if f.Class != "" {
		return f.Class
	}
	d := &failures[min(int(f.Kind), len(failures)-1)]
	if v.Less(d.since) {
		return ""
	}
	return d.class
}

func (f *Failure) fill(message string) string {
	topic := f.Topic
	if topic == "" {
		topic = "orders"
	}
	return strings.NewReplacer("%b", fmt.Sprint(f.Batch), "%q", f.Query, "%r", f.RunID, "%t", topic).Replace(message)
}

// stageFailure wraps the exception of a task in that of the job. Only exceptions
// that came from a task's own thread have a stack there and are named as cause.
func (f *Failure) stageFailure(cause string, frames []string, v event.Version) string {
	stage, task := 2*f.Batch+1, 8*f.Batch+5
	var b strings.Builder
	fmt.Fprintf(&b, "org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage %d.0 failed 4 times, ", stage)
	fmt.Fprintf(&b, "most recent failure: Lost task 3.3 in stage %d.0 (TID %d) (10.0.3.17 executor 3): %s\n", stage, task, cause)
	if frames != nil {
		b.WriteString(stack(frames, v) + stack(taskFrames, v) + "\n")
	}
	b.WriteString("Driver stacktrace:\n" + stack(schedulerFrames, v) + stack(batchFrames, v))
	if frames != nil {
		b.WriteString("Caused by: " + cause + "\n" + stack(frames, v) + stack(taskFrames, v))
	}
	return b.String()
}
