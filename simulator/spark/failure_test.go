package spark

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

func TestEveryFailureHasAStackAndItsClass(t *testing.T) {
	classes := map[FailureKind][2]string{ // in 3.5 and in 4.3
		ConcurrentUpdate: {"CONCURRENT_STREAM_LOG_UPDATE", "CONCURRENT_STREAM_LOG_UPDATE"},
		StreamFailed:     {"STREAM_FAILED", "STREAM_FAILED"},
		MissingMetadata:  {"", "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"},
		OffsetOutOfRange: {"", "KAFKA_DATA_LOSS.START_OFFSET_RESET"},
		Cancelled:        {"", "SPARK_JOB_CANCELLED"},
	}
	for _, k := range FailureKinds() {
		f := Failure{Kind: k, Batch: 12, Query: "q-1", RunID: "r-1", Topic: "clicks"}
		for i, v := range []event.Version{supported[1], supported[5]} {
			text, class := f.Exception(v)
			if class != classes[k][i] {
				t.Errorf("%s of %s has class %q", k, v, class)
			}
			first, rest, _ := strings.Cut(text, "\n")
			if !strings.Contains(first, "org.apache.spark") && !strings.Contains(first, "java.") {
				t.Errorf("%s begins with %q", k, first)
			}
			if !strings.Contains(rest, "\tat org.apache.spark.sql.execution.streaming.") || strings.ContainsAny(text, "%\r") {
				t.Errorf("%s has no stack:\n%s", k, text)
			}
		}
		if _, class := f.Exception(supported[0]); class != "" {
			t.Errorf("%s of 3.4 has class %q", k, class)
		}
	}
}

func TestTheLoserOfACheckpointSaysWhatTheCapturedOneSaid(t *testing.T) {
	for _, s := range capturedStreams(t, false) {
		if s.name != "4.3.0/shared-checkpoint" {
			continue
		}
		for _, line := range s.lines {
			if !bytes.Contains(line, []byte("CONCURRENT")) {
				continue
			}
			f := Failure{Kind: ConcurrentUpdate, Batch: 67}
			got, _ := f.Exception(s.version)
			want := parsed(t, line).text(t, "exception")
			for range 2 {
				var a, b string
				a, got, _ = strings.Cut(got, "\n")
				b, want, _ = strings.Cut(want, "\n")
				if a != b {
					t.Errorf("line %q, captured %q", a, b)
				}
			}
			for frame := range strings.Lines(got) {
				place := frame[:strings.LastIndex(frame, "(")]
				if !strings.Contains(want, place) {
					t.Errorf("the captured stack has no %s", place)
				}
			}
			return
		}
	}
	t.Error("no captured run lost its checkpoint")
}

func TestAStageFailureNamesItsCauseTwice(t *testing.T) {
	f := Failure{Kind: OutOfMemory, Batch: 3}
	text, _ := f.Exception(supported[3])
	if n := strings.Count(text, "java.lang.OutOfMemoryError: Java heap space"); n != 2 {
		t.Errorf("named %d times in\n%s", n, text)
	}
	if !strings.Contains(text, "in stage 7.0 failed 4 times") || !strings.Contains(text, "Driver stacktrace:") {
		t.Errorf("no job's exception:\n%s", text)
	}
	if strings.Contains(text, "runtime.state") || !strings.Contains(text, "streaming.runtime.MicroBatchExecution") {
		t.Errorf("packages of another version:\n%s", text)
	}
	lost := Failure{Kind: ExecutorLost}
	if text, _ := lost.Exception(supported[3]); strings.Contains(text, "Caused by") {
		t.Errorf("nothing in a task is the cause of a lost executor:\n%s", text)
	}
}

func TestFailuresAreFoundByClassOrText(t *testing.T) {
	for _, c := range []struct {
		class, text string
		kind        FailureKind
	}{
		{"", "", UserCode},
		{"", "java.lang.ArithmeticException: / by zero", UserCode},
		{"CONCURRENT_STREAM_LOG_UPDATE", "", ConcurrentUpdate},
		{"STREAM_FAILED", "anything", StreamFailed},
		{"", "java.lang.OutOfMemoryError: GC overhead limit exceeded", OutOfMemory},
		{"", "ExecutorLostFailure (executor 1 exited)", ExecutorLost},
		{"CANNOT_LOAD_STATE_STORE.UNCATEGORIZED", "", CorruptSnapshot},
		{"", "org.apache.kafka.clients.consumer.OffsetOutOfRangeException: x", OffsetOutOfRange},
		{"", "org.apache.spark.SparkException: Job 7 cancelled because SparkContext was shut down", ContextShutDown},
		{"", "org.apache.spark.SparkException: Job 7 cancelled by the user", Cancelled},
	} {
		f := FailureOf(c.class, c.text)
		if f.Kind != c.kind {
			t.Errorf("%q %q is %s, want %s", c.class, c.text, f.Kind, c.kind)
		}
		text, class := f.Exception(supported[4])
		if c.text != "" && !strings.Contains(text, c.text) {
			t.Errorf("%q is not said in\n%s", c.text, text)
		}
		if c.class != "" && class != c.class {
			t.Errorf("class %q became %q", c.class, class)
		}
	}
}

func TestFailureNamesAreRead(t *testing.T) {
	for _, k := range FailureKinds() {
		if got, err := ParseFailureKind(k.String()); err != nil || got != k {
			t.Errorf("%s is read as %v, %v", k, got, err)
		}
	}
	_, err := ParseFailureKind("out-of-memry")
	if err == nil || err.Error() != `unknown failure "out-of-memry", did you mean "out-of-memory"?` {
		t.Errorf("error %v", err)
	}
	if got := FailureKind(200).String(); got != "unknown" {
		t.Errorf("got %q", got)
	}
}
