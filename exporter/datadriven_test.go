package exporter

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// TestScripts plays the scripts of testdata/scripts: updates in, series out.
//
// Commands: `new` starts over with options; `started`, `batch`, `idle`, `state` and
// `terminated` apply an update (query, name, app, run, conf set the query's);
// `expire` moves the clock; `show` prints the series whose line has all the given
// words, without the labels that every line has; `openmetrics` prints them as
// OpenMetrics has them; `self` prints the exporter's own counters that are not 0;
// `count` prints how many lines there are.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		s := newScript(Options{})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
	})
}

type script struct {
	x       *Exporter
	reg     *prometheus.Registry
	streams map[string]*stream
	nowMs   int64
}

func newScript(o Options) *script {
	s := &script{reg: prometheus.NewRegistry(), streams: map[string]*stream{}, nowMs: t0}
	o.Registerer = s.reg
	s.x = New(o)
	return s
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "new":
		*s = *newScript(scriptOptions(t, d))
		return ""
	case "expire":
		after, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			t.Fatal(err)
		}
		s.nowMs += after.Milliseconds()
		s.x.Expire(s.nowMs)
		return ""
	case "show":
		return s.show(t, d, expfmt.FmtText)
	case "openmetrics":
		return s.show(t, d, expfmt.FmtOpenMetrics_1_0_0)
	case "count":
		return strconv.Itoa(len(strings.Split(strings.TrimSpace(text(t, s.x)), "\n")))
	case "self":
		return s.self(t)
	}
	u := s.update(t, d)
	u.Origin.ReceivedMs = s.nowMs
	s.x.Apply(u)
	return ""
}

func scriptOptions(t *testing.T, d *datadriven.TestData) Options {
	t.Helper()
	o := Options{}
	ints := map[string]*int{
		"series": &o.Series, "per_query": &o.SeriesPerQuery, "unknown": &o.UnknownKeys, "unknown_op": &o.UnknownKeysPerOperator,
		"label": &o.LabelBytes, "phases": &o.Phases, "observed": &o.Observed,
	}
	for _, a := range d.CmdArgs {
		switch {
		case a.Key == "stall_ms":
			o.StallMilliseconds = true
		case a.Key == "stale":
			o.GaugeStaleness, _ = time.ParseDuration(a.Vals[0])
		case a.Key == "grace":
			o.RetirementGrace, _ = time.ParseDuration(a.Vals[0])
		default:
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil || ints[a.Key] == nil {
				t.Fatalf("%s: option %s: %v", d.Pos, a.Key, err)
			}
			*ints[a.Key] = n
		}
	}
	return o
}

// show prints the lines that have every word, and the comments if "comments" is one.
func (s *script) show(t *testing.T, d *datadriven.TestData, f expfmt.Format) string {
	t.Helper()
	var out []string
	for line := range strings.SplitSeq(page(t, s.x, f), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		line = strings.TrimPrefix(line, "spark_streaming_")
		if slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return !strings.Contains(line, word(a)) }) {
			continue
		}
		line = strings.Replace(line, `query_id="q",query_name="orders",application="shop"`, "", 1)
		out = append(out, strings.Replace(strings.Replace(line, "{,", "{", 1), "{}", "", 1))
	}
	slices.Sort(out)
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// word returns an argument as it stands in a line: name or name="value".
func word(a datadriven.CmdArg) string {
	if len(a.Vals) == 0 {
		return a.Key
	}
	return a.Key + `="` + a.Vals[0] + `"`
}

func (s *script) self(t *testing.T) string {
	t.Helper()
	mfs, err := s.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, mf := range mfs {
		for _, m := range mf.Metric {
			if v := m.GetCounter().GetValue(); v != 0 {
				out = append(out, fmt.Sprintf("%s{%s} %g", mf.GetName(), m.Label[0].GetValue(), v))
			}
		}
	}
	return strings.Join(out, "\n")
}

// update makes the update that a command describes.
func (s *script) update(t *testing.T, d *datadriven.TestData) *event.Update {
	t.Helper()
	s.nowMs += 1000
	id := "q"
	d.MaybeScanArgs(t, "query", &id)
	st := s.streams[id]
	if st == nil {
		st = newStream(id)
		s.streams[id] = st
	}
	var run string
	newRun := d.MaybeScanArgs(t, "run", &run)
	if newRun {
		st.run = event.RunID(run)
	}
	d.MaybeScanArgs(t, "name", &st.ref.Name)
	d.MaybeScanArgs(t, "app", &st.ref.Application)
	s.conf(d, st)
	st.nowMs = s.nowMs - 1000
	u := s.updateOf(t, d, st)
	u.NewRun = u.NewRun || newRun
	d.MaybeScanArgs(t, "missed", &u.Missed)
	if a, ok := d.Arg("reason"); ok {
		u.MissedReason = map[string]event.MissedReason{"dropped": event.MissedDropped, "across_runs": event.MissedAcrossRuns, "sender": event.MissedSender}[a.Vals[0]]
	}
	if a, ok := d.Arg("interval"); ok {
		u.IntervalMs, u.IntervalFrom = number(t, a.Vals[0]), event.IntervalInferred
	}
	if d.HasArg("configured") {
		u.IntervalFrom = event.IntervalConfig
	}
	if d.HasArg("started_seen") {
		u.StartedSeen = true
	}
	if a, ok := d.Arg("cluster"); ok {
		u.Event.Cluster = a.Vals[0]
	}
	if a, ok := d.Arg("team"); ok {
		u.Event.Extra = []event.Label{{Name: "team", Value: a.Vals[0]}, {Name: "instance", Value: "stolen"}, {Name: "query_id", Value: "stolen"}}
	}
	return u
}

// conf takes settings over by the last word of their names.
func (s *script) conf(d *datadriven.TestData, st *stream) {
	names := map[string]string{
		"changelog": confChangelog, "bounded": confBounded, "tracked": confTracked, "reset": confReset, "provider": confProvider,
	}
	for short, key := range names {
		if a, ok := d.Arg(short); ok {
			if st.conf == nil {
				st.conf = map[string]string{}
			}
			st.conf[key] = a.Vals[0]
		}
	}
}

func (s *script) updateOf(t *testing.T, d *datadriven.TestData, st *stream) *event.Update {
	t.Helper()
	switch d.Cmd {
	case "started":
		return st.started()
	case "idle":
		return st.idle()
	case "terminated":
		return st.update(event.OutcomeTerminated, event.KindTerminated, event.StateTerminated)
	case "state":
		i := slices.IndexFunc(event.States(), func(s event.State) bool { return s.String() == d.CmdArgs[0].Key })
		return st.state(event.States()[i])
	case "batch":
		return s.batch(t, d, st)
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return nil
}

func (s *script) batch(t *testing.T, d *datadriven.TestData, st *stream) *event.Update {
	t.Helper()
	d.MaybeScanArgs(t, "id", &st.next)
	u := st.executed(func(b *event.Batch) {
		b.Operators = b.Operators[:0]
		b.Values.Clear()
		b.NoData = d.HasArg("nodata")
		for line := range strings.SplitSeq(d.Input, "\n") {
			if strings.TrimSpace(line) != "" {
				batchLine(t, b, strings.Fields(line))
			}
		}
	})
	if a, ok := d.Arg("outcome"); ok {
		outs := event.Outcomes()
		u.Outcome = outs[slices.IndexFunc(outs, func(o event.Outcome) bool { return o.String() == a.Vals[0] })]
	}
	return u
}

// batchLine adds one line of a script to a batch.
func batchLine(t *testing.T, b *event.Batch, w []string) {
	t.Helper()
	last := func() *event.Operator { return &b.Operators[len(b.Operators)-1] }
	switch {
	case w[0] == "op":
		operatorLine(t, b, w[1:])
	case w[0] == "source":
		src := b.AddSource()
		for _, kv := range w[1:] {
			k, v, _ := strings.Cut(kv, "=")
			map[string]func(float64){
				"rows":    func(f float64) { src.Rows = int64(f) },
				"backlog": func(f float64) { src.Backlog = int64(f) },
				"rate":    func(f float64) { src.InputRate = f },
			}[k](number(t, v))
		}
	case w[0] == "phase":
		b.UnknownPhases = append(b.UnknownPhases, event.KV{Key: w[1], Value: number(t, w[2])})
	case w[0] == "watermark":
		b.WatermarkMs = int64(number(t, w[1]))
	case w[0] == "max":
		b.EventTimeMaxMs = int64(number(t, w[1]))
	case w[0] == "observed":
		b.Observed = append(b.Observed, event.Observed{Name: w[1], Column: w[2], Value: number(t, w[3])})
	case w[0] == "quantile":
		id, ok := event.ByKey(event.ScopeQuery, []byte(w[1]))
		if !ok {
			t.Fatalf("no metric %s", w[1])
		}
		b.Percentiles = append(b.Percentiles, event.Percentile{Metric: id, Quantile: number(t, w[2]), Value: number(t, w[3])})
	case strings.HasPrefix(w[0], "?"):
		last().Unknown = append(last().Unknown, event.KV{Key: w[0][1:], Value: number(t, w[1])})
	default:
		if id, ok := event.ByKey(event.ScopeQuery, []byte(w[0])); ok {
			b.Values[id] = number(t, w[1])
			return
		}
		id, ok := event.ByKey(event.ScopeOperator, []byte(w[0]))
		if !ok {
			t.Fatalf("no metric %s", w[0])
		}
		last().Values[id] = number(t, w[1])
	}
}

func operatorLine(t *testing.T, b *event.Batch, w []string) {
	t.Helper()
	o := b.AddOperator()
	o.Name, o.Provider = strings.Trim(w[0], `"`), event.ProviderRocksDB
	for _, kv := range w[1:] {
		k, v, _ := strings.Cut(kv, "=")
		switch k {
		case "stores":
			o.Stores = int32(number(t, v))
			o.Instances = max(o.Instances, o.Stores)
		case "instances":
			o.Instances = int32(number(t, v))
		case "snapshot":
			o.SnapshotMin, o.NumSnapshots = int64(number(t, v)), 5
		case "hdfs":
			o.Provider = event.ProviderHDFS
		default:
			t.Fatalf("operator has no %s", k)
		}
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	if s == "nan" {
		return math.NaN()
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// golden compares got with a file of testdata, or writes it where -rewrite is given.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if slices.Contains(os.Args, "-rewrite") {
		if err := os.WriteFile("testdata/"+name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("testdata/%s line %d:\n got %s\nwant %s", name, i+1, g[i], w[i])
		}
	}
	t.Fatalf("testdata/%s: got %d lines, want %d", name, len(g), len(w))
}
