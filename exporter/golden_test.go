package exporter

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// The table of families follows the catalog: whoever changes a row's series, unit,
// kind or scale sees it here.
func TestFamiliesOfTheCatalog(t *testing.T) {
	x := New(Options{})
	var b strings.Builder
	for _, m := range event.Catalog() {
		d := x.defs[m.ID]
		fmt.Fprintf(&b, "%s %s = %s %s", m.Scope, m.JSON, kindNames[d.family.kind], d.family.name)
		if d.extra != nil {
			fmt.Fprintf(&b, "{%s}", d.extra.text[1:])
		}
		fmt.Fprintf(&b, " unit=%s/%s raw/%g", m.Unit, d.family.unit, d.family.scale.div)
		if l := x.plan.last[m.ID]; l != 0 {
			fmt.Fprintf(&b, " last=%s", x.defs[l].family.name)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, f := range x.families {
		fmt.Fprintf(&b, "%s %s\n", f.name, kindNames[f.kind])
	}
	golden(t, "families.txt", b.String())
}

// Units are part of names; a name says nothing of a unit that it has not.
func TestNamesSayTheirUnits(t *testing.T) {
	for _, m := range event.Catalog() {
		name := strings.TrimSuffix(m.Series, "_total")
		has := func(s string) bool { return strings.HasSuffix(name, s) || strings.Contains(name, s+"_") }
		switch m.Unit {
		case event.UnitSeconds:
			if !strings.HasSuffix(name, "_seconds") {
				t.Errorf("%s is in seconds and does not say so", m.Series)
			}
		case event.UnitTimestamp:
			if !strings.HasSuffix(name, "_timestamp_seconds") {
				t.Errorf("%s is a time and does not say so", m.Series)
			}
		case event.UnitBytes:
			if !has("_bytes") {
				t.Errorf("%s is in bytes and does not say so", m.Series)
			}
		default:
			if has("_seconds") || has("_bytes") {
				t.Errorf("%s says a unit that is not %s", m.Series, m.Unit)
			}
		}
		if work := m.Kind == event.KindWork || m.Kind == event.KindCumulative; work != strings.HasSuffix(m.Series, "_total") && m.ID != event.BatchDuration {
			t.Errorf("%s of kind %s: only counters end in _total", m.Series, m.Kind)
		}
	}
}

func TestAllNamesAreClassicAndNoneIsPartOfAnother(t *testing.T) {
	x := everything(t, Options{})
	for _, f := range x.families {
		if !classicName(f.name) || strings.Contains(f.name, ":") {
			t.Errorf("%q is no classic name", f.name)
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count", "_created", "_total"} {
			if g := x.byName[f.base+suffix]; g != nil && g != f && f.kind != gauge {
				t.Errorf("%s and %s share a sample name", f.name, g.name)
			}
		}
		for i := range f.series {
			for _, l := range append(f.series[i].labels.pairs, pairsOf(f.series[i].extra)...) {
				if !classicName(l.Name) || strings.Contains(l.Name, ":") {
					t.Errorf("%s has a label %q", f.name, l.Name)
				}
			}
		}
	}
}

func pairsOf(l *labels) []event.Label {
	if l == nil {
		return nil
	}
	return l.pairs
}

// Every row of the catalog reaches the page, at its scale and under its labels.
func TestEveryRowOfTheCatalogIsExported(t *testing.T) {
	x := New(Options{})
	u := catalogStream(newStream("q"))
	x.Apply(u)
	lines := text(t, x)
	for _, m := range event.Catalog() {
		label := ""
		if m.LabelName != "" {
			label = m.LabelName + `="` + m.LabelValue + `"`
		}
		found := false
		for line := range strings.SplitSeq(lines, "\n") {
			name := m.Series
			if m.ID == event.BatchDuration {
				name += "_sum"
			}
			found = found || strings.HasPrefix(line, name+"{") && strings.Contains(line, label)
		}
		if !found {
			t.Errorf("%s has no series in %s{%s}", m.JSON, m.Series, label)
		}
	}
	golden(t, "page.txt", page(t, x, expfmt.FmtText))
	golden(t, "page.openmetrics", page(t, x, expfmt.FmtOpenMetrics_1_0_0))
}

// catalogStream makes a first batch in which every row of the catalog has a value
// of its own: ten times its id, and seven more.
func catalogStream(s *stream) *event.Update {
	u := s.executed(func(b *event.Batch) {
		b.AddSource()
		o, src := &b.Operators[0], &b.Sources[0]
		for _, m := range event.Catalog() {
			v := float64(m.ID)*10 + 7
			switch {
			case m.Quirks&event.QuirkPercentile != 0:
				b.Percentiles = append(b.Percentiles, event.Percentile{Metric: m.ID, Quantile: 0.95, Value: v})
			case m.Scope == event.ScopeOperator && m.Kind != event.KindPerInstance:
				o.Values[m.ID] = v
			case m.Scope == event.ScopeQuery:
				b.Values[m.ID] = v
			}
		}
		o.Values[event.CommitTime] = 1e6
		o.Values[event.NumShufflePartitions] = 8
		o.Stores, o.Instances, o.SnapshotMin = 8, 8, 0
		b.Values[event.BatchDuration] = 500_000
		b.Values[event.DurationTriggerExecution] = 450_000
		b.ID, b.StartMs, b.WatermarkMs, b.EventTimeMaxMs = 0, t0, t0-5000, t0-250
		*src = event.Source{
			Rows: 887, Backlog: 12, InputRate: 1.5, ProcessedRate: 2.25,
			MinBehind: 1, MaxBehind: 9, AvgBehind: 4.5, FilesOutstanding: 3, BytesOutstanding: 4096,
		}
	})
	u.IntervalMs, u.IntervalFrom, u.Trigger = 600_000, event.IntervalListener, event.TriggerInterval
	u.Missed, u.MissedReason, u.StartedSeen = 1, event.MissedDropped, true
	return u
}

// A row's unit, kind, scale, series or help changed in a copy of the catalog
// changes what is written, so the golden files would tell.
func TestTheCatalogDrivesTheOutput(t *testing.T) {
	before := familiesOf(event.Catalog())
	for _, change := range []func(m *event.Metric){
		func(m *event.Metric) { m.Unit = event.UnitCount },
		func(m *event.Metric) { m.Kind = event.KindLevel },
		func(m *event.Metric) { m.Scale = 1 },
		func(m *event.Metric) { m.Series += "_x" },
		func(m *event.Metric) { m.Help += "!" },
	} {
		rows := event.Catalog()
		change(&rows[event.RocksDBWriterStallLatency])
		if familiesOf(rows) == before {
			t.Error("a changed row changed nothing")
		}
	}
}

func familiesOf(rows []event.Metric) string {
	x := &Exporter{byName: map[string]*family{}}
	x.define(rows)
	var b strings.Builder
	for _, f := range x.families {
		fmt.Fprintf(&b, "%s%s%g\n", f.text, f.om, f.scale.div)
	}
	return b.String()
}

func TestRowsOfOneFamilyMustAgree(t *testing.T) {
	rows := event.Catalog()
	rows[event.RocksDBPutLatency].Scale = 1
	defer func() {
		if recover() == nil {
			t.Error("rows of one family with two scales were taken")
		}
	}()
	familiesOf(rows)
}

func TestNothingAbsentIsZero(t *testing.T) {
	x := New(Options{})
	u := newStream("q").executed(func(b *event.Batch) {
		b.Values.Clear()
		b.Operators[0].Values.Clear()
		b.Operators[0].Instances, b.Operators[0].Stores = 0, 0
		b.AddSource()
		b.ID, b.StartMs = event.Absent, event.Absent
	})
	u.IntervalMs = math.NaN()
	x.Apply(u)
	for line := range strings.SplitSeq(text(t, x), "\n") {
		known := false
		for _, name := range []string{"query_state{", "query_info{", "batches_total{", "last_event_timestamp_seconds{"} {
			known = known || strings.HasPrefix(line, "spark_streaming_"+name)
		}
		if !known {
			t.Errorf("a batch that says nothing made %s", line)
		}
	}
}
