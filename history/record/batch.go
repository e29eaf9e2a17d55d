package record

import (
	"math"

	"github.com/stategauge/stategauge/event"
)

// batch carries a batch of the event e, which names the same query and run as a
// rule.
func (c *codec) batch(b *event.Batch, e *event.Event) {
	ours := b.Query == e.Query && b.Run == e.Run
	phases, observed, percentiles := len(b.UnknownPhases) > 0, len(b.Observed) > 0, len(b.Percentiles) > 0
	c.bools(&ours, &b.Executed, &b.NoData, &b.FirstWatermark, &b.Databricks, &phases, &observed, &percentiles)
	if !c.writing && ours {
		b.Query, b.Run = e.Query, e.Run
	}
	if !ours {
		c.query(&b.Query)
		text(c, &b.Run)
	}
	c.whole(&b.ID, 0)
	c.whole(&b.StartMs, e.AtMs)
	enum(c, &b.Trigger, event.TriggerContinuous)
	flagSet(c, &b.Missing)
	c.version(&b.Spark)
	word(c, &b.Description)
	c.figures(b)
	c.sources(b)
	c.operators(b)
	c.keyed(&b.UnknownPhases, phases)
	c.observed(&b.Observed, observed)
	c.percentiles(&b.Percentiles, percentiles)
}

// flagSet carries a set of flags as it is: unlike an enumeration it is no index.
func flagSet[T ~uint8](c *codec, v *T) {
	if c.writing {
		c.buf = append(c.buf, byte(*v))
		return
	}
	*v = 0
	if b := c.next(1); len(b) == 1 {
		*v = T(b[0])
	}
}

func (c *codec) version(v *event.Version) {
	for _, part := range [...]*uint16{&v.Major, &v.Minor, &v.Patch} {
		n := int32(*part)
		if small(c, &n, 0); !c.writing {
			*part = uint16(n)
		}
	}
}

// figures carries the query's metrics, those that stand apart last.
func (c *codec) figures(b *event.Batch) {
	v := &b.Values
	c.vector(v, &apart)
	c.figure(&v[event.BatchID], b.ID)
	c.figure(&v[event.BatchDuration], whereWhole(v[event.DurationTriggerExecution]))
	c.figure(&v[event.NumInputRows], 0)
	c.figure(&v[event.EventTimeMax], b.StartMs)
	c.figure(&v[event.EventTimeMin], whereWhole(v[event.EventTimeMax]))
	c.figure(&v[event.EventTimeAvg], whereWhole(v[event.EventTimeMax]))
	c.figure(&v[event.EventTimeWatermark], whereWhole(v[event.EventTimeMax]))
	c.whole(&b.EventTimeMaxMs, whereWhole(v[event.EventTimeMax]))
	c.whole(&b.WatermarkMs, whereWhole(v[event.EventTimeWatermark]))
}

// sources carries the sources and, before them, the query's rates, which are made
// of the same milliseconds.
func (c *codec) sources(b *event.Batch) {
	v := &b.Values
	rows := v[event.NumInputRows]
	inputMs := c.rate(&v[event.InputRowsPerSecond], rows, 0)
	processedMs := c.rate(&v[event.ProcessedRowsPerSecond], rows, batchMs(b))
	n := c.length(len(b.Sources), 10, maxList)
	b.Sources = resized(c, b.Sources, n)
	for i := range n {
		c.source(&b.Sources[i], whereWhole(rows), inputMs, processedMs)
	}
}

// batchMs is what Spark divides by for the rate of processing.
func batchMs(b *event.Batch) int64 {
	ms, _ := b.DurationMs()
	return whereWhole(ms)
}

func (c *codec) source(s *event.Source, rows, inputMs, processedMs int64) {
	behind := s.MinBehind == s.MinBehind || s.MaxBehind == s.MaxBehind || s.AvgBehind == s.AvgBehind
	files := s.FilesOutstanding == s.FilesOutstanding || s.BytesOutstanding == s.BytesOutstanding
	c.bools(&behind, &files)
	word(c, &s.Description)
	c.whole(&s.Rows, rows)
	c.whole(&s.Read, s.Rows)
	c.whole(&s.Backlog, 0)
	c.rate(&s.InputRate, float64(s.Rows), inputMs)
	c.rate(&s.ProcessedRate, float64(s.Rows), processedMs)
	c.optionalNumber(&s.MinBehind, behind)
	c.optionalNumber(&s.MaxBehind, behind)
	c.optionalNumber(&s.AvgBehind, behind)
	c.optionalNumber(&s.FilesOutstanding, files)
	c.optionalNumber(&s.BytesOutstanding, files)
}

func (c *codec) operators(b *event.Batch) {
	n := c.length(len(b.Operators), 6, maxOperators)
	b.Operators = resized(c, b.Operators, n)
	for i := range n {
		c.operator(&b.Operators[i], i, b.ID)
	}
}

// operator carries the operator at place i of a batch.
func (c *codec) operator(o *event.Operator, i int, batchID int64) {
	unknown := len(o.Unknown) > 0
	snapshots := o.SnapshotMin != event.Absent || o.NumSnapshots != 0
	inPlace := o.Index == i
	c.bools(&inPlace, &snapshots, &unknown)
	word(c, &o.Name)
	enum(c, &o.Provider, event.ProviderUnknown)
	c.vector(&o.Values, nil)
	small(c, &o.Instances, instances(o))
	small(c, &o.Stores, o.Instances)
	c.index(o, i, inPlace)
	if snapshots {
		c.whole(&o.SnapshotMin, batchID)
		small(c, &o.NumSnapshots, 0)
	} else if !c.writing {
		o.SnapshotMin, o.NumSnapshots = event.Absent, 0
	}
	c.keyed(&o.Unknown, unknown)
}

// instances is what Operator.Instances is made of.
func instances(o *event.Operator) int32 {
	n := whereWhole(o.Values[event.NumStateStoreInstances])
	if n < 0 || n > math.MaxInt32 {
		return 0
	}
	return int32(n)
}

func (c *codec) index(o *event.Operator, i int, inPlace bool) {
	if !inPlace {
		small(c, &o.Index, 0)
	} else if !c.writing {
		o.Index = i
	}
}

func (c *codec) keyed(list *[]event.KV, has bool) {
	n := c.listed(len(*list), has)
	*list = resized(c, *list, n)
	for i := range n {
		word(c, &(*list)[i].Key)
		c.number(&(*list)[i].Value)
	}
}

// listed is the length of a list that most records do not have.
func (c *codec) listed(n int, has bool) int {
	if !has {
		return 0
	}
	return c.length(n, 2, maxList)
}

func (c *codec) observed(list *[]event.Observed, has bool) {
	n := c.listed(len(*list), has)
	*list = resized(c, *list, n)
	for i := range n {
		o := &(*list)[i]
		word(c, &o.Name)
		word(c, &o.Column)
		c.number(&o.Value)
	}
}

// percentiles carries the latencies of a real-time batch. Those of metrics that a
// newer program added are passed over.
func (c *codec) percentiles(list *[]event.Percentile, has bool) {
	n := c.listed(len(*list), has)
	*list = resized(c, *list, n)
	kept := (*list)[:0]
	for i := range n {
		p := (*list)[i]
		id := int32(p.Metric)
		small(c, &id, 0)
		c.number(&p.Quantile)
		c.number(&p.Value)
		if !c.writing && id >= 0 && id < event.NumMetrics {
			p.Metric = event.MetricID(id)
			kept = append(kept, p)
		}
	}
	if !c.writing {
		*list = kept
	}
}
