package exporter

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// formats are the pages that a restart must not change.
var formats = []expfmt.Format{expfmt.FmtText, expfmt.FmtOpenMetrics_1_0_0, expfmt.FmtProtoDelim}

// reborn saves every query of x and loads them into another exporter.
func reborn(t testing.TB, x *Exporter, o Options) *Exporter {
	t.Helper()
	y := New(o)
	for _, q := range x.queries {
		if q == nil || q.key == "" {
			continue
		}
		if err := y.LoadCounters(x.SaveCounters(q.key, nil)); err != nil {
			t.Fatal(err)
		}
	}
	return y
}

func samePages(t testing.TB, what string, x, y *Exporter) {
	t.Helper()
	for _, f := range formats {
		a, b := page(t, x, f), page(t, y, f)
		if a == b {
			continue
		}
		if f == expfmt.FmtProtoDelim {
			t.Fatalf("%s: protobuf pages of %d and %d bytes differ", what, len(a), len(b))
		}
		t.Fatalf("%s: %s\n%s", what, f, cmp.Diff(strings.Split(a, "\n"), strings.Split(b, "\n")))
	}
}

// inOrder is the text page with its lines in order: queries that began in turn stand
// in another order after they were loaded one by one.
func inOrder(t testing.TB, x *Exporter) string {
	t.Helper()
	lines := strings.Split(text(t, x), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// lives are streams of one query each, with what it looked like at some moment.
func lives() map[string][]*event.Update {
	out := map[string][]*event.Update{}
	s := newStream("fresh")
	out["a first batch"] = []*event.Update{s.executed(nil)}
	s = newStream("begun")
	out["a start and nothing else"] = []*event.Update{s.started()}
	s = newStream("idle")
	out["an idle query"] = []*event.Update{s.started(), s.executed(full(1)), s.executed(full(2)), s.idle(), s.idle()}
	s = newStream("over")
	out["a query that ended"] = []*event.Update{s.started(), s.executed(full(1)), s.update(event.OutcomeTerminated, event.KindTerminated, event.StateTerminated)}
	s = newStream("late")
	out["an overdue query"] = []*event.Update{s.executed(nil), s.executed(nil), s.state(event.StateOverdue)}
	s = newStream("retired")
	out["a retired query"] = []*event.Update{s.executed(full(4)), s.state(event.StateRetired)}
	s = newStream("again")
	first := []*event.Update{s.started(), s.executed(full(1)), s.executed(full(1))}
	s.run, s.conf = "run-2", map[string]string{confChangelog: "true", confBounded: "true"}
	out["a restart with settings"] = append(first, s.started(), s.executed(full(9)), s.executed(full(9)))
	s = newStream("odd")
	out["labels of Spark's and the user's choosing"] = []*event.Update{s.executed(odd(1)), s.executed(odd(2)), s.executed(nil)}
	return out
}

func odd(n int) func(*event.Batch) {
	return func(b *event.Batch) {
		b.Operators[0].Unknown = []event.KV{{Key: "rocksdbNewLatencyMs", Value: 12.5}, {Key: fmt.Sprint("rocksdbNew", n), Value: 7}}
		b.UnknownPhases = []event.KV{{Key: "vendorPhase", Value: 3}, {Key: fmt.Sprint("other phase ", n), Value: 4}}
		b.Observed = []event.Observed{{Name: "q", Column: "c", Value: -0.1}, {Name: "q", Column: fmt.Sprint(n), Value: 1}}
		b.Percentiles = []event.Percentile{{Metric: event.RTME2ELatency, Quantile: 0.5, Value: 1.0 / 3}}
		b.WatermarkMs = t0 + 123
		b.Values[event.NumInputRows] = 8 // of no source
		operator(b, "second")
	}
}

func TestAPageAfterARestartIsThePageBefore(t *testing.T) {
	for name, us := range lives() {
		t.Run(name, func(t *testing.T) {
			x := New(Options{})
			for _, u := range us {
				x.Apply(u)
			}
			y := reborn(t, x, Options{})
			samePages(t, "loaded", x, y)
			y.Show(us[len(us)-1])
			samePages(t, "loaded and shown the newest update", x, y)
			if x.total.Load() != y.total.Load() || y.live.Load() != 1 {
				t.Errorf("%d series before, %d after, of %d queries", x.total.Load(), y.total.Load(), y.live.Load())
			}
		})
	}
}

// TestPagesAreMadeWhileQueriesAreSaved is for the race detector: a save only reads
// what pages are made of.
func TestPagesAreMadeWhileQueriesAreSaved(t *testing.T) {
	x := everything(t, Options{})
	var keys []event.QueryID
	for _, q := range x.queries {
		if q != nil {
			keys = append(keys, q.key)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			for _, key := range keys {
				x.SaveCounters(key, nil)
			}
		}
	}()
	for range 20 {
		for _, f := range formats {
			page(t, x, f)
		}
	}
	<-done
}

func TestTheGoldenPageSurvivesARestart(t *testing.T) {
	x := everything(t, Options{})
	y := reborn(t, x, Options{})
	// Gauges set from outside come back with whoever sets them.
	y.Set(y.Slot("stategauge_forecast_seconds", "Time until something.", event.Label{Name: "query_id", Value: "a"}), 1e21)
	y.Set(y.Slot("stategauge_trend_slope_per_batch", "Slope."), -1.5e-9)
	samePages(t, "everything", x, y)
}

// What comes after a restart is counted as if there had been none: what stands in
// the newest batches is remembered.
func TestCountersGoOnAfterARestartAsIfThereHadBeenNone(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		o := Options{UnknownKeys: 9, Phases: 3, Observed: 5, SeriesPerQuery: 200 + int(seed)*20, GaugeStaleness: 4 * time.Second}
		s := newStream("a")
		x := New(o)
		for range r.IntN(60) {
			x.Apply(randomUpdate(r, s))
		}
		y := reborn(t, x, o)
		samePages(t, fmt.Sprint("seed ", seed), x, y)
		for i := range 40 {
			u := randomUpdate(r, s)
			x.Apply(u)
			y.Apply(u)
			if i%10 == 0 {
				x.Expire(s.nowMs)
				y.Expire(s.nowMs)
			}
			if a, b := inOrder(t, x), inOrder(t, y); a != b {
				t.Fatalf("seed %d, update %d:\n%s", seed, i, cmp.Diff(strings.Split(a, "\n"), strings.Split(b, "\n")))
			}
		}
		if x.total.Load() != y.total.Load() || int(y.total.Load()) != recount(y) {
			t.Errorf("seed %d: %d and %d series, counted %d", seed, x.total.Load(), y.total.Load(), recount(y))
		}
	}
}

func TestManyQueriesComeBackWithAllTheirSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	x := New(Options{})
	var streams []*stream
	for i := range 12 {
		streams = append(streams, newStream(fmt.Sprint("q", i)))
	}
	for range 400 {
		x.Apply(randomUpdate(r, streams[r.IntN(len(streams))]))
	}
	if y := reborn(t, x, Options{}); inOrder(t, x) != inOrder(t, y) {
		t.Error(cmp.Diff(strings.Split(inOrder(t, x), "\n"), strings.Split(inOrder(t, y), "\n")))
	}
}

func TestTimesOfCreationStayAndNewCountersHaveTheirOwn(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	x.Apply(s.started())
	x.Apply(s.executed(nil))
	y := reborn(t, x, Options{})
	s.nowMs += 3_600_000 // the daemon was down, the query went on
	late := s.executed(func(b *event.Batch) { b.UnknownPhases = []event.KV{{Key: "newPhase", Value: 3}} })
	y.Apply(late)
	om := page(t, y, expfmt.FmtOpenMetrics_1_0_0)
	for name, want := range map[string]string{
		`spark_streaming_batches_created{query_id="q",query_name="orders",application="shop",kind="data"}`:    "1700000001",
		`spark_streaming_batch_duration_seconds_created{query_id="q",query_name="orders",application="shop"}`: "1700000001",
		// When the newest update before it came, as for any counter that begins late.
		`spark_streaming_phase_seconds_created{query_id="q",query_name="orders",application="shop",phase="newPhase"}`: "1700000002",
	} {
		if !strings.Contains(om, name+" "+want+"\n") {
			i := strings.Index(om, name)
			t.Errorf("want %s %s, have %.120s", name, want, om[max(i, 0):])
		}
	}
	wantValue(t, y, "2", "batches_total", `kind="data"`)
}

func TestAFirstBatchAfterALossOfStateBeginsAtItsOwnTime(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	s.nowMs += 7_200_000
	x.Show(s.executed(nil))
	om := page(t, x, expfmt.FmtOpenMetrics_1_0_0)
	want := `spark_streaming_batches_created{query_id="q",query_name="orders",application="shop",kind="data"} 1700007200`
	if !strings.Contains(om, want+"\n") {
		t.Errorf("no line %s", want)
	}
}

func TestWhatCannotBeLoadedChangesNothing(t *testing.T) {
	x := everything(t, Options{})
	saved := x.SaveCounters("a", nil)
	future := slices.Clone(saved)
	future[len(savedMagic)] = 9
	y := New(Options{})
	if err := y.LoadCounters(saved); err != nil {
		t.Fatal(err)
	}
	before := page(t, y, expfmt.FmtText)
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":      {nil, "cut off"},
		"other":      {[]byte(strings.Repeat("x", 50)), "not a query's series"},
		"newer":      {future, "version 9"},
		"flipped":    {flipped(saved, 30), "checksum"},
		"cut":        {resealed(saved[:len(saved)/2]), "cut off"},
		"longer":     {resealed(append(slices.Clone(saved), 0)[:len(saved)-3]), "too many"},
		"there":      {saved, "exists already"},
		"without id": {resealed([]byte(savedMagic + "\x01\x00\x00")), ""},
	} {
		if err := y.LoadCounters(tc.b); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, tc.want)
		}
		if page(t, y, expfmt.FmtText) != before || y.live.Load() != 1 || len(y.ids) != 1 {
			t.Errorf("%s: something changed", name)
		}
	}
	if y.SaveCounters("nobody", nil) != nil {
		t.Error("an unknown query was saved")
	}
}

func flipped(b []byte, i int) []byte {
	b = slices.Clone(b)
	b[i] ^= 0x41
	return b
}

// resealed puts a right checksum behind.
func resealed(body []byte) []byte {
	body = slices.Clone(body)
	return binary.LittleEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
}

// altered saves a query after a change to what is written.
func altered(x *Exporter, id event.QueryID, change func(s *saved)) []byte {
	s := x.collectSaved(x.find(id))
	change(s)
	c := saver{buf: append([]byte(savedMagic), savedVersion), writing: true}
	s.visit(&c, &x.plan)
	return resealed(c.buf)
}

func TestSeriesOfALaterVersionAreLeftOut(t *testing.T) {
	x := New(Options{})
	x.Apply(newStream("q").executed(full(1)))
	b := altered(x, "q", func(s *saved) {
		for _, k := range []savedKey{
			{class: keyRow, id: 5000}, {class: keyDerived, id: 900}, {class: keyLast, id: 5000}, {class: keyLast, id: 0},
		} {
			s.series = append(s.series, savedSeries{savedPlace{key: k}, true, 4})
		}
		// A row that is a counter now and was a level then, and the other way round.
		s.series = append(s.series, savedSeries{savedPlace{key: savedKey{class: keyRow, id: uint64(event.DurationGetBatch)}}, false, 4})
		s.hists = append(s.hists, savedHist{savedPlace{key: savedKey{class: keyDerived, id: 901}}, newHist(x.defs[defBatchHist].family)})
	})
	y := New(Options{})
	if err := y.LoadCounters(b); err != nil {
		t.Fatal(err)
	}
	samePages(t, "with series of a later version", x, y)
}

func TestAHistogramWithOtherBoundsKeepsItsCount(t *testing.T) {
	x, y := New(Options{}), New(Options{})
	s := newStream("q")
	for _, ms := range []float64{0, 40, 900, 1000, 3300, 3300, 1e6} {
		x.Apply(s.executed(func(b *event.Batch) { b.Values[event.BatchDuration] = ms }))
	}
	f := y.defs[defBatchHist].family
	for i := range f.bounds {
		f.bounds[i] *= 2 // as a later version may have them
	}
	if err := y.LoadCounters(x.SaveCounters("q", nil)); err != nil {
		t.Fatal(err)
	}
	h := y.find("q").hists[0]
	if h.count != 7 || h.sum != 1_008_540 || h.zeros != 1 || !h.adds() {
		t.Errorf("%+v", h)
	}
	// Bounds are .1 s, .2, .5, 1, 2, 5, 10 and so on now.
	want := [maxBuckets]uint64{0: 2, 3: 2, 5: 2, 13: 1}
	if h.counts != want {
		t.Errorf("buckets %v, want %v", h.counts, want)
	}
	y.Apply(s.executed(nil))
	wantValue(t, y, "8", "batch_duration_seconds_count")
}

func TestNativeBucketsEndWhereTheNextBegins(t *testing.T) {
	for _, v := range []float64{1e-30, 0.001, 0.4999, 0.5, 1, 1.09, 2, 1000, 1e18} {
		i := nativeIndex(v)
		if !(v <= nativeUpper(i)*(1+1e-12)) || !(v > nativeUpper(i-1)*(1-1e-12)) {
			t.Errorf("%g is in bucket %d, which is (%g, %g]", v, i, nativeUpper(i-1), nativeUpper(i))
		}
	}
}

func TestLimitsHoldWhenSeriesAreLoaded(t *testing.T) {
	x := everything(t, Options{})
	for _, o := range []Options{
		{SeriesPerQuery: 40}, {Series: 60}, {UnknownKeys: 1, UnknownKeysPerOperator: 1}, {Phases: 1, Observed: 1}, {LabelBytes: 40},
	} {
		y := reborn(t, x, o)
		if n := int(y.total.Load()); n != recount(y) || o.Series > 0 && n > o.Series {
			t.Errorf("%+v: %d series, %d counted", o, n, recount(y))
		}
		page(t, y, expfmt.FmtOpenMetrics_1_0_0)
		y.Apply(newStream("a").executed(full(3)))
	}
}

func TestTheWrittenFormOfSeriesChangesOnlyWithItsVersion(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	s.conf = map[string]string{confProvider: "RocksDBStateStoreProvider", confChangelog: "false"}
	x.Apply(s.started())
	x.Apply(s.executed(odd(1)))
	x.Apply(s.executed(full(2)))
	got := hex.EncodeToString(x.SaveCounters("q", nil)) + "\n"
	file := fmt.Sprintf("saved/v%d.hex", savedVersion)
	if slices.Contains(os.Args, "-rewrite") {
		_ = os.MkdirAll("testdata/saved", 0o755)
	}
	golden(t, file, got)
	for v := 1; v <= savedVersion; v++ {
		text, err := os.ReadFile(fmt.Sprintf("testdata/saved/v%d.hex", v))
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		y := New(Options{})
		if err := y.LoadCounters(b); err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		samePages(t, fmt.Sprint("version ", v), x, y)
	}
}

func FuzzLoadCounters(f *testing.F) {
	x := everything(f, Options{})
	for _, q := range x.queries {
		if q != nil && q.key != "" {
			b := x.SaveCounters(q.key, nil)
			f.Add(b[:len(b)-4])
		}
	}
	f.Add([]byte(savedMagic + "\x01\x01q"))
	f.Fuzz(func(t *testing.T, body []byte) {
		y := New(Options{Series: 3000})
		if y.LoadCounters(resealed(body)) != nil {
			if y.live.Load() != 0 || len(y.ids) != 0 || y.total.Load() != 0 {
				t.Fatal("something is left of a refused query")
			}
			return
		}
		for _, f := range formats {
			page(t, y, f)
		}
		if int(y.total.Load()) != recount(y) {
			t.Fatalf("%d series booked, %d there", y.total.Load(), recount(y))
		}
		s := newStream("a")
		y.Apply(s.started())
		y.Apply(s.executed(odd(1)))
		y.Show(s.executed(full(1)))
		y.Expire(math.MaxInt64 / 2)
		y.Forget("a")
		page(t, y, expfmt.FmtText)
	})
}

// savedQuery is an exporter with one query that has every RocksDB figure.
func savedQuery(operators int) (*Exporter, event.QueryID) {
	x := New(Options{})
	s := newStream("6b2b7a0e-58e4-4b3c-9d5c-000000000001")
	for i := range int64(200) {
		x.Apply(s.executed(func(b *event.Batch) {
			full(i * 7)(b)
			b.Operators = b.Operators[:operators]
			b.Values[event.BatchDuration] = float64(1000 + i*i%977)
		}))
	}
	return x, s.ref.ID
}

// BenchmarkSaveCountersVersusProtobufPage measures saving a query against rendering
// its series as a page, which holds less: no state, and no way back.
func BenchmarkSaveCountersVersusProtobufPage(b *testing.B) {
	for _, operators := range []int{1, 3} {
		b.Run(fmt.Sprintf("operators=%d", operators), func(b *testing.B) {
			x, id := savedQuery(operators)
			var buf []byte
			var rendered countingWriter
			var ours, theirs time.Duration
			for b.Loop() {
				from := time.Now()
				buf = x.SaveCounters(id, buf[:0])
				ours += time.Since(from)
				from, rendered = time.Now(), 0
				if err := x.Write(&rendered, expfmt.FmtProtoDelim); err != nil {
					b.Fatal(err)
				}
				theirs += time.Since(from)
			}
			b.ReportMetric(float64(len(buf)), "B/query")
			b.ReportMetric(float64(rendered)/float64(len(buf)), "x_peer_bytes")
			b.ReportMetric(float64(ours.Nanoseconds())/float64(b.N), "ns/query")
			b.ReportMetric(float64(theirs)/float64(ours), "x_peer")
		})
	}
}

// countingWriter counts what is written.
type countingWriter int

func (w *countingWriter) Write(p []byte) (int, error) {
	*w += countingWriter(len(p))
	return len(p), nil
}

// BenchmarkLoadCounters measures loading a query.
func BenchmarkLoadCounters(b *testing.B) {
	for _, operators := range []int{1, 3} {
		b.Run(fmt.Sprintf("operators=%d", operators), func(b *testing.B) {
			x, id := savedQuery(operators)
			saved, y := x.SaveCounters(id, nil), New(Options{})
			for b.Loop() {
				if err := y.LoadCounters(saved); err != nil {
					b.Fatal(err)
				}
				y.Forget(id)
			}
		})
	}
}
