package spark

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
)

// collected reads one event as the collector does, and hands it to look.
func collected(t testing.TB, pool *decode.Pool, line []byte, look func(*event.Event)) {
	t.Helper()
	if !json.Valid(line) {
		t.Fatalf("no JSON: %s", line)
	}
	d := pool.Get()
	defer pool.Put(d)
	n := 0
	d.Body(line, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if rej != nil || ev == nil {
			t.Fatalf("refused: %v\n%s", rej, line)
		}
		n++
		look(ev)
		pool.Release(ev)
		return true
	})
	if n != 1 {
		t.Fatalf("%d events on one line", n)
	}
}

// randomProgress makes a progress with an operator of every kind that the
// version has.
func randomProgress(rng *rand.Rand, v event.Version, provider Provider) *Progress {
	p := &Progress{
		ID: UUID(rng.Uint64(), rng.Uint64()), RunID: UUID(rng.Uint64(), rng.Uint64()), Name: fmt.Sprintf("q \"%c\" %d", rune(1+rng.IntN(0x2ff)), rng.IntN(9)),
		StartMs: rng.Int64N(4e12), BatchID: rng.Int64N(1e9), DurationMs: rng.Int64N(1e6), InputRows: rng.Int64N(1e9),
		InputRate: math.Exp(rng.NormFloat64() * 8), ProcessRate: math.Exp(rng.NormFloat64() * 8),
		Phases:    Phases{9_000_000, rng.Int64N(1e6), rng.Int64N(1e6), rng.Int64N(1e6), rng.Int64N(1e6), rng.Int64N(1e6), rng.Int64N(1e6)},
		EventTime: EventTime{HasWatermark: true, HasRows: true, MinMs: rng.Int64N(4e12), MaxMs: 1 + rng.Int64N(4e12), AvgMs: rng.Int64N(4e12), WatermarkMs: 1 + rng.Int64N(4e12)},
		Sink:      Sink{"noop", rng.Int64N(1e9)},
	}
	for kind := Aggregation; kind <= SessionWindow; kind++ {
		for _, python := range []bool{false, true} {
			o := Operator{Name: OperatorName(kind, python, v)}
			o.Values.Clear()
			for _, id := range keys(v, provider, kind, python) {
				o.Values[id] = float64(rng.Int64N(1 << 53))
			}
			for id := event.NumRowsTotal; id <= event.NumStateStoreInstances; id++ {
				o.Values[id] = float64(1 + rng.Int64N(1e9))
			}
			if ReportsUploads(v) {
				o.Uploaded = []SnapshotKey{{rng.IntN(200), "default", rng.Int64N(1e6)}, {300, "left-keyToNumValues", 1_000_000}}
			}
			p.Operators = append(p.Operators, o)
		}
	}
	p.Sources = []Source{{Description: "KafkaV2[Subscribe[a]]", EndOffset: `{"a":{"0":17,"1":25}}`, Rows: p.InputRows, InputRate: 1, ProcessRate: 2}}
	return p
}

func TestTheCollectorReadsWhatWasWritten(t *testing.T) {
	pool := decode.NewPool(decode.DefaultLimits())
	rng := rand.New(rand.NewPCG(7, 8))
	var buf []byte
	for _, v := range supported {
		for _, provider := range []Provider{RocksDB, HDFS} {
			for i := range 40 {
				p := randomProgress(rng, v, provider)
				if buf = AppendProgress(buf[:0], p, v); i%2 == 1 {
					buf = AppendProgressEvent(buf[:0], p, v)
				}
				collected(t, pool, buf, func(ev *event.Event) { compareProgress(t, p, ev, v) })
			}
		}
	}
}

func compareProgress(t *testing.T, p *Progress, ev *event.Event, v event.Version) {
	t.Helper()
	b := ev.Batch
	if ev.Kind != event.KindProgress || string(b.Query.ID) != p.ID || string(b.Run) != p.RunID || b.Query.Name != p.Name ||
		b.ID != p.BatchID || b.StartMs != p.StartMs || b.WatermarkMs != p.EventTime.WatermarkMs || b.EventTimeMaxMs != p.EventTime.MaxMs {
		t.Fatalf("read %+v of %+v", b, p)
	}
	for id, want := range map[event.MetricID]int64{
		event.DurationAddBatch: p.Phases.AddBatch, event.DurationCommitOffsets: p.Phases.CommitOffsets, event.DurationGetBatch: p.Phases.GetBatch,
		event.DurationLatestOffset: p.Phases.LatestOffset, event.DurationQueryPlanning: p.Phases.QueryPlanning,
		event.DurationTriggerExecution: p.Phases.TriggerExecution, event.DurationWalCommit: p.Phases.WalCommit,
		event.NumInputRows: p.InputRows, event.SinkNumOutputRows: p.Sink.OutputRows,
	} {
		if b.Values[id] != float64(want) {
			t.Errorf("%s is %v, want %d", event.Lookup(id).JSON, b.Values[id], want)
		}
	}
	within := 0.0
	if AtLeast(v, V41) {
		within = 0.05 + p.InputRate*1e-12
	}
	if got := b.Values[event.InputRowsPerSecond]; math.Abs(got-p.InputRate) > within {
		t.Errorf("%s: rate %v became %v", v, p.InputRate, got)
	}
	if len(b.Operators) != len(p.Operators) || len(b.Sources) != 1 {
		t.Fatalf("%d operators and %d sources were read", len(b.Operators), len(b.Sources))
	}
	for i := range b.Operators {
		compareOperator(t, &p.Operators[i], &b.Operators[i])
	}
}

func compareOperator(t *testing.T, want *Operator, got *event.Operator) {
	t.Helper()
	if got.Name != want.Name || len(got.Unknown) != 0 {
		t.Errorf("operator %q was read as %q with unknown keys %v", want.Name, got.Name, got.Unknown)
	}
	for _, id := range customMetrics {
		if want.Values.Has(id) != got.Values.Has(id) || want.Values.Has(id) && want.Values[id] != got.Values[id] {
			t.Errorf("%s: %s is %v, want %v", want.Name, event.Lookup(id).JSON, got.Values[id], want.Values[id])
		}
	}
	for id := event.NumRowsTotal; id <= event.NumStateStoreInstances; id++ {
		if want.Values[id] != got.Values[id] {
			t.Errorf("%s: %s is %v, want %v", want.Name, event.Lookup(id).JSON, got.Values[id], want.Values[id])
		}
	}
}

func TestTheCollectorReadsEnvelopesAndEnds(t *testing.T) {
	pool := decode.NewPool(decode.DefaultLimits())
	for _, v := range supported {
		for _, k := range FailureKinds() {
			f := Failure{Kind: k, Batch: 3}
			text, class := f.Exception(v)
			end := Terminated{"11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222", text, class}
			s := newTestSender()
			wrapped := s.Append(nil, &Envelope{
				Kind: event.KindTerminated, AtMs: 5_000, QueryID: end.ID, Executors: Executors{Count: 3, Cores: 12, OverheadBytes: -1},
				Event: AppendListenerTerminated(nil, &end),
			})
			for _, line := range [][]byte{AppendTerminated(nil, &end), wrapped} {
				collected(t, pool, line, func(ev *event.Event) {
					first, _, _ := strings.Cut(text, "\n")
					if ev.Kind != event.KindTerminated || ev.Failure == nil || ev.Failure.Class != class || !strings.HasPrefix(first, ev.Failure.Message) {
						t.Errorf("%s of %s was read as %+v, %+v", k, v, ev, ev.Failure)
					}
				})
			}
		}
		start := Started{ID: "q", RunID: "r", Name: "n", AtMs: 77_000, JobTags: []string{"nightly", "a,b"}}
		collected(t, pool, AppendStarted(nil, &start, v), func(ev *event.Event) {
			if ev.Kind != event.KindStarted || ev.AtMs != 77_000 || ev.Query.Name != "n" || (len(ev.JobTags) == 2) != AtLeast(v, V41) {
				t.Errorf("%s: start was read as %+v", v, ev)
			}
		})
	}
	collected(t, pool, AppendIdle(nil, &Idle{"q", "r", 88_000}), func(ev *event.Event) {
		if ev.Kind != event.KindIdle || ev.AtMs != 88_000 {
			t.Errorf("idle was read as %+v", ev)
		}
	})
}

func TestEverySettingIsSuggestedForItsMisspelling(t *testing.T) {
	for _, key := range settingKeys {
		wrong := key[:len(key)-2] + key[len(key)-1:] // the last letter but one is missing
		if find(wrong) != nil {
			continue
		}
		_, faults := ParseConf(map[string]string{wrong: "1"}, supported[5])
		if len(faults) != 1 || !strings.Contains(faults[0].Error(), fmt.Sprintf("did you mean %q?", key)) {
			t.Errorf("%s: %v", wrong, faults)
		}
	}
}
