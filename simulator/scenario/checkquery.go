package scenario

import (
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

func (c *checker) query(v event.Version) {
	q := &c.sc.Query
	if q.Unnamed && c.given("query.name", q.Name != "") {
		c.bad("query.unnamed", "a query with a name is not unnamed: leave out one of the two")
	}
	c.trigger(&q.Trigger, v)
	for i := range q.Operators {
		c.operator(i, v)
	}
	for i := range q.Sources {
		c.source(&q.Sources[i], strictyaml.Path("query", "sources", i))
	}
	if c.word("query.sink.kind", "sink kind", q.Sink.Kind, sinkKinds) {
		c.sink(&q.Sink)
	}
}

func (c *checker) sink(s *Sink) {
	within(c, "query.sink.actions", s.Actions, 1, 10)
	if s.Kind != "foreach_batch" && s.Actions > 1 {
		c.bad("query.sink.actions", "actions means nothing to a sink of kind %s, only to foreach_batch", s.Kind)
	}
}

func (c *checker) trigger(t *Trigger, v event.Version) {
	var set []string
	for _, f := range []struct {
		name string
		on   bool
	}{{"interval", t.Interval > 0}, {"default", t.Default}, {"available_now", t.AvailableNow > 0}, {"real_time", t.RealTime > 0}} {
		if f.on {
			set = append(set, f.name)
		}
	}
	switch {
	case len(set) == 0:
		c.bad("query.trigger", "the trigger is none: set interval, default, available_now or real_time")
	case len(set) > 1:
		c.bad("query.trigger", "a query has one trigger, not %s", strings.Join(set, " and "))
	}
	c.realTime(t, v)
}

func (c *checker) realTime(t *Trigger, v event.Version) {
	if t.RealTime <= 0 {
		return
	}
	c.since("query.trigger.real_time", "real-time mode", v, event.Version{Major: 4, Minor: 1})
	if len(c.sc.Query.Operators) > 0 {
		c.since("query.operators", "state in real-time mode", v, event.Version{Major: 4, Minor: 3})
	}
}

// since checks that the version has something.
func (c *checker) since(path, what string, v, first event.Version) {
	if !v.IsZero() && v.Less(first) {
		c.bad(path, "%s came with Spark %d.%d; spark_version is %s", what, first.Major, first.Minor, c.sc.SparkVersion)
	}
}

func (c *checker) operator(i int, v event.Version) {
	o, path := &c.sc.Query.Operators[i], strictyaml.Path("query", "operators", i)
	if !c.word(path+".kind", "operator kind", o.Kind, operatorKinds) {
		return
	}
	switch o.Kind {
	case "dedupe_within_watermark":
		c.since(path+".kind", o.Kind, v, event.Version{Major: 3, Minor: 5})
	case "transform_with_state":
		c.since(path+".kind", o.Kind, v, event.Version{Major: 4})
	case "join":
		c.join(i, path)
	}
	c.operatorFields(o, path)
	c.operatorMode(o, path)
	c.needsWatermark(o, path)
}

func (c *checker) join(i int, path string) {
	if n := len(c.sc.Query.Sources); n != 2 {
		c.bad("query.sources", "a join needs two sources, there are %d", n)
	}
	if i > 0 {
		c.bad(path+".kind", "a join must be the first operator: its sides are the two sources")
	}
}

// operatorFields refuses what the kind of operator has no use for.
func (c *checker) operatorFields(o *Operator, path string) {
	for _, f := range []struct {
		name  string
		set   bool
		kinds string
	}{
		{"window", o.Window != nil, "aggregation"},
		{"gap", o.Gap != nil, "session_window"},
		{"timeout", o.Timeout != nil, "flat_map_groups transform_with_state"},
		{"bound", o.Bound != nil, "join"},
		{"event_time_in_key", false, "dedupe"},
		{"language", o.Language == "python", "transform_with_state"},
	} {
		at := path + "." + f.name
		if c.given(at, f.set) && !wordIn(f.kinds, o.Kind) {
			c.bad(at, "%s means nothing to %s, only to %s", f.name, o.Kind, strings.ReplaceAll(f.kinds, " ", " and "))
		}
	}
	if o.Kind == "session_window" && o.Gap == nil {
		c.bad(path, "session_window needs a gap")
	}
	c.word(path+".language", "language", o.Language, languages)
	within(c, path+".value_bytes", o.ValueBytes, 0, 1<<20)
	within(c, path+".initial_rows", o.InitialRows, 0, 1<<32)
}

func wordIn(words, w string) bool { return strings.Contains(" "+words+" ", " "+w+" ") }

func (c *checker) operatorMode(o *Operator, path string) {
	if !c.word(path+".mode", "output mode", o.Mode, outputModes) {
		return
	}
	switch {
	case o.Mode == "complete" && o.Kind != "aggregation":
		c.bad(path+".mode", "output mode complete needs an aggregation")
	case o.Mode == "update" && wordIn("join dedupe dedupe_within_watermark session_window", o.Kind):
		c.bad(path+".mode", "%s has no output mode update", o.Kind)
	}
}

// needsWatermark refuses what Spark refuses when it analyses a query.
func (c *checker) needsWatermark(o *Operator, path string) {
	if c.sc.Query.WatermarkDelay != nil {
		return
	}
	switch {
	case o.Kind == "dedupe_within_watermark", o.Kind == "session_window", o.Kind == "join" && o.Bound != nil,
		o.Kind == "aggregation" && o.Mode == "append":
		c.bad(path, "%s of this form needs a watermark_delay", o.Kind)
	}
}

func (c *checker) source(s *Source, path string) {
	if !c.word(path+".kind", "source kind", s.Kind, sourceKinds) {
		return
	}
	within(c, path+".partitions", s.Partitions, 1, maxPartitions)
	within(c, path+".rows_per_second", s.RowsPerSecond, 0, maxRows)
	within(c, path+".row_bytes", s.RowBytes, 8, 1<<20)
	within(c, path+".max_per_trigger", s.MaxPerTrigger, 0, 1<<40)
	within(c, path+".backlog", s.Backlog, 0, 1<<40)
	c.share(path+".duplicates", s.Duplicates)
	if s.Kind == "rate" {
		c.rateSource(s, path)
	}
	c.keys(&s.Keys, path+".keys")
	c.rate(&s.Rate, path+".rate")
	c.late(&s.Late, path+".late")
}

// rateSource refuses what the rate source of Spark cannot do.
func (c *checker) rateSource(s *Source, path string) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"max_per_trigger", s.MaxPerTrigger != 0}, {"backlog", s.Backlog != 0}, {"topic", false}, {"late", s.Late != Late{}}} {
		if at := path + "." + f.name; c.given(at, f.set) {
			c.bad(at, "%s means nothing to a rate source", f.name)
		}
	}
}

func (c *checker) keys(k *Keys, path string) {
	within(c, path+".count", k.Count, 1, 1<<40)
	within(c, path+".skew", k.Skew, 0, 10)
	within(c, path+".new_per_second", k.NewPerSecond, 0, maxRows)
	if k.Unique && (k.Skew != 0 || k.NewPerSecond != 0 || k.Grow) {
		c.bad(path+".unique", "keys that are unique have neither skew nor new_per_second nor grow")
	}
	if k.Grow && k.NewPerSecond == 0 {
		c.bad(path+".grow", "a key space that grows needs new_per_second")
	}
}

func (c *checker) rate(r *Rate, path string) {
	c.share(path+".daily", r.Daily)
	within(c, path+".growth", float64(r.Growth), -1, 100)
	within(c, path+".noise", r.Noise, 0, 2)
	if (r.On > 0) != (r.Off > 0) {
		c.bad(path, "on and off go together")
	}
	b := &r.Bursts
	if *b == (Bursts{}) {
		return
	}
	if b.Every <= 0 || b.Length <= 0 || b.Factor <= 0 {
		c.bad(path+".bursts", "bursts need every, length and factor")
	} else if b.Length >= b.Every {
		c.bad(path+".bursts.length", "length (%v) must be below every (%v)", b.Length, b.Every)
	}
}

func (c *checker) late(l *Late, path string) {
	c.share(path+".share", l.Share)
	if (l.Share > 0) != (l.By > 0) {
		c.bad(path, "share and by go together")
	}
}
