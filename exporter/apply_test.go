package exporter

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

func TestExactlyOneStateIsThePresentOne(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.started())
	for _, st := range event.States() {
		x.Apply(s.state(st))
		for _, other := range event.States() {
			want := "0"
			if other == st {
				want = "1"
			}
			wantValue(t, x, want, "query_state", `state="`+other.String()+`"`)
		}
	}
	x.Apply(s.state(event.StateUnknown))
	wantValue(t, x, "1", "query_state", `state="retired"`)
}

func TestMissedBatchesByReason(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.started())
	for _, m := range []event.MissedReason{event.MissedNone, event.MissedDropped, event.MissedAcrossRuns, event.MissedSender, 99} {
		u := s.idle()
		u.Missed, u.MissedReason = 2, m
		x.Apply(u)
	}
	u := s.state(event.StateOverdue) // found by the clock
	u.Missed, u.MissedReason = 3, event.MissedDropped
	x.Apply(u)
	u = s.idle()
	u.Missed = -5
	x.Apply(u)
	wantValue(t, x, "7", "missed_batches_total", `reason="dropped"`)
	wantValue(t, x, "2", "missed_batches_total", `reason="across_runs"`)
	wantValue(t, x, "4", "missed_batches_total", `reason="sender"`)
}

func TestTheNewestEventIsByOurClock(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	u := s.started()
	u.Event.AtMs = 5
	x.Apply(u)
	wantValue(t, x, "1700000001", "last_event_timestamp_seconds")
	u = s.idle()
	u.Origin.ReceivedMs = 0 // not told
	x.Apply(u)
	wantValue(t, x, "1700000001", "last_event_timestamp_seconds")
	x.Apply(s.state(event.StateOverdue)) // no event of the query
	wantValue(t, x, "1700000001", "last_event_timestamp_seconds")
	x.Apply(s.update(event.OutcomeFailed, event.KindTerminated, event.StateFailed))
	wantValue(t, x, "1700000004", "last_event_timestamp_seconds")
}

func TestIntervalsThatAreNoneAreAbsent(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	for _, ms := range []float64{math.NaN(), 0, -5, math.Inf(1), 1e300} {
		u := s.executed(nil)
		u.IntervalMs, u.IntervalFrom = ms, event.IntervalConfig
		x.Apply(u)
		wantValue(t, x, "absent", "trigger_interval_seconds")
		wantValue(t, x, "absent", "utilization_ratio")
	}
	u := s.executed(nil)
	u.IntervalMs, u.IntervalFrom = 5000, event.IntervalNone
	x.Apply(u)
	wantValue(t, x, "absent", "trigger_interval_seconds")
}

// A run whose carrier names no run id and no batch ids is one run, not one a batch.
func TestBatchesWithoutIDsAreOneRun(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	s.run = ""
	for i := range 5 {
		x.Apply(s.executed(func(b *event.Batch) {
			b.ID = event.Absent
			b.Operators[0].Values[event.RocksDBBytesCopied] = float64(100 + i/2)
		}))
	}
	wantValue(t, x, "203", "rocksdb_uploaded_bytes_total") // 101 and 102, once each
	wantValue(t, x, "absent", "last_batch_id")
	wantValue(t, x, "absent", "rocksdb_snapshot_lag_versions")
	u := s.started()
	u.StartedSeen = false
	x.Apply(u) // a new run all the same
	x.Apply(s.executed(func(b *event.Batch) {
		b.ID = event.Absent
		b.Operators[0].Values[event.RocksDBBytesCopied] = 700
	}))
	wantValue(t, x, "203", "rocksdb_uploaded_bytes_total")
}

func TestBacklogIsNeverNegative(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").executed(func(b *event.Batch) {
		b.AddSource().Backlog = -7
		b.AddSource().Backlog = 0
		b.AddSource()
	}))
	wantValue(t, x, "0", "source_backlog_offsets", `source_index="0"`)
	wantValue(t, x, "0", "source_backlog_offsets", `source_index="1"`)
	wantValue(t, x, "absent", "source_backlog_offsets", `source_index="2"`)
}

func TestSourcesThatEndLoseTheirGauges(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	two := func(b *event.Batch) {
		for range 2 {
			src := b.AddSource()
			src.Backlog, src.Rows, src.MaxBehind = 5, 10, 3
		}
	}
	x.Apply(s.executed(two))
	x.Apply(s.executed(func(b *event.Batch) { b.AddSource().Backlog = 4 }))
	wantValue(t, x, "4", "source_backlog_offsets")
	wantValue(t, x, "absent", "source_max_offsets_behind_latest")
	wantValue(t, x, "10", "input_rows_total", `source_index="1"`)
}

func TestImplausibleSourceFiguresAreLeftOut(t *testing.T) {
	reg := prometheus.NewRegistry()
	x := New(Options{Registerer: reg})
	x.Apply(newStream("q").executed(func(b *event.Batch) {
		src := b.AddSource()
		src.Rows, src.InputRate, src.ProcessedRate, src.MaxBehind = -3, math.Inf(1), -1, 1e300
	}))
	for _, name := range []string{"input_rows_total", "source_input_rows_per_second", "source_processed_rows_per_second", "source_max_offsets_behind_latest"} {
		wantValue(t, x, "absent", name)
	}
	if n := selfValue(t, reg, "stategauge_implausible_values_total", "sources.numInputRows"); n != 1 {
		t.Errorf("%g negative row counts", n)
	}
}

func TestPercentilesThatAreNone(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").executed(func(b *event.Batch) {
		b.Percentiles = []event.Percentile{
			{Metric: event.NumMetrics + 5, Quantile: 0.5, Value: 1},
			{Metric: event.CommitTime, Quantile: 0.5, Value: 1},
			{Metric: event.RTME2ELatency, Quantile: 1.5, Value: 1},
			{Metric: event.RTME2ELatency, Quantile: math.NaN(), Value: 1},
			{Metric: event.RTME2ELatency, Quantile: 0.5, Value: math.NaN()},
			{Metric: event.RTME2ELatency, Quantile: 0.5, Value: -1},
			{Metric: event.RTME2ELatency, Quantile: 0, Value: 3},
			{Metric: event.RTME2ELatency, Quantile: 1, Value: 4},
		}
	}))
	if got := strings.Count(text(t, x), "quantile="); got != 2 {
		t.Errorf("%d percentiles, want 2", got)
	}
	wantValue(t, x, "0.003", "rtm_e2e_latency_seconds", `quantile="0"`)
	wantValue(t, x, "0.004", "rtm_e2e_latency_seconds", `quantile="1"`)
}

func TestOnlySoManyOperatorsAndSources(t *testing.T) {
	x := New(Options{SeriesPerQuery: 100_000})
	x.Apply(newStream("q").executed(func(b *event.Batch) {
		for i := range maxObjects + 50 {
			operator(b, fmt.Sprint(i))
			b.AddSource().Rows = 1
		}
	}))
	if n := strings.Count(text(t, x), "spark_streaming_rocksdb_sst_bytes{"); n != maxObjects {
		t.Errorf("%d operators", n)
	}
	if n := strings.Count(text(t, x), "spark_streaming_input_rows_total{"); n != maxObjects {
		t.Errorf("%d sources", n)
	}
}

func TestQueriesOfNegativeStalenessStayForEver(t *testing.T) {
	x := New(Options{GaugeStaleness: -1})
	s := newStream("q")
	x.Apply(s.executed(nil))
	x.Expire(s.nowMs + 1e12)
	wantValue(t, x, "8192", "rocksdb_sst_bytes")
}

func TestUndatedQueriesDoNotGoStale(t *testing.T) {
	x := New(Options{GaugeStaleness: time.Second})
	u := newStream("q").executed(nil)
	u.Origin.ReceivedMs = 0
	x.Apply(u)
	x.Expire(t0)
	wantValue(t, x, "8192", "rocksdb_sst_bytes")
	if strings.Contains(page(t, x, expfmt.FmtOpenMetrics_1_0_0), "_created{") {
		t.Error("counters of an undated query have a creation time")
	}
}

func TestGraceBeginsWhenRetirementIsSeen(t *testing.T) {
	x := New(Options{RetirementGrace: time.Minute})
	s := newStream("q")
	x.Apply(s.executed(nil))
	x.Apply(s.state(event.StateRetired))
	at := s.nowMs
	f := func(afterMs int64, there bool) {
		t.Helper()
		x.Expire(at + afterMs)
		if got := value(t, x, "batches_total") != "absent"; got != there {
			t.Errorf("after %d ms: there is %t", afterMs, got)
		}
	}
	f(1_000_000, true)
	f(1_059_999, true)
	x.Apply(s.idle()) // back again
	f(9_000_000, true)
	x.Apply(s.state(event.StateRetired))
	f(9_000_001, true)
	f(9_060_001, false)
	f(9_060_002, false)
}

func TestUpdatesAfterExpiryMakeTheQueryAnew(t *testing.T) {
	x := New(Options{RetirementGrace: -1})
	s := newStream("q")
	x.Apply(s.executed(nil))
	x.Apply(s.executed(nil))
	x.Apply(s.state(event.StateRetired))
	x.Expire(s.nowMs)
	x.Apply(s.state(event.StateOverdue))
	if got := text(t, x); got != "" {
		t.Errorf("a change of state alone makes %s", got)
	}
	x.Apply(s.executed(nil))
	wantValue(t, x, "1", "batches_total")
}

func TestSettingsOfAnEnvelope(t *testing.T) {
	f := func(value string, have, want tri) {
		t.Helper()
		if got := setting(map[string]string{"k": value}, "k", have); got != want {
			t.Errorf("%q after %s is %s, want %s", value, have, got, want)
		}
	}
	f("true", unknown, on)
	f(" TRUE ", off, on)
	f("false", on, off)
	f("", on, on)
	f("maybe", off, off)
	if got := setting(nil, "k", on); got != on {
		t.Error("no settings forget what is known")
	}
	for class, want := range map[string]string{
		"org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider":    "rocksdb",
		"org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider": "hdfs",
		"com.databricks.sql.streaming.state.RocksDBStateStoreProvider":                "rocksdb",
		"com.example.Own": "other",
	} {
		if got := providerName(class); got != want {
			t.Errorf("%s is %s, want %s", class, got, want)
		}
	}
}

func TestTwoIDsNeverShareALabelValue(t *testing.T) {
	x := New(Options{})
	x.ids["dup"] = "somebody"
	x.Apply(newStream("dup").executed(nil))
	if got := x.byID["dup"].identity.id; got != "dup~2" {
		t.Errorf("the second id is shown as %s", got)
	}
}

func TestExtraLabelsOfACarrier(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	u := s.executed(nil)
	u.Event.Cluster = "blue\xff"
	u.Event.Extra = []event.Label{{Name: "le", Value: "1"}, {Name: "team", Value: "core"}, {Name: "team", Value: "again"}, {Name: "void"}}
	x.Apply(u)
	x.Apply(s.idle()) // a carrier that says nothing of them
	const want = `spark_streaming_last_batch_id{query_id="q",query_name="orders",application="shop",spark_cluster="blue` + "\uFFFD" + `",team="core"} 0`
	if got := text(t, x); !strings.Contains(got, want+"\n") {
		t.Errorf("no %s", want)
	}
}

func TestZeroOptionsAreTheDefaults(t *testing.T) {
	got, want := Options{}.withDefaults(), DefaultOptions()
	got.Logger = want.Logger
	if got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	o := Options{Series: -1, LabelBytes: 1, GaugeStaleness: -1, Scrapes: 3}.withDefaults()
	if o.Series != want.Series || o.LabelBytes != minLabelBytes || o.GaugeStaleness != -1 || o.Scrapes != 3 {
		t.Errorf("got %+v", o)
	}
}

func TestUnknownKeysShareAFamilyAcrossOperators(t *testing.T) {
	x := New(Options{RetirementGrace: -1})
	for _, id := range []string{"a", "b"} {
		x.Apply(newStream(id).executed(func(b *event.Batch) {
			b.Operators[0].Unknown = []event.KV{{Key: "rocksdbNewBytes", Value: 3}, {Key: "rocksdbNewBytes", Value: 4}}
		}))
	}
	if got := strings.Count(text(t, x), "rocksdb_new_bytes{"); got != 2 || len(x.keys) != 1 || x.unknownKeys.Load() != 1 {
		t.Errorf("%d series, %d keys", got, len(x.keys))
	}
	if f := x.keys["rocksdbNewBytes"]; f.unit != "bytes" || !strings.Contains(f.help, "rocksdbNewBytes") {
		t.Errorf("family %s (%s): %s", f.name, f.unit, f.help)
	}
	s := newStream("a")
	x.Apply(s.state(event.StateRetired))
	x.Expire(1)
	if len(x.keys) != 1 {
		t.Error("the key went with one of two queries")
	}
	x.Apply(newStream("b").state(event.StateRetired))
	x.Expire(1)
	if len(x.keys) != 0 || len(x.keyOf) != 0 || x.unknownKeys.Load() != 0 || x.byName["spark_streaming_rocksdb_new_bytes"] != nil {
		t.Error("the key outlived its queries")
	}
}

func TestARenamedFamilyDoesNotClaimAUnit(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").executed(func(b *event.Batch) {
		b.Operators[0].Unknown = []event.KV{{Key: "rocksdbSstBytes", Value: 3}}
	}))
	f := x.keys["rocksdbSstBytes"]
	if f.name != "spark_streaming_rocksdb_sst_bytes_value" || f.unit != "" {
		t.Errorf("%s has unit %q", f.name, f.unit)
	}
	wantValue(t, x, "8192", "rocksdb_sst_bytes")
	wantValue(t, x, "3", "rocksdb_sst_bytes_value")
}
