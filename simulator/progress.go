package simulator

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// fillProgress makes the report of the batch that just ended.
func (q *query) fillProgress(p *phases, start time.Duration) {
	g := &q.progress
	g.ID, g.RunID, g.Name = q.id, q.runID, q.name
	g.StartMs, g.BatchID = ms(start), q.next
	g.Phases = p.progress()
	g.DurationMs = g.Phases.TriggerExecution
	if p.rest%(3*time.Millisecond) < time.Millisecond { // reading the clock once more takes a moment
		g.DurationMs++
	}
	g.InputRows = 0
	for i := range q.takes {
		g.InputRows += q.takes[i].Count
	}
	g.InputRate, g.ProcessRate = q.rates(g.InputRows, g.StartMs, g.DurationMs)
	q.fillEventTime(&g.EventTime)
	q.fillSources(g)
	q.fillOperators(g)
	q.fillSink(g)
}

// rates are rows per second since the trigger before, idle ones included, and
// over the time that the batch took. A run's first batch has nothing before it.
func (q *query) rates(rows, startMs, tookMs int64) (input, processed float64) {
	if q.lastStart >= 0 && startMs > q.lastStart {
		input = float64(rows) / (float64(startMs-q.lastStart) / 1000)
	}
	return input, float64(rows) / (float64(max(tookMs, 1)) / 1000)
}

func (q *query) fillEventTime(e *spark.EventTime) {
	*e = spark.EventTime{HasWatermark: q.wm.delayMs >= 0, WatermarkMs: q.wm.nowMs}
	if !e.HasWatermark {
		return
	}
	var rows, sum float64
	for i := range q.takes {
		t := &q.takes[i]
		if t.Count == 0 {
			continue
		}
		if !e.HasRows || t.MinMs < e.MinMs {
			e.MinMs = t.MinMs
		}
		if !e.HasRows || t.MaxMs > e.MaxMs {
			e.MaxMs = t.MaxMs
		}
		e.HasRows = true
		rows += float64(t.Count)
		sum += t.SumMs
	}
	if e.HasRows {
		e.AvgMs = int64(sum / rows)
	}
}

func (q *query) fillSources(g *spark.Progress) {
	g.Sources = g.Sources[:0]
	for i := range q.takes {
		t := &q.takes[i]
		s := spark.Source{
			Description: q.source[i].Description(), StartOffset: t.Start, EndOffset: t.End, LatestOffset: t.Latest, Rows: t.Count,
		}
		if q.planned.replay {
			s.LatestOffset = "null" // nobody asked
		}
		s.InputRate, s.ProcessRate = q.rates(t.Count, g.StartMs, g.DurationMs)
		if t.HasBehind && !q.planned.replay {
			s.Metrics = q.behind(t)
		}
		g.Sources = append(g.Sources, s)
	}
}

// behind is the metrics of a Kafka source. Without a limit on offsets per trigger
// Spark takes what it reads for the newest there is.
func (q *query) behind(t *workload.Take) []spark.KV {
	return []spark.KV{
		{Key: "avgOffsetsBehindLatest", Value: decimal(t.BehindAvg)},
		{Key: "maxOffsetsBehindLatest", Value: strconv.FormatInt(t.BehindMax, 10)},
		{Key: "minOffsetsBehindLatest", Value: strconv.FormatInt(t.BehindMin, 10)},
	}
}

// decimal writes a mean as Java does below ten million, with one digit behind the
// point at least.
func decimal(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func (q *query) fillOperators(g *spark.Progress) {
	for len(g.Operators) < len(q.stages) {
		g.Operators = append(g.Operators, spark.Operator{})
	}
	g.Operators = g.Operators[:len(q.stages)]
	for i, s := range q.stages {
		o := &g.Operators[i]
		s.sum(o)
		o.Uploaded = o.Uploaded[:0]
		if spark.ReportsUploads(q.version) {
			o.Uploaded = s.lowestSnapshots(o.Uploaded, q.conf.InstancesToReport)
		}
	}
}

func (q *query) fillSink(g *spark.Progress) {
	g.Sink = spark.Sink{Description: q.sinkText(), OutputRows: -1}
	switch q.sc.Query.Sink.Kind {
	case "noop", "kafka", "console":
		g.Sink.OutputRows = q.outputRows()
	}
}

// sinkText is the sink's description: the name of its class, with the object's
// hash where the class has no name of its own.
func (q *query) sinkText() string {
	hash := uuid(q.seed, uint64(q.runs))[:8]
	switch q.sc.Query.Sink.Kind {
	case "kafka":
		return "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@" + hash
	case "console":
		return "org.apache.spark.sql.execution.streaming.ConsoleTable$@" + hash
	case "delta":
		return fmt.Sprintf("DeltaSink[s3a://lake/tables/%s]", q.name)
	case "foreach_batch":
		return "ForeachBatchSink"
	}
	if q.version.Less(spark.V41) {
		return "org.apache.spark.sql.execution.datasources.noop.NoopTable$@" + hash
	}
	return "NoopTable"
}

// idleProgress makes of the newest progress the copy that Spark up to 3.4 sends
// while there is nothing to do: the next batch's number, no rows, and the figures
// of the last batch but for updates and late rows.
func (q *query) idleProgress(took time.Duration) *spark.Progress {
	g := q.progress
	g.RunID, g.StartMs, g.BatchID = q.runID, ms(q.now), q.next
	if g.ID == "" {
		g.ID, g.Name = q.id, q.name
	}
	g.DurationMs = ms(took)
	g.Phases = spark.Phases{
		TriggerExecution: ms(took), LatestOffset: ms(took),
		WalCommit: -1, GetBatch: -1, QueryPlanning: -1, AddBatch: -1, CommitOffsets: -1,
	}
	g.InputRows = 0
	g.InputRate, g.ProcessRate = q.rates(0, g.StartMs, g.DurationMs)
	g.EventTime = spark.EventTime{HasWatermark: q.wm.delayMs >= 0, WatermarkMs: q.wm.nowMs}
	g.Sources = append([]spark.Source(nil), g.Sources...)
	for i := range g.Sources {
		s := &g.Sources[i]
		s.StartOffset, s.Rows = s.EndOffset, 0
		s.InputRate, s.ProcessRate = g.InputRate, g.ProcessRate
	}
	g.Operators = append([]spark.Operator(nil), g.Operators...)
	for i := range g.Operators {
		v := &g.Operators[i].Values
		v[event.NumRowsUpdated], v[event.NumRowsDroppedByWatermark] = 0, 0
	}
	if g.Sink.OutputRows > 0 {
		g.Sink.OutputRows = 0
	}
	return &g
}
