package decode

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
)

// dump writes what one element became, one fact per line, absent facts left out.
func dump(r result) string {
	switch {
	case r.Reason != "":
		return fmt.Sprintf("reject %s: %s\n", r.Reason, r.Error)
	case r.Event == nil:
		return "skipped\n"
	}
	ev := r.Event
	w := &facts{}
	w.line("%s id=%s name=%q run=%s", ev.Kind, ev.Query.ID, ev.Query.Name, ev.Run)
	w.more("at", ev.AtMs)
	w.text("application", ev.Query.Application)
	w.text("cluster", ev.Cluster)
	w.text("tags", strings.Join(ev.JobTags, " "))
	if f := ev.Failure; f != nil {
		w.line("failure class=%q message=%q", f.Class, f.Message)
	}
	if ev.Envelope != nil {
		w.envelope(ev.Envelope)
	}
	if ev.Batch != nil {
		w.batch(ev.Batch)
	}
	return w.String()
}

// facts collects lines of facts.
type facts struct{ strings.Builder }

func (w *facts) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// more appends a number to the line before.
func (w *facts) more(name string, n int64) {
	if n != event.Absent {
		w.append(name + "=" + strconv.FormatInt(n, 10))
	}
}

func (w *facts) text(name, s string) {
	if s != "" {
		w.append(fmt.Sprintf("%s=%q", name, s))
	}
}

func (w *facts) figure(name string, f float64) {
	if f == f {
		w.append(name + "=" + strconv.FormatFloat(f, 'g', -1, 64))
	}
}

func (w *facts) append(s string) {
	have := strings.TrimSuffix(w.Builder.String(), "\n")
	w.Builder.Reset()
	w.Builder.WriteString(have + " " + s + "\n")
}

func (w *facts) envelope(e *event.Envelope) {
	w.line("  envelope sender=%q", e.Sender)
	w.more("seq", e.Seq)
	w.more("dropped", e.Dropped)
	w.more("at", e.AtMs)
	w.text("app.id", e.App.ID)
	w.text("app.name", e.App.Name)
	w.text("app.sparkVersion", e.App.SparkVersion)
	w.text("app.cluster", e.App.Cluster)
	keys := make([]string, 0, len(e.Conf))
	for k := range e.Conf {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		w.line("    conf %s=%q", k, e.Conf[k])
	}
	if x := e.Executors; x != nil {
		w.line("    executors")
		w.more("count", x.Count)
		w.more("cores", x.Cores)
		w.more("memory", x.MemoryBytes)
		w.more("overhead", x.OverheadBytes)
		w.more("losses", x.Losses)
		w.more("gc", x.GCTimeMs)
	}
	for _, q := range e.Active {
		w.line("    active id=%s run=%s trigger=%v", q.ID, q.Run, q.TriggerActive)
	}
}

func (w *facts) batch(b *event.Batch) {
	w.line("  batch executed=%v nodata=%v", b.Executed, b.NoData)
	w.more("id", b.ID)
	w.more("start", b.StartMs)
	w.more("watermark", b.WatermarkMs)
	w.more("max", b.EventTimeMaxMs)
	if b.FirstWatermark {
		w.append("first-watermark")
	}
	if b.Databricks {
		w.append("databricks")
	}
	if !b.Spark.IsZero() {
		w.append("spark>=" + b.Spark.String())
	}
	if b.Trigger != event.TriggerUnknown {
		w.append("trigger=" + b.Trigger.String())
	}
	w.text("sink", b.Description)
	w.text("missing", strings.Join(b.Missing.MissingNames(), " "))
	w.values("    ", &b.Values)
	for _, kv := range b.UnknownPhases {
		w.line("    phase %s=%v", kv.Key, kv.Value)
	}
	for i := range b.Operators {
		w.operator(&b.Operators[i])
	}
	for i := range b.Sources {
		w.source(&b.Sources[i])
	}
	for _, o := range b.Observed {
		w.line("  observed %s.%s=%v", o.Name, o.Column, o.Value)
	}
	for _, p := range b.Percentiles {
		w.line("  percentile %s %v=%v", event.Lookup(p.Metric).JSON, p.Quantile, p.Value)
	}
}

func (w *facts) operator(o *event.Operator) {
	w.line("  operator %d name=%q instances=%d stores=%d provider=%s", o.Index, o.Name, o.Instances, o.Stores, o.Provider)
	w.more("snapshotMin", o.SnapshotMin)
	if o.NumSnapshots > 0 {
		w.more("snapshots", int64(o.NumSnapshots))
	}
	w.values("    ", &o.Values)
	for _, kv := range o.Unknown {
		w.line("    unknown %s=%v", kv.Key, kv.Value)
	}
}

func (w *facts) source(s *event.Source) {
	w.line("  source %q", s.Description)
	w.more("rows", s.Rows)
	w.more("backlog", s.Backlog)
	w.more("read", s.Read)
	w.figure("in", s.InputRate)
	w.figure("out", s.ProcessedRate)
	w.figure("minBehind", s.MinBehind)
	w.figure("maxBehind", s.MaxBehind)
	w.figure("avgBehind", s.AvgBehind)
	w.figure("files", s.FilesOutstanding)
	w.figure("bytes", s.BytesOutstanding)
}

func (w *facts) values(indent string, v *event.Vector) {
	for id := range v {
		if f := v[id]; f == f {
			w.line("%s%s=%s", indent, event.Lookup(event.MetricID(id)).JSON, strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
}

// limitsOf reads limits from the arguments of a command.
func limitsOf(t *testing.T, d *datadriven.TestData) (l Limits) {
	fields := map[string]*int{
		"event": &l.EventBytes, "keys": &l.KeysPerEvent, "operators": &l.Operators, "sources": &l.Sources,
		"depth": &l.Depth, "unknown": &l.UnknownKeys, "string": &l.StringBytes, "rejects": &l.RejectsInRow,
	}
	for _, arg := range d.CmdArgs {
		f := fields[arg.Key]
		if f == nil {
			t.Fatalf("%s: no limit %q", d.Pos, arg.Key)
		}
		d.ScanArgs(t, arg.Key, f)
	}
	return l
}

// TestBodiesBecomeTheEventsInTheFiles decodes every input of testdata twice with
// the parser alone and three times with the shape cache: all must agree.
func TestBodiesBecomeTheEventsInTheFiles(t *testing.T) {
	datadriven.Walk(t, "testdata/bodies", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "decode" {
				t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			}
			limits := limitsOf(t, d)
			shaped := NewPool(limits)
			limits.TemplateBytes = -1
			plain := NewPool(limits)
			for range 3 {
				requireSame(t, plain, shaped, []byte(d.Input))
			}
			var out strings.Builder
			for i, r := range decodeAll(plain, []byte(d.Input)) {
				fmt.Fprintf(&out, "%d: %s", i, dump(r))
			}
			return out.String()
		})
	})
}
