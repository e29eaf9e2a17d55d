package decode

import (
	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// The figures of a source, as slots number them.
const (
	sourceInputRate uint32 = iota
	sourceProcessedRate
	sourceMinBehind
	sourceMaxBehind
	sourceAvgBehind
	sourceFiles
	sourceBytes
)

// sourceFigure returns the place of a source's figure.
func sourceFigure(s *event.Source, id uint32) *float64 {
	switch id {
	case sourceInputRate:
		return &s.InputRate
	case sourceProcessedRate:
		return &s.ProcessedRate
	case sourceMinBehind:
		return &s.MinBehind
	case sourceMaxBehind:
		return &s.MaxBehind
	case sourceAvgBehind:
		return &s.AvgBehind
	case sourceFiles:
		return &s.FilesOutstanding
	}
	return &s.BytesOutstanding
}

// sources parses the inputs of a batch.
func (d *Decoder) sources() {
	d.repeated(len(d.batch.Sources) > 0)
	d.batch.Sources = d.batch.Sources[:0]
	d.parts.reset()
	if !d.open('[') {
		return
	}
	for first := true; d.c.element(first); first = false {
		if len(d.batch.Sources) >= d.pool.lim.Sources {
			d.c.refuse(collector.ReasonTooMany, "too many sources in one batch")
			return
		}
		if d.open('{') {
			d.parts.next()
			d.source(d.batch.AddSource(), uint16(len(d.batch.Sources)-1))
		}
	}
}

func (d *Decoder) source(s *event.Source, index uint16) {
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		switch string(key) {
		case "description":
			s.Description = d.description()
		case "startOffset":
			d.offset(offsetStart)
		case "endOffset":
			d.offset(offsetEnd)
		case "latestOffset":
			d.offset(offsetLatest)
		case "numInputRows", "numRecords": // the second before Spark 2.1 was released
			d.repeated(s.Rows != event.Absent)
			s.Rows = d.c.integer(slot{kind: slotRows, owner: index})
		case "inputRowsPerSecond":
			d.sourceFigure(s, index, sourceInputRate)
		case "processedRowsPerSecond":
			d.sourceFigure(s, index, sourceProcessedRate)
		case "metrics":
			d.sourceMetrics(s, index)
		default:
			d.c.skip()
		}
	}
}

func (d *Decoder) sourceFigure(s *event.Source, index uint16, id uint32) {
	v := sourceFigure(s, id)
	d.repeated(*v == *v)
	*v = d.c.number(slot{kind: slotSource, owner: index, id: id})
}

// sourceMetrics parses a source's own metrics: a map of strings, most of them
// figures.
func (d *Decoder) sourceMetrics(s *event.Source, index uint16) {
	if !d.open('{') {
		return
	}
	for first := true; ; first = false {
		key, more := d.c.member(first)
		if !more {
			return
		}
		var id uint32
		switch string(key) {
		case "minOffsetsBehindLatest":
			id = sourceMinBehind
		case "maxOffsetsBehindLatest":
			id = sourceMaxBehind
		case "avgOffsetsBehindLatest":
			id = sourceAvgBehind
		case "numFilesOutstanding":
			id = sourceFiles
		case "numBytesOutstanding":
			id = sourceBytes
		default:
			d.c.skip()
			continue
		}
		d.sourceFigure(s, index, id)
	}
}
