package operator

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// The scripts in testdata show what each operator does to its stores, call by
// call, with the sizes of keys and values.

// tracer is a fake that writes down what is asked of it.
type tracer struct {
	*fake
	name string
	out  *strings.Builder
}

func (t *tracer) place(family byte) string {
	if family == 0 {
		return t.name
	}
	return t.families[family-1].Name
}

func (t *tracer) Get(family byte, key []byte) ([]byte, bool, error) {
	value, found, err := t.fake.Get(family, key)
	answer := "nothing"
	if found {
		answer = fmt.Sprintf("%d bytes", len(value))
	}
	fmt.Fprintf(t.out, "get    %s key=%d: %s\n", t.place(family), len(key), answer)
	return value, found, err
}

func (t *tracer) Put(family byte, key, value []byte) error {
	fmt.Fprintf(t.out, "put    %s key=%d value=%d\n", t.place(family), len(key), len(value))
	return t.fake.Put(family, key, value)
}

func (t *tracer) Delete(family byte, key []byte) error {
	fmt.Fprintf(t.out, "delete %s key=%d\n", t.place(family), len(key))
	return t.fake.Delete(family, key)
}

func (t *tracer) Scan(family byte, from, to []byte, visit func(key, value []byte) bool) error {
	before := t.steps
	err := t.fake.Scan(family, from, to, visit)
	what := "all of "
	if from != nil || to != nil {
		what = "part of "
	}
	fmt.Fprintf(t.out, "scan   %s%s: %d read\n", what, t.place(family), t.steps-before)
	return err
}

// script is one operator and what was done with it so far.
type script struct {
	b   *bench
	out strings.Builder
}

func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			switch d.Cmd {
			case "operator":
				s.operator(t, d)
			case "batch":
				s.batch(t, d)
			default:
				d.Fatalf(t, "no command %q", d.Cmd)
			}
			return s.out.String()
		})
	})
}

var kindsByName = map[string]spark.OperatorKind{
	"aggregation": spark.Aggregation, "dedupe": spark.Dedupe, "dedupe-within-watermark": spark.DedupeWithinWatermark,
	"join": spark.Join, "flat-map-groups": spark.FlatMapGroups, "transform-with-state": spark.TransformWithState,
	"session-window": spark.SessionWindow,
}

// operator makes a new one; times are in seconds.
func (s *script) operator(t *testing.T, d *datadriven.TestData) {
	conf := changelog
	spec, v := Spec{Kind: kindsByName[d.CmdArgs[0].Key]}, newest
	for _, a := range d.CmdArgs[1:] {
		number := func() time.Duration { return time.Duration(atoi(t, a.Vals[0])) * time.Second }
		switch a.Key {
		case "version":
			v = version(t, a.Vals[0])
		case "format":
			conf.JoinFormat = int(atoi(t, a.Vals[0]))
		case "mode":
			spec.Mode, _ = ParseMode(a.Vals[0])
		case "watermark":
			spec.Watermark = true
		case "delay":
			spec.Delay = number()
		case "window":
			spec.Window = number()
		case "gap":
			spec.Gap = number()
		case "timeout":
			spec.Timeout = number()
		case "ttl":
			spec.TTL = number()
		case "bound":
			spec.Bounded, spec.Bound = true, number()
		case "event-time-in-key":
			spec.EventTimeInKey = true
		case "value":
			spec.ValueBytes = int(atoi(t, a.Vals[0]))
		default:
			d.Fatalf(t, "no argument %q", a.Key)
		}
	}
	s.b = newBench(t, spec, v, conf)
	for i, f := range s.b.fakes {
		s.b.task.Stores[i] = &tracer{fake: f, name: s.b.o.StoreNames()[i], out: &s.out}
	}
	fmt.Fprintf(&s.out, "%s\n", s.b.o.Name())
}

// batch runs one; its rows are like "7@12 right", key and second.
func (s *script) batch(t *testing.T, d *datadriven.TestData) {
	at := func(key string) int64 {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				return startMs + 1000*atoi(t, a.Vals[0])
			}
		}
		return 0
	}
	var rows []workload.Row
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		key, second, _ := strings.Cut(fields[0], "@")
		row := workload.Row{Key: uint64(atoi(t, key)), EventMs: startMs + 1000*atoi(t, second), Bytes: 100}
		if len(fields) > 1 && fields[1] == "right" {
			row.Side = 1
		}
		rows = append(rows, row)
	}
	s.b.tb = t
	r := s.b.batch(rows, at("late"), at("evict"), at("now"))
	fmt.Fprintf(&s.out, "updated %d, removed %d, dropped %d, total %d\n", r.Updated, r.Removed, r.Dropped, r.RowsTotal)
	for _, row := range r.Out {
		fmt.Fprintf(&s.out, "out    %d@%v\n", row.Key, float64(row.EventMs-startMs)/1000)
	}
	for id := event.NumDroppedDuplicateRows; id <= event.NumValuesRemovedDueToTTLExpiry; id++ {
		if s.b.result.Custom[id] > 0 {
			fmt.Fprintf(&s.out, "%s %v\n", event.Lookup(id).JSON, s.b.result.Custom[id])
		}
	}
}

func atoi(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
