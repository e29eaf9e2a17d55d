package scenario_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/simulator/scenario"
)

var update = flag.Bool("update", false, "write docs/scenarios.md anew")

const reference = "../../docs/scenarios.md"

// key documents one key of a file. What its default is called is compared with
// what Load fills in, except in brackets.
type key struct{ path, means, def string }

var keys = []key{
	{"description", "one line, shown in lists", ""},
	{"spark_version", "which Spark is played: 3.4, 3.5, 4.0, 4.1, 4.2 or 4.3", "3.5"},
	{"batches", "how many batches of each query are played", "300"},
	{"start", "virtual time of the first trigger", "2026-03-02T00:00:00Z"},
	{"envelope", "events come as stategauge's listeners send them, with settings, executors and heartbeats", "false"},
	{"queries", "how many queries like this run on the cluster, each with an id and a load of its own", "1"},
	{"query.name", "what the query is called", "(name of the file)"},
	{"query.unnamed", "the user gave the query no name", "false"},
	{"query.application", "name of the application", "simulated"},
	{"query.trigger.interval", "a batch each so often", "(none)"},
	{"query.trigger.default", "the next batch begins when the one before has ended", "true"},
	{"query.trigger.available_now", "a run each so often that takes what is there and ends", "(none)"},
	{"query.trigger.real_time", "real-time mode with batches of this length; Spark 4.1 and newer, with operators 4.3", "(none)"},
	{"query.operators[].kind", "aggregation, dedupe, dedupe_within_watermark, join, flat_map_groups, transform_with_state or session_window", ""},
	{"query.operators[].window", "aggregation: length of its windows", "(keys only)"},
	{"query.operators[].gap", "session_window: what ends a session", ""},
	{"query.operators[].timeout", "flat_map_groups, transform_with_state: after how long a key expires", "(never)"},
	{"query.operators[].bound", "join: how far apart in event time two rows may be", "(none: state is kept for ever)"},
	{"query.operators[].event_time_in_key", "dedupe: the watermark's column is among the keys", "true"},
	{"query.operators[].mode", "output mode: append, update or complete", "(update for aggregation, flat_map_groups and transform_with_state, else append)"},
	{"query.operators[].value_bytes", "size of a value in state", "(that of the row)"},
	{"query.operators[].initial_rows", "rows of state from before the first batch", "0"},
	{"query.operators[].language", "transform_with_state: scala or python", "scala"},
	{"query.sources[].kind", "kafka, rate or files", "kafka"},
	{"query.sources[].topic", "name of the topic or folder", "events"},
	{"query.sources[].partitions", "of the topic, or of the rate source", "8"},
	{"query.sources[].rows_per_second", "arrival in the mean", "50"},
	{"query.sources[].row_bytes", "size of a row", "100"},
	{"query.sources[].max_per_trigger", "limit of a batch: maxOffsetsPerTrigger, maxFilesPerTrigger", "0"},
	{"query.sources[].keys.count", "distinct keys at one time", "10000"},
	{"query.sources[].keys.skew", "exponent of a Zipf law over them", "0"},
	{"query.sources[].keys.new_per_second", "how fast the window of keys moves on", "0"},
	{"query.sources[].keys.grow", "new keys are added to the old ones instead of taking their place", "false"},
	{"query.sources[].keys.unique", "each row has a key of its own", "false"},
	{"query.sources[].rate.daily", "amplitude of a daily cycle", "0%"},
	{"query.sources[].rate.growth", "growth per day", "0%"},
	{"query.sources[].rate.bursts.every", "mean time from one burst to the next", "0s"},
	{"query.sources[].rate.bursts.length", "how long a burst lasts", "0s"},
	{"query.sources[].rate.bursts.factor", "how many times the rows", "0"},
	{"query.sources[].rate.on", "rows come for so long", "0s"},
	{"query.sources[].rate.off", "and then stay away for so long", "0s"},
	{"query.sources[].rate.noise", "standard deviation of the logarithm of the rate, from second to second", "0.05"},
	{"query.sources[].late.typical", "median of how far event time trails behind arrival; 0 for the rate source", "1s"},
	{"query.sources[].late.share", "part of the rows that is later than that", "0%"},
	{"query.sources[].late.by", "by how much", "0s"},
	{"query.sources[].duplicates", "part of the rows that comes twice", "0%"},
	{"query.sources[].backlog", "rows that wait at the first trigger", "0"},
	{"query.watermark_delay", "how long the watermark waits", "(no watermark)"},
	{"query.sink.kind", "noop, kafka, delta, foreach_batch or console", "noop"},
	{"query.sink.actions", "foreach_batch: how often a batch is evaluated, since it is not persisted", "1"},
	{"query.plan_time", "planning, per batch", "60ms"},
	{"query.code_time", "the user's own code, per row", "5µs"},
	{"cluster.executors", "how many", "4"},
	{"cluster.cores", "of each", "4"},
	{"cluster.memory", "heap of each", "8GiB"},
	{"cluster.overhead", "memory of each beside the heap", "(a tenth of memory, at least 384MiB)"},
	{"cluster.name", "what the cluster is called in the envelope", ""},
	{"cluster.real_stores", "stores of each operator that are LSM trees, the rest being copies that vary; 0: all", "0"},
	{"cluster.disk.bytes_per_second", "local disk of an executor", "200MiB"},
	{"cluster.disk.fsync", "local disk: one flush", "2ms"},
	{"cluster.store.latency", "checkpoint store: median of a request", "30ms"},
	{"cluster.store.tail", "Pareto index of its slow requests; smaller is heavier", "3"},
	{"cluster.store.tail_share", "part of the requests that is slow", "5%"},
	{"cluster.store.bytes_per_second", "of one connection", "60MiB"},
	{"cluster.core_speed", "of all cores, 1 being the model's own", "1"},
	{"cluster.noise.kind", "how durations vary from batch to batch: none, lognormal, ar1, heavy_tail or wander", "lognormal"},
	{"cluster.noise.sigma", "standard deviation of their logarithm", "0.1"},
	{"cluster.noise.correlation", "ar1: from one batch to the next", "(0.6)"},
	{"cluster.noise.batches", "wander: time constant", "(100)"},
	{"cluster.memtable_bytes", "memtable of a store, in place of the 64 MiB of RocksDB", "1MiB"},
	{"conf", "settings by Spark's own keys; what is not set is as in that version of Spark", "(none)"},
	{"faults[].kind", "see below", ""},
	{"faults[].from_batch", "the first batch that it befalls", "0"},
	{"faults[].query", "of several queries the one that it befalls, 1 and up; 0: all", "0"},
	{"expect[].symptom", "what should be found; see below", ""},
	{"expect[].cause", "what should be named as its cause", ""},
	{"expect[].from_batch", "an alert before this batch is a false one", "(where the first fault begins)"},
	{"expect[].query", "which query it is found on, 1 and up; 0: any, or the cluster", "0"},
	{"expect[].cannot_tell", "events do not decide it: a verdict that says so is right, an alert is not", "false"},
	{"expect[].optional", "the symptom follows from the others: an alert is right, none is missed", "false"},
	{"healthy", "nothing is wrong, and no alert is right", "false"},
}

// pathsOf lists the keys that files can have, by the structs that they decode into.
func pathsOf(t reflect.Type, prefix string) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		return pathsOf(t.Elem(), prefix+"[]")
	}
	if t.Kind() != reflect.Struct {
		return []string{prefix}
	}
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("yaml")
		if name == "-" {
			continue
		}
		out = append(out, pathsOf(t.Field(i).Type, strings.TrimPrefix(prefix+"."+name, "."))...)
	}
	return out
}

func TestEveryKeyIsInTheReference(t *testing.T) {
	var got []string
	for _, k := range keys {
		got = append(got, k.path)
	}
	var want []string
	for _, path := range pathsOf(reflect.TypeFor[scenario.Scenario](), "") {
		if field, ok := strings.CutPrefix(path, "faults[]."); ok && fieldOfKind(field) {
			continue // documented with the kinds that have it
		}
		want = append(want, path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of files (-) and of the reference (+):\n%s", diff)
	}
}

func fieldOfKind(name string) bool {
	for _, k := range scenario.FaultKinds() {
		if k.Has(name) {
			return true
		}
	}
	return false
}

func TestDefaultsAreAsTheReferenceSays(t *testing.T) {
	sc, err := scenario.Load("least.yml", []byte("query: {operators: [{kind: dedupe}]}\nfaults: [{kind: disk-slow}]\nexpect: {symptom: stalled}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if k.def == "" || strings.HasPrefix(k.def, "(") {
			continue
		}
		if got := show(valueAt(reflect.ValueOf(sc), k.path)); got != k.def {
			t.Errorf("%s is %s by default, the reference says %s", k.path, got, k.def)
		}
	}
}

// valueAt follows a path through structs and the first item of lists.
func valueAt(v reflect.Value, path string) reflect.Value {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		return valueAt(v.Index(0), path)
	}
	if path == "" {
		return v
	}
	name, rest, _ := strings.Cut(path, ".")
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == strings.TrimSuffix(name, "[]") {
			return valueAt(v.Field(i), rest)
		}
	}
	return reflect.Value{}
}

func show(v reflect.Value) string {
	if v.Type().Name() != "Bytes" {
		return fmt.Sprint(v.Interface())
	}
	n := v.Int()
	for _, unit := range []string{"", "KiB", "MiB", "GiB"} {
		if n < 1024 || n%1024 != 0 {
			return fmt.Sprint(n, unit)
		}
		n /= 1024
	}
	return fmt.Sprint(n, "TiB")
}

func TestTheReferencePageIsTrue(t *testing.T) {
	want := page()
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run go test ./simulator/scenario -update:\n%s", diff)
	}
}

const pageHead = `# Scenario files

A scenario says what the simulator plays: a query or several, their input, cluster and settings, the faults that befall
them, and the truth that rules are scored against. The files that come with stategauge are in ` + "`configs/scenarios`" + `, and
` + "`stategauge simulate --list`" + ` names them. A file of your own has the same form:

` + "```yaml" + `
# From batch 130 on the checkpoint store is slow.
description: Uploads of state become slower
spark_version: 4.1
query:
  trigger: {interval: 1m}
  watermark_delay: 10m
  operators:
    - kind: aggregation
      window: 10m
  sources:
    - rows_per_second: 50
conf:
  spark.sql.streaming.stateStore.providerClass: org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider
  spark.sql.shuffle.partitions: "16"
faults:
  - kind: store-slow
    from_batch: 130
expect:
  symptom: commit-sync-rising
  cause: slow checkpoint location
` + "```" + `

Files are read strictly: whatever is misspelt, out of range or without effect is reported with its line, all of it at once.
Durations are written as 30s, 15m, 1h30m or 2d, sizes as 64KiB or 1GiB, parts as 25%.

## Keys

A list is marked ` + "`[]`" + `. What stands in brackets as a default is said in words.

| key | meaning | default |
|---|---|---|
`

func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, k := range keys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.path, k.means, k.def)
	}
	b.WriteString(`
A query has one trigger; without one it is the default trigger. A join is the first operator and has two sources; any other
query with several sources reads the union of them.

## Faults

A fault begins with ` + "`from_batch`" + ` and lasts to the end unless ` + "`to_batch`" + ` says otherwise. Batches are counted as they are run, so
the count goes on where a restored checkpoint makes ids go back. ` + "`size`" + ` is how much slower, larger or more things get; ` + "`--size`" + `
replaces it in all faults that are not ` + "`fixed`" + `. Where a fault is no factor, its length, bytes or share is that at size 1.5, and others
are in proportion to how far they lie above 1: x1.2 is two fifths of it, x3 four times as much.

| kind | what happens | fields |
|---|---|---|
`)
	for _, k := range scenario.FaultKinds() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Does, fields(k))
	}
	b.WriteString(`
## Truth

Either ` + "`healthy: true`" + ` or what should be found, as one expectation or a list of them. Symptoms are named after the rules' label
` + "`symptom`" + `:

`)
	for _, s := range scenario.Symptoms() {
		fmt.Fprintf(&b, "- `%s`\n", s)
	}
	return b.String()
}

// general are the fields that the text above the table explains.
const general = " to_batch size fixed ramp "

func fields(k scenario.Kind) string {
	var out []string
	var plain []string
	for _, f := range k.Fields {
		switch {
		case strings.Contains(general, " "+f.Name+" "):
			plain = append(plain, "`"+f.Name+"`")
		case f.Must:
			out = append(out, fmt.Sprintf("`%s`: %s; must be set", f.Name, f.Means))
		default:
			out = append(out, fmt.Sprintf("`%s`: %s (%s)", f.Name, f.Means, f.Default))
		}
	}
	if len(plain) > 0 {
		out = append([]string{strings.Join(plain, ", ")}, out...)
	}
	return strings.Join(out, "; ")
}
