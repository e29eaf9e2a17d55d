package scenario

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

func (c *checker) faultList(v event.Version) {
	for i := range c.sc.Faults {
		f, path := &c.sc.Faults[i], strictyaml.Path("faults", i)
		if !c.word(path+".kind", "fault kind", f.Kind, kindNames()) {
			continue
		}
		k, _ := KindOf(f.Kind)
		c.faultFields(f, k, path)
		c.faultRanges(f, k, path)
		c.faultFits(f, path)
		c.conf(path+".conf", f.Conf, v)
	}
}

// fieldsSet are the fields of a fault that not all kinds have.
func fieldsSet(f *Fault) []struct {
	name string
	set  bool
} {
	return []struct {
		name string
		set  bool
	}{
		{"to_batch", f.ToBatch != 0},
		{"size", f.Size != 0},
		{"fixed", f.Fixed},
		{"ramp", f.Ramp != 0},
		{"every", f.Every != 0},
		{"count", f.Count != 0},
		{"share", f.Share != 0},
		{"for", f.For != 0},
		{"error", f.Error != ""},
		{"text", f.Text != ""},
		{"source", f.Source != 0},
		{"bytes", f.Bytes != 0},
		{"conf", len(f.Conf) > 0},
	}
}

func (c *checker) faultFields(f *Fault, k Kind, path string) {
	for _, field := range fieldsSet(f) {
		given := c.given(path+"."+field.name, field.set)
		if given && !k.Has(field.name) {
			c.bad(path+"."+field.name, "%s means nothing to %s%s", field.name, k.Name, meant(k))
		}
		if !field.set && slices.ContainsFunc(k.Fields, func(x Field) bool { return x.Name == field.name && x.Must }) {
			c.bad(path, "%s needs %s", k.Name, field.name)
		}
	}
}

// meant lists the fields that a kind has.
func meant(k Kind) string {
	if len(k.Fields) == 0 {
		return ", which has no fields but from_batch and query"
	}
	names := make([]string, len(k.Fields))
	for i := range k.Fields {
		names[i] = k.Fields[i].Name
	}
	return "; it has " + strings.Join(names, ", ")
}

func (c *checker) faultRanges(f *Fault, k Kind, path string) {
	if f.FromBatch < 0 || f.FromBatch >= c.sc.Batches {
		c.bad(path+".from_batch", "from_batch (%d) must be one of the %d batches", f.FromBatch, c.sc.Batches)
	}
	if f.ToBatch != 0 && f.ToBatch <= f.FromBatch {
		c.bad(path+".to_batch", "to_batch (%d) must be above from_batch (%d)", f.ToBatch, f.FromBatch)
	}
	if k.Has("size") && (f.Size <= 1 || f.Size > maxSize) {
		c.bad(path+".size", "size (%v) must be above 1, which is no fault, and at most %d", f.Size, maxSize)
	}
	within(c, path+".ramp", f.Ramp, 0, maxBatches)
	within(c, path+".every", f.Every, 0, maxBatches)
	within(c, path+".count", f.Count, 0, maxBatches)
	within(c, path+".query", f.Query, 0, c.sc.Queries)
	within(c, path+".source", f.Source, 0, len(c.sc.Query.Sources))
	c.share(path+".share", f.Share)
}

// faultFits checks that the scenario has what the fault befalls.
func (c *checker) faultFits(f *Fault, path string) {
	bounded := c.sc.Conf[boundedMemory] == "true"
	switch {
	case f.Kind == "cap-too-small" && !bounded:
		c.bad(path+".kind", "cap-too-small needs %s; without a cap it is cache-too-small", boundedMemory)
	case f.Kind == "cache-too-small" && bounded:
		c.bad(path+".kind", "with %s there is a cap: that is cap-too-small", boundedMemory)
	case f.Kind == "evaluated-twice" && c.sc.Query.Sink.Kind != "foreach_batch":
		c.bad(path+".kind", "evaluated-twice needs a sink of kind foreach_batch")
	case f.Kind == "input-stopped" && (f.Source == 0 || len(c.sc.Query.Sources) < 2):
		c.bad(path+".kind", "input-stopped needs the source of several that stops: without any input there is no further batch")
	case f.Kind == "kafka-partition-stalled":
		c.stalled(f, path)
	case f.Kind == "watermark-future" || f.Kind == "late-rows" || f.Kind == "watermark-stuck" || f.Kind == "source-frozen":
		if c.sc.Query.WatermarkDelay == nil {
			c.bad(path+".kind", "%s needs a query with watermark_delay", f.Kind)
		}
	case f.Kind == "autoscale-churn" && f.Count >= maxExecutors:
		c.bad(path+".count", "count (%d) must be below %d", f.Count, maxExecutors)
	}
}

func (c *checker) stalled(f *Fault, path string) {
	for i := range c.sc.Query.Sources {
		s := &c.sc.Query.Sources[i]
		if f.Source != 0 && f.Source != i+1 {
			continue
		}
		if s.Kind != "kafka" {
			c.bad(path+".kind", "kafka-partition-stalled needs a kafka source, source %d is of kind %s", i+1, s.Kind)
		} else if f.Count > int64(s.Partitions) {
			c.bad(path+".count", "count (%d) must be at most the %d partitions of source %d", f.Count, s.Partitions, i+1)
		}
	}
}
