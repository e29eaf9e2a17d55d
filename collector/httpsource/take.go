package httpsource

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// batch is the work on one body: events on their way into steps, and what the
// answer will say.
type batch struct {
	src    *Source
	ctx    context.Context
	step   collector.Step
	lookup func(place string) string
	nowMs  int64

	elements, skipped, accepted, duplicates int
	broken                                  map[collector.Reason]int // elements that hold no event
	rejected                                []rejected
	unlisted                                int
	err                                     error
}

// take decodes a body, hands its events on and answers.
func (s *Source) take(r *http.Request, body []byte) *answer {
	b := s.steps.Get().(*batch)
	b.begin(s, r)
	d := s.pool.Get()
	d.Body(body, b.element)
	s.pool.Put(d)
	b.flush()
	a := b.answer()
	b.end()
	return a
}

func (b *batch) begin(s *Source, r *http.Request) {
	b.src, b.ctx = s, r.Context()
	b.nowMs = s.now().UnixMilli()
	b.step.Reached = event.Absent
	b.lookup = queryLookup(r.URL.RawQuery)
}

// end makes b fit for the next body. Events that were not handed on go back too.
func (b *batch) end() {
	s := b.src
	b.release()
	clear(b.broken)
	*b = batch{step: collector.Step{Items: b.step.Items}, broken: b.broken}
	s.steps.Put(b)
}

// queryLookup returns what the request's query parameters say; nil without any.
func queryLookup(raw string) func(place string) string {
	if raw == "" {
		return nil
	}
	values, _ := url.ParseQuery(raw) // what can be read of it
	return func(place string) string {
		if name, ok := strings.CutPrefix(place, "query:"); ok {
			return values.Get(name)
		}
		return ""
	}
}

// element takes one element of the body; false stops the decoder.
func (b *batch) element(index int, ev *event.Event, rej *collector.Reject) bool {
	b.elements++
	switch {
	case rej != nil:
		b.reject(index, rej.Reason, rej.Err)
	case ev == nil:
		b.skipped++
	default:
		b.add(index, ev)
	}
	return b.err == nil
}

func (b *batch) add(index int, ev *event.Event) {
	b.src.enrich.Apply(ev, b.lookup)
	b.step.Items = append(b.step.Items, collector.Item{
		Event: ev, Index: index,
		Origin: event.Origin{Source: SourceName, Offset: event.Absent, ReceivedMs: b.nowMs},
	})
	if len(b.step.Items) >= b.src.o.StepEvents {
		b.flush()
	}
}

// flush hands the gathered events on and takes them back afterwards.
func (b *batch) flush() {
	if len(b.step.Items) == 0 || b.err != nil {
		return
	}
	if b.err = b.src.hand(b.ctx, &b.step); b.err == nil {
		for i := range b.step.Items {
			b.judged(&b.step.Items[i])
		}
	}
	b.release()
}

var (
	errUnjudgeable = errors.New("event lacks what identifies it: a progress needs batchId or timestamp")
	errRefused     = errors.New("no room for another query")
)

func (b *batch) judged(it *collector.Item) {
	switch it.Outcome {
	case event.OutcomeDuplicate:
		b.duplicates++
	case event.OutcomeUnjudgeable, event.OutcomeUnknown:
		b.list(it.Index, errUnjudgeable)
	case event.OutcomeRefused:
		b.list(it.Index, errRefused)
	default:
		b.accepted++
	}
}

func (b *batch) release() {
	for i := range b.step.Items {
		b.src.pool.Release(b.step.Items[i].Event)
	}
	clear(b.step.Items)
	b.step.Items = b.step.Items[:0]
}

func (b *batch) reject(index int, why collector.Reason, err error) {
	b.broken[why]++
	b.list(index, err)
}

func (b *batch) list(index int, err error) {
	if len(b.rejected) >= b.src.o.RejectsListed {
		b.unlisted++
		return
	}
	b.rejected = append(b.rejected, rejected{Index: index, Error: err.Error()})
}

// answer says what became of the body. Rejects are counted only here, when the
// body is not going to be sent again.
func (b *batch) answer() *answer {
	if b.err != nil {
		return b.src.failed(b.err)
	}
	if b.elements == 0 {
		b.reject(0, collector.ReasonEmpty, errors.New("body holds no event"))
	}
	for why, n := range b.broken {
		b.src.rejects[why].Add(float64(n))
	}
	slices.SortStableFunc(b.rejected, func(x, y rejected) int { return x.Index - y.Index })
	a := &answer{
		code: http.StatusOK, accepted: b.accepted, duplicates: b.duplicates,
		rejected: b.rejected, unlisted: b.unlisted,
	}
	// Lines of an event log that are no streaming query's business are no fault of
	// the sender.
	if usable := b.accepted + b.duplicates; usable == 0 && len(b.rejected) > 0 {
		a.code = http.StatusBadRequest
		if b.elements == 1 && b.broken[collector.ReasonTooLarge] == 1 {
			a.code = http.StatusRequestEntityTooLarge
		}
	}
	return a
}

// failed answers a body that the handler did not take.
func (s *Source) failed(err error) *answer {
	switch {
	case errors.Is(err, collector.ErrFull):
		return fault(http.StatusTooManyRequests, "the intake is full")
	case errors.Is(err, context.Canceled):
		return fault(http.StatusServiceUnavailable, "the request was given up")
	}
	if !s.stopping.Load() {
		s.complain(err)
	}
	return fault(http.StatusServiceUnavailable, "events could not be stored")
}
