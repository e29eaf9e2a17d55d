package kafkasource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// step gathers the events of one worker's messages and offers them to the handler.
// One message can hold many events: then a step may end in the middle of it, and
// reaches only up to that message.
type step struct {
	worker *worker
	items  []collector.Item

	// Of the message being decoded.
	ctx, handling context.Context
	msg           *message
	receivedMs    int64
	replayed      bool // the message, and with it every item, lies before the live ones
	poisoned      bool // something was rejected, and counted, since the last step
	stopped       bool // ctx ended before the handler took the events
	found         bool // the message held anything at all
	yield         func(int, *event.Event, *collector.Reject) bool
	lookup        func(string) string
}

func (s *step) init(w *worker) {
	s.worker = w
	s.yield, s.lookup = s.take, s.header // bound once, not per message
}

// handle takes the worker through msgs; everything before next has been fetched.
// It reports false if ctx ended first.
func (s *step) handle(ctx, handling context.Context, msgs []message, next int64) bool {
	if len(msgs) == 0 {
		s.worker.advance(next)
		return true
	}
	src := s.worker.source
	s.ctx, s.handling, s.stopped = ctx, handling, false
	s.receivedMs = src.now().UnixMilli()
	d := src.opt.Pool.Get()
	defer src.opt.Pool.Put(d)
	src.noteKeys(s.worker, msgs)
	for i := range msgs {
		s.msg, s.found = &msgs[i], false
		if !s.border() {
			return false
		}
		if reject := s.unusable(); reject != nil {
			s.reject(reject)
		} else if !s.msg.control {
			d.Body(s.msg.value, s.yield)
			s.nothing()
		}
		if s.stopped {
			return false
		}
	}
	return s.flush(next)
}

// border ends the step in front of the first message that is news, so that a step
// is history as a whole or not at all.
func (s *step) border() bool {
	replayed := s.msg.offset < s.worker.live.Load()
	if replayed != s.replayed && !s.flush(s.msg.offset) {
		return false
	}
	s.replayed = replayed
	return true
}

// Magic numbers of compressed values. Kafka compresses by itself; a value that is
// compressed once more was made by a sender that means well.
var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

func (s *step) unusable() *collector.Reject {
	v := s.msg.value
	switch {
	case s.msg.control:
		return nil
	case len(v) == 0:
		return &collector.Reject{Reason: collector.ReasonEmpty, Err: errors.New("message has no value")}
	case bytes.HasPrefix(v, gzipMagic), bytes.HasPrefix(v, zstdMagic):
		return &collector.Reject{
			Reason: collector.ReasonEncoding,
			Err:    errors.New("value is compressed: leave that to the producer's compression.type"),
		}
	}
	return nil
}

// nothing rejects a message in which the decoder found neither an event nor a fault.
func (s *step) nothing() {
	if !s.found && !s.stopped {
		s.reject(&collector.Reject{Reason: collector.ReasonEmpty, Err: errors.New("value is blank")})
	}
}

// take is the decoder's yield. A full step is handed over when the next event comes:
// only then is it known whether its last message was a whole one.
func (s *step) take(index int, ev *event.Event, reject *collector.Reject) bool {
	s.found = true
	if reject != nil {
		s.reject(reject)
	}
	if ev == nil {
		return true
	}
	if len(s.items) >= s.worker.source.cfg.BatchEvents && !s.flush(s.msg.offset) {
		s.stopped = true
		s.worker.source.opt.Pool.Release(ev)
		return false
	}
	s.add(index, ev)
	return true
}

func (s *step) add(index int, ev *event.Event) {
	w := s.worker
	w.source.opt.Enrich.Apply(ev, s.lookup)
	s.items = append(s.items, collector.Item{Event: ev, Index: index, Keyless: s.msg.keyless, Origin: event.Origin{
		Source: SourceName, Topic: w.partition.topic, Partition: w.partition.id,
		Offset: s.msg.offset, ReceivedMs: s.receivedMs,
	}})
}

// header finds a place such as "header:team"; the last header of a name counts.
func (s *step) header(where string) string {
	name, ok := strings.CutPrefix(where, "header:")
	if !ok {
		return ""
	}
	for i := len(s.msg.headers) - 1; i >= 0; i-- {
		if s.msg.headers[i].Key == name {
			return string(s.msg.headers[i].Value)
		}
	}
	return ""
}

// reject counts and tells what holds no event, the first time that it is read.
func (s *step) reject(r *collector.Reject) {
	if s.replayed {
		return
	}
	s.poisoned = true
	src := s.worker.source
	src.opt.Intake.Rejected.WithLabelValues(SourceName, string(r.Reason)).Inc()
	src.warnings.line().Warn("kafka message holds no usable event", "partition", s.worker.partition.String(),
		"offset", s.msg.offset, "index", r.Index, "reason", string(r.Reason), "err", r.Err)
}

// flush hands the gathered events over and notes that the partition reached
// offset. A step without events is offered for its offset only, where poison was
// counted that a restart must not count again.
func (s *step) flush(reached int64) bool {
	if (len(s.items) > 0 || s.poisoned) && !s.deliver(reached) {
		return false
	}
	s.poisoned = false
	s.release()
	s.worker.advance(reached)
	return true
}

// deliver offers the step until the handler takes it or ctx ends. Nothing is ever
// dropped: while the intake is full the partition waits, and its lag shows it.
func (s *step) deliver(reached int64) bool {
	src, at := s.worker.source, s.worker.partition
	key := faultIntake + at.String()
	wait := backoff{}
	for {
		err := src.opt.Handler(s.handling, &collector.Step{
			Items: s.items, Reached: reached, Topic: at.topic, Partition: at.id, Replayed: s.replayed,
		})
		if err == nil {
			src.faults.clear(key)
			src.metrics.Steps.Inc()
			if s.replayed {
				src.metrics.Replayed.Add(float64(len(s.items)))
			}
			return true
		}
		if s.ctx.Err() != nil {
			return false
		}
		src.metrics.Retries.Inc()
		src.faults.raise(key, settling, fmt.Sprintf("events of %s are not taken in: %v", at, err))
		if !pause(s.ctx, wait.next()) {
			return false
		}
	}
}

// release gives the events back to the decoder's pool.
func (s *step) release() {
	for i := range s.items {
		s.worker.source.opt.Pool.Release(s.items[i].Event)
	}
	clear(s.items)
	s.items = s.items[:0]
}
