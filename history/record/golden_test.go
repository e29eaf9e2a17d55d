package record

import (
	"bufio"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

var rewrite = flag.Bool("update", false, "write the golden file of a new version")

// golden is a file of one version: its dictionary, and records with what they hold.
type golden struct {
	words   []Entry
	records []goldenRecord
}

type goldenRecord struct {
	name  string
	bytes []byte
	holds []string
}

// goldenForms are the forms that this program writes: a version each, with one update of
// each kind that a daemon stores in it.
var goldenForms = []struct {
	version int
	appends func(dst []byte, u *event.Update, d *Dictionary) []byte
	updates func() ([]string, []*event.Update)
}{
	{Version, Append, goldenUpdates},
	{heartbeatVersion, AppendHeartbeat, goldenHeartbeats},
}

func goldenFile(version int) string { return fmt.Sprintf("testdata/v%d.golden", version) }

// goldenUpdates are one of each kind.
func goldenUpdates() (names []string, updates []*event.Update) {
	for _, c := range []struct {
		name string
		u    *event.Update
	}{
		{"batch of three operators", madeUpdate(0)},
		{"next batch", madeUpdate(1)},
		{"started in an envelope", madeStarted()},
		{"terminated by an exception", madeFailed()},
		{"heartbeat", madeHeartbeat()},
		{"retired by time", madeRetired()},
		{"real-time batch of odd figures", madeOdd()},
	} {
		names, updates = append(names, c.name), append(updates, c.u)
	}
	return names, updates
}

// goldenHeartbeats hold no more than is kept of a heartbeat.
func goldenHeartbeats() (names []string, updates []*event.Update) {
	for _, name := range []string{"of one query", "of two, with executors and settings", "of nothing that runs"} {
		u := madeHeartbeat()
		n := u.Event.Envelope
		u.Event.Extra, u.Event.Cluster = nil, ""
		n.App = event.App{SparkVersion: n.App.SparkVersion}
		u.Origin = event.Origin{Offset: event.Absent, ReceivedMs: u.Origin.ReceivedMs}
		switch name {
		case "of one query":
			n.Active = n.Active[:1]
			n.Active[0].Run = ""
		case "of two, with executors and settings":
			n.Conf, n.Executors = madeStarted().Event.Envelope.Conf, madeStarted().Event.Envelope.Executors
		default:
			n.Active, n.Seq, n.AtMs = nil, event.Absent, event.Absent
			n.App = event.App{}
		}
		names, updates = append(names, name), append(updates, u)
	}
	return names, updates
}

func madeEvent(kind event.Kind) *event.Event {
	e := *madeUpdate(0).Event
	e.Kind, e.Batch, e.AtMs = kind, nil, 1_930_000_111_222
	return &e
}

func madeStarted() *event.Update {
	e := madeEvent(event.KindStarted)
	e.JobTags = []string{"nightly"}
	e.Extra = []event.Label{{Name: "team", Value: "payments"}}
	e.Envelope = &event.Envelope{
		Sender: "c4d0a5ab-2f61-4a39-9f4b-0f8a47b7d0aa", Seq: 1, Dropped: 0, AtMs: e.AtMs + 3,
		App:  event.App{ID: "app-20310301-0007", Name: "shop", SparkVersion: "4.1.2", Cluster: "eu-1"},
		Conf: map[string]string{"spark.sql.shuffle.partitions": "200", "spark.locality.wait": "3s"},
		Executors: &event.Executors{
			Count: 6, Cores: 24, MemoryBytes: 51_539_607_552, OverheadBytes: event.Absent, Losses: 1, GCTimeMs: 81_222,
		},
	}
	return &event.Update{
		Event: e, Outcome: event.OutcomeStarted, NewRun: true, NewQuery: true, SegmentStart: true,
		State: event.StateRunning, IntervalMs: math.NaN(), Trigger: event.TriggerUnknown,
		Origin: event.Origin{Source: "http", Offset: -1, ReceivedMs: e.AtMs + 90},
	}
}

func madeFailed() *event.Update {
	e := madeEvent(event.KindTerminated)
	e.Failure = &event.Failure{Class: "CANNOT_LOAD_STATE_STORE", Message: "Job aborted: an error while loading state"}
	return &event.Update{
		Event: e, Outcome: event.OutcomeFailed, State: event.StateFailed, Was: event.StateOverdue, Missed: 3, MissedReason: event.MissedDropped,
		IntervalMs: 60_000, IntervalFrom: event.IntervalConfig, Trigger: event.TriggerInterval,
		Origin: event.Origin{Source: "kafka", Topic: "spark-events", Partition: 5, Offset: 881_000, ReceivedMs: e.AtMs - 4},
	}
}

func madeHeartbeat() *event.Update {
	u := madeStarted()
	e := u.Event
	e.Kind, e.JobTags, e.Extra, e.Query, e.Run = event.KindHeartbeat, nil, nil, event.QueryRef{}, ""
	e.Envelope.Conf, e.Envelope.Executors, e.Envelope.Seq, e.Envelope.Dropped = nil, nil, 88, event.Absent
	e.Envelope.Active = []event.ActiveQuery{
		{ID: "0d7ff1a0-9c33-4c5b-8a2f-7e0a6f6b1c11", Run: "b3f8a1de-55c0-4f0e-9a61-3f3c1d2e4f50", TriggerActive: true},
		{ID: "hand-made id", Run: "hand-made run"},
	}
	return &event.Update{Event: e, Outcome: event.OutcomeHeartbeat, IntervalMs: math.NaN(), Origin: u.Origin}
}

func madeRetired() *event.Update {
	return &event.Update{
		Event: madeEvent(event.KindTick), Outcome: event.OutcomeStateChange, State: event.StateRetired, Was: event.StateIdle,
		IntervalMs: math.NaN(), Successor: "f2b0d3c8-6a5e-4a64-8d51-1a2b3c4d5e6f", Moved: true,
	}
}

func madeOdd() *event.Update {
	u := madeUpdate(2)
	b := u.Event.Batch
	u.OutOfOrder, u.SharedRuns, u.Reexecuted, u.Rewound = true, true, true, true
	u.Trigger, b.Trigger, b.Databricks = event.TriggerRealTime, event.TriggerRealTime, true
	b.Run, b.StartMs, b.WatermarkMs, b.FirstWatermark = "another-run", event.Absent, event.Absent, true
	b.Values[event.BatchDuration], b.Values[event.EventTimeAvg] = 9_000.5, math.NaN()
	b.UnknownPhases = []event.KV{{Key: "planWarmup", Value: 17}}
	b.Observed = []event.Observed{{Name: "quality", Column: "null_share", Value: 0.0625}, {Name: "quality", Column: "sum", Value: -12.75}}
	b.Percentiles = []event.Percentile{{Metric: event.RTME2ELatency, Quantile: 0.99, Value: 412.3}}
	o := &b.Operators[1]
	o.Index, o.Stores, o.SnapshotMin = 4, 400, -1
	o.Values[event.RocksDBLoadLatency] = -7
	o.Unknown = []event.KV{{Key: "rocksdbNewThing", Value: 3.5}, {Key: "rocksdbEndless", Value: math.Inf(1)}}
	s := b.AddSource()
	s.Description, s.InputRate, s.FilesOutstanding, s.BytesOutstanding = "FileStreamSource[s3://bucket/in]", math.Pi, 12, 3e9
	return u
}

// The bytes of a version never change: what is on a disk must stay readable, and
// the same update must not be two records.
func TestThisVersionWritesTheSameBytesAsEver(t *testing.T) {
	for _, form := range goldenForms {
		names, updates := form.updates()
		d := NewDictionary(0)
		now := golden{}
		for i, u := range updates {
			now.records = append(now.records, goldenRecord{name: names[i], bytes: form.appends(nil, u, d), holds: leaves(u)})
		}
		now.words = d.Pending()
		file := goldenFile(form.version)
		before, err := os.ReadFile(file)
		if *rewrite && os.IsNotExist(err) {
			if err := os.WriteFile(file, []byte(now.text()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v: `go test ./history/record -update` writes it for a new version", err)
		}
		if diff := cmp.Diff(strings.Split(string(before), "\n"), strings.Split(now.text(), "\n")); diff != "" {
			t.Errorf("version %d is on disks as recorded; a change needs a version of its own (-recorded +now):\n%s", form.version, diff)
		}
	}
}

func TestEveryVersionThatThereWasIsReadable(t *testing.T) {
	for version := 1; version <= heartbeatVersion; version++ {
		g := readGolden(t, goldenFile(version))
		d := NewDictionary(0)
		if err := d.Load(g.words); err != nil {
			t.Fatal(err)
		}
		var u event.Update // of the one before
		for _, r := range g.records {
			if err := Decode(r.bytes, d, &u); err != nil {
				t.Errorf("version %d, %s: %v", version, r.name, err)
				continue
			}
			if diff := cmp.Diff(r.holds, leaves(&u)); diff != "" {
				t.Errorf("version %d, %s (-recorded +read):\n%s", version, r.name, diff)
			}
		}
	}
}

func TestOtherVersionsAreRefusedByName(t *testing.T) {
	d := NewDictionary(0)
	b := Append(nil, madeUpdate(0), d)
	b[0] = heartbeatVersion + 1
	err := Decode(b, d, &event.Update{})
	if want := "version 3, this program reads 1 and 2"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// leaves lists every field that holds something, one on a line.
func leaves(u *event.Update) []string {
	var out []string
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.Array, reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i), fmt.Sprintf("%s[%d]", path, i))
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem(), path)
			}
		case reflect.Map:
			for _, k := range v.MapKeys() {
				walk(v.MapIndex(k), fmt.Sprintf("%s[%q]", path, k.String()))
			}
		default:
			if text := leaf(v); text != "" {
				out = append(out, strings.TrimPrefix(path, ".")+" = "+text)
			}
		}
	}
	walk(reflect.ValueOf(u).Elem(), "")
	sort.Strings(out)
	return out
}

func leaf(v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Float64:
		if x := v.Float(); !math.IsNaN(x) {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
		return ""
	case v.IsZero():
		return ""
	case v.Kind() == reflect.Int64 && v.Int() == event.Absent:
		return "absent"
	case v.Kind() == reflect.String:
		return strconv.Quote(v.String())
	case v.Kind() == reflect.Bool:
		return "true"
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	}
	return strconv.FormatUint(v.Uint(), 10)
}

func (g *golden) text() string {
	var b strings.Builder
	for _, w := range g.words {
		fmt.Fprintf(&b, "word %d %q\n", w.ID, w.Text)
	}
	for _, r := range g.records {
		fmt.Fprintf(&b, "\nrecord %s\n", r.name)
		for rest := r.bytes; len(rest) > 0; rest = rest[min(32, len(rest)):] {
			fmt.Fprintf(&b, "hex %x\n", rest[:min(32, len(rest))])
		}
		for _, l := range r.holds {
			fmt.Fprintf(&b, "holds %s\n", l)
		}
	}
	return b.String()
}

func readGolden(t testing.TB, file string) *golden {
	t.Helper()
	f, err := os.Open(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := &golden{}
	in := bufio.NewScanner(f)
	for in.Scan() {
		if err := g.line(in.Text()); err != nil {
			t.Fatalf("%s: %q: %v", file, in.Text(), err)
		}
	}
	if len(g.records) == 0 || in.Err() != nil {
		t.Fatalf("%s has no records: %v", file, in.Err())
	}
	return g
}

func (g *golden) line(text string) error {
	kind, rest, _ := strings.Cut(text, " ")
	if kind == "record" {
		g.records = append(g.records, goldenRecord{name: rest})
		return nil
	}
	switch kind {
	case "":
	case "word":
		var w Entry
		if _, err := fmt.Sscanf(rest, "%d %q", &w.ID, &w.Text); err != nil {
			return err
		}
		g.words = append(g.words, w)
	case "hex":
		b, err := hex.DecodeString(rest)
		if err != nil {
			return err
		}
		r := &g.records[len(g.records)-1]
		r.bytes = append(r.bytes, b...)
	case "holds":
		r := &g.records[len(g.records)-1]
		r.holds = append(r.holds, rest)
	default:
		return fmt.Errorf("line of kind %q", kind)
	}
	return nil
}
