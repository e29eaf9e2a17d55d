package filesource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/decode/salvage"
	"github.com/stategauge/stategauge/event"
)

// reader is the state of one Run.
type reader struct {
	cfg    Config
	ctx    context.Context // of the one Run that the reader lives for
	handle collector.Handler
	report func(Rejected)
	dec    *decode.Decoder
	scan   *salvage.Scanner
	app    application
	step   collector.Step
	sum    Summary

	name    string // present file
	line    int    // present line
	stopped error  // why reading must end
}

// lines reads a text line by line.
func (r *reader) lines(text io.Reader) error {
	in := bufio.NewReaderSize(text, 64<<10)
	if isBinary(in) {
		r.reject(0, collector.ReasonEncoding, errors.New("binary data, no text"))
		return nil
	}
	var long []byte
	for r.stopped == nil {
		line, whole, err := r.next(in, &long)
		if err == nil || len(bytes.TrimSpace(line)) > 0 {
			r.line++
			r.take(line, whole)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.line%1024 == 0 {
			r.stopped = r.ctx.Err()
		}
	}
	return nil
}

func (r *reader) take(line []byte, whole bool) {
	if whole {
		r.one(line)
	} else {
		r.tooLong(line)
	}
}

// next returns the next line without its line feed, and whether it is whole: of a
// line over the limit only the beginning comes back. The text is valid until the
// next call.
func (r *reader) next(in *bufio.Reader, long *[]byte) (line []byte, whole bool, err error) {
	part, err := in.ReadSlice('\n')
	if err == nil {
		return part[:len(part)-1], true, nil
	}
	*long = (*long)[:0]
	whole = true
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(*long)+len(part) <= r.cfg.LineBytes {
			*long = append(*long, part...)
		} else {
			whole = false
		}
		part, err = in.ReadSlice('\n')
	}
	if whole && len(*long)+len(part) <= r.cfg.LineBytes {
		*long = append(*long, part...)
	} else {
		whole = false
	}
	return bytes.TrimSuffix(*long, []byte{'\n'}), whole, err
}

// one reads one line: strictly if it is a line of JSON, otherwise as part of a
// text.
func (r *reader) one(line []byte) {
	text := bytes.TrimSpace(line)
	if !r.scan.Idle() || len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		r.scan.Line(line)
		return
	}
	if typ, ok := otherLine(text); ok {
		r.app.learn(typ, text)
		r.sum.Skipped++
		r.scan.SkipLine()
		return
	}
	if r.strict(text) {
		r.scan.SkipLine()
		return
	}
	r.scan.Line(line)
}

// strict decodes a line of JSON. It returns false, and has done nothing, if the
// line is better left to salvage, which can tell a part of an event from the JSON
// of somebody else.
func (r *reader) strict(text []byte) (done bool) {
	var events [4]*event.Event
	got, skipped, n := events[:0], 0, 0
	var refused []collector.Reject
	unsure := false
	r.dec.Body(text, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		n++
		switch {
		case ev != nil:
			got = append(got, ev)
			unsure = unsure || doubtful(ev)
		case rej == nil:
			skipped++
		case rej.Reason == collector.ReasonSyntax || rej.Reason == collector.ReasonShape || rej.Reason == collector.ReasonTruncated:
			unsure = true
			return false
		default:
			refused = append(refused, *rej)
		}
		return true
	})
	if unsure || n == 0 {
		for _, ev := range got {
			r.cfg.Pool.Release(ev)
		}
		return false
	}
	for _, ev := range got {
		r.add(ev, r.line)
	}
	for _, rej := range refused {
		r.reject(r.line, rej.Reason, inFile(rej.Err, true))
	}
	if skipped == n {
		r.sum.Skipped++
	}
	return true
}

// doubtful reports an event that may be a line of somebody else's log: other than a
// progress, an event of a query always names its run.
func doubtful(ev *event.Event) bool {
	switch ev.Kind {
	case event.KindProgress, event.KindHeartbeat:
		return false
	}
	return ev.Run == ""
}

// piece takes what salvage found.
func (r *reader) piece(p salvage.Piece) {
	if p.JSON == nil {
		r.reject(p.Line, p.Reason, p.Err)
		return
	}
	taken := false
	r.dec.Body(p.JSON, func(_ int, ev *event.Event, rej *collector.Reject) bool {
		switch {
		case ev != nil:
			taken = true
			r.add(ev, p.Line)
		case rej != nil:
			r.reject(p.Line, rej.Reason, inFile(rej.Err, false))
		}
		return true
	})
	if taken {
		r.sum.Repaired += p.Repaired
	}
}

// inFile puts a decoder's error into words that fit a line of a file: the place in
// the body becomes a column, and goes where the text had been written anew.
func inFile(err error, original bool) error {
	var at *decode.SyntaxError
	if !errors.As(err, &at) {
		return err
	}
	_, text, found := strings.Cut(at.Error(), ": ") // behind the place in the body
	if !found {
		text = at.Want
	}
	if original && at.Offset > 0 {
		return fmt.Errorf("column %d: %s", at.Offset+1, text)
	}
	return errors.New(text)
}

// tooLong passes over a line that exceeds the limit.
func (r *reader) tooLong(head []byte) {
	if r.scan.Idle() {
		r.scan.SkipLine()
	} else {
		r.scan.Line(nil)
	}
	if _, other := otherLine(bytes.TrimSpace(head)); other || !bytes.Contains(head, []byte(`runId`)) {
		r.sum.Skipped++
		return
	}
	r.reject(r.line, collector.ReasonTooLarge, fmt.Errorf("the line is longer than %d bytes", r.cfg.LineBytes))
}

func (r *reader) reject(line int, why collector.Reason, err error) {
	r.sum.Rejected++
	r.report(Rejected{File: r.name, Reject: collector.Reject{Index: line, Reason: why, Err: err}})
}

// add puts an event into the present step.
func (r *reader) add(ev *event.Event, line int) {
	if r.stopped != nil {
		r.cfg.Pool.Release(ev)
		return
	}
	r.app.apply(ev)
	r.step.Items = append(r.step.Items, collector.Item{Event: ev, Origin: r.origin(line), Index: line})
	if len(r.step.Items) >= r.cfg.StepEvents {
		r.flush()
	}
}

// flush hands the present step on, waiting while the handler is full.
func (r *reader) flush() {
	n := len(r.step.Items)
	if n == 0 {
		return
	}
	r.step.Reached = event.Absent
	err := r.handle(r.ctx, &r.step)
	for errors.Is(err, collector.ErrFull) {
		if err = r.wait(); err == nil {
			err = r.handle(r.ctx, &r.step)
		}
	}
	for i := range r.step.Items {
		r.cfg.Pool.Release(r.step.Items[i].Event)
	}
	clear(r.step.Items)
	r.step.Items = r.step.Items[:0]
	if err != nil {
		r.stopped = err
		return
	}
	r.sum.Events += n
}
