package promql

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/stategauge/stategauge/rules/trend"
)

// many is how many series are watched: what an evaluation costs once is then spread as
// it is for a fleet.
const many = 2000

// BenchmarkMannKendallVersusPromQL is what one new batch costs for one series that is
// watched for a trend, beside one evaluation of deriv over the samples of the same window
// by Prometheus' engine on its own storage.
func BenchmarkMannKendallVersusPromQL(b *testing.B) {
	for _, window := range []struct {
		every, over time.Duration
	}{{10 * time.Second, time.Hour}, {time.Minute, 2 * time.Hour}} {
		b.Run(fmt.Sprintf("%v_of_%v", window.over, window.every), func(b *testing.B) {
			versus(b, window.every, window.over)
		})
	}
}

func versus(b *testing.B, every, over time.Duration) {
	const rounds = 20
	ours, theirs := newWatched(every, over), newStored(b, every, over)
	ours.fill()
	var spent, peer time.Duration
	b.ReportAllocs()
	for b.Loop() {
		at := time.Now()
		for range rounds {
			ours.push()
		}
		spent += time.Since(at)
		at = time.Now()
		if got := theirs.deriv(b); got != many {
			b.Fatalf("%d series have a slope, want %d", got, many)
		}
		peer += rounds * time.Since(at)
	}
	perSeries := func(d time.Duration) float64 { return float64(d) / (float64(b.N) * rounds * many) }
	b.ReportMetric(perSeries(spent), "ours_ns/series")
	b.ReportMetric(perSeries(peer), "promql_ns/series")
	b.ReportMetric(float64(peer)/float64(spent), "x_peer")
}

// value is a level with noise, the same for both.
func value(series, n int) float64 {
	return 100 + 10*math.Sin(float64(series)+1.7*float64(n)*float64(n))
}

// perQuery series share their batches, as those of a query do.
const perQuery = 50

// watched are the series as the rules keep them.
type watched struct {
	every   time.Duration
	width   int
	queries []*trend.Columns
	numbers [][]int
	paces   [][]trend.Pace
	row     []float32
	batch   int
	sink    float64
}

func newWatched(every, over time.Duration) *watched {
	w := &watched{every: every, width: int(over/every) + 1, row: make([]float32, perQuery)}
	span, scratch := trend.Span{Ms: over.Milliseconds()}, new(trend.Scratch)
	for range many / perQuery {
		c := trend.NewColumns(perQuery, trend.ColumnsOptions{Longest: span})
		c.UseScratch(scratch)
		numbers := make([]int, perQuery)
		for i := range numbers {
			numbers[i] = c.Watch(i, span)
		}
		w.queries, w.numbers, w.paces = append(w.queries, c), append(w.numbers, numbers), append(w.paces, make([]trend.Pace, perQuery))
	}
	return w
}

func (w *watched) fill() {
	for range 2 * w.width {
		w.push()
	}
}

// push takes in a batch of every query and judges every series.
func (w *watched) push() {
	o := trend.DefaultRising()
	for q, c := range w.queries {
		for i := range w.row {
			w.row[i] = float32(value(q*perQuery+i, w.batch))
		}
		c.Push(int64(w.batch), int64(w.batch)*w.every.Milliseconds(), w.row)
		for i, number := range w.numbers[q] {
			w.sink += c.RisingPaced(number, trend.NoLoad, o, &w.paces[q][i]).RawZ
		}
	}
	w.batch++
}

// stored are the same series in Prometheus.
type stored struct {
	db     *tsdb.DB
	engine *promql.Engine
	query  string
	at     time.Time
}

func newStored(b *testing.B, every, over time.Duration) *stored {
	b.Helper()
	o := tsdb.DefaultOptions()
	db, err := tsdb.Open(b.TempDir(), nil, nil, o, nil)
	if err != nil {
		b.Fatal(err)
	}
	db.DisableCompactions()
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	s := &stored{db: db, query: fmt.Sprintf("deriv(m[%s])", over), at: time.Unix(0, 0).Add(over)}
	s.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: math.MaxInt, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	app := db.Appender(context.Background())
	for n := range int(over/every) + 1 {
		for i := range many {
			l := labels.FromStrings("__name__", "m", "series", fmt.Sprint(i))
			if _, err := app.Append(0, l, int64(n)*every.Milliseconds(), value(i, n)); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		b.Fatal(err)
	}
	return s
}

// deriv evaluates once and returns how many series have a slope.
func (s *stored) deriv(b *testing.B) int {
	b.Helper()
	q, err := s.engine.NewInstantQuery(context.Background(), s.db, nil, s.query, s.at)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	r := q.Exec(context.Background())
	v, err := r.Vector()
	if err != nil {
		b.Fatal(err)
	}
	return len(v)
}
