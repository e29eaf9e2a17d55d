package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

// open connects to the leader without asking for metadata again: kafka-go's own
// leader lookup may create the topic.
func (c *client) open(ctx context.Context, p partition, leader string, offset int64) (fetcher, error) {
	host, portText, err := net.SplitHostPort(leader)
	if err != nil {
		return nil, fmt.Errorf("leader of %s: %w", p, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fmt.Errorf("leader of %s: port of %q: %w", p, leader, err)
	}
	conn, err := c.dialer.DialPartition(ctx, "tcp", c.cfg.Brokers[0], kafka.Partition{
		Topic: p.topic, ID: int(p.id), Leader: kafka.Broker{Host: host, Port: port},
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the leader of %s: %w", p, explain(err))
	}
	return &partitionReader{cfg: c.cfg, partition: p, conn: conn, next: offset, end: offset}, nil
}

// partitionReader is a fetcher on a connection of its own, which belongs to no
// group.
type partitionReader struct {
	cfg       *Config
	partition partition
	conn      *kafka.Conn
	batch     *kafka.Batch // the answer being read; nil between answers
	next, end int64
	answered  bool  // the head of the present answer was in order
	asked     int64 // position when the present answer was asked for
	failed    error // met behind the messages returned last
	stalls    int   // answers without a record in a row, where there should be some
}

func (r *partitionReader) position() int64  { return r.next }
func (r *partitionReader) highWater() int64 { return r.end }
func (r *partitionReader) close()           { _ = r.conn.Close() }

// fetch returns at the end of an answer, so that nobody waits for a step to fill.
// Messages in front of an error are returned first, the error with the next call.
func (r *partitionReader) fetch(ctx context.Context, buf []message) ([]message, error) {
	defer context.AfterFunc(ctx, r.close)()
	before := len(buf)
	err := r.failed
	if err == nil {
		buf, err = r.turn(buf)
	}
	switch {
	case ctx.Err() != nil:
		return buf, ctx.Err()
	case err != nil && len(buf) > before:
		r.failed = err
		return buf, nil
	case err != nil:
		return buf, fmt.Errorf("reading %s at offset %d: %w", r.partition, r.next, explain(err))
	}
	return buf, nil
}

// turn reads what fits into one step. A broken batch makes kafka-go panic in
// places; here that is an error.
func (r *partitionReader) turn(buf []message) (out []message, err error) {
	out = buf
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errBroken, p)
		}
	}()
	if r.batch == nil {
		r.ask()
	}
	// An answer read in several turns needs its time anew in each.
	_ = r.conn.SetReadDeadline(time.Now().Add(requestTimeout))
	bytes := 0
	for n := 0; n < r.cfg.BatchEvents && bytes < r.cfg.MaxBytes; n++ {
		msg, err := r.batch.ReadMessage()
		if err != nil {
			return out, r.finish(err)
		}
		r.next, r.stalls = msg.Offset+1, 0
		bytes += len(msg.Key) + len(msg.Value)
		out = append(out, convert(&msg))
	}
	return out, nil
}

// ask sends a fetch request and waits for the head of the answer.
func (r *partitionReader) ask() {
	_ = r.conn.SetReadDeadline(time.Now().Add(r.cfg.MaxWait + requestTimeout))
	_, _ = r.conn.Seek(r.next, kafka.SeekAbsolute|kafka.SeekDontCheck)
	r.asked = r.next
	r.batch = r.conn.ReadBatchWith(kafka.ReadBatchConfig{
		MinBytes: r.cfg.MinBytes, MaxBytes: r.cfg.MaxBytes, MaxWait: r.cfg.MaxWait,
	})
	if r.answered = r.batch.Err() == nil; r.answered {
		r.end = r.batch.HighWaterMark()
	}
}

// finish closes the answer. Its ordinary end is no error; neither is an answer
// without messages, which kafka-go calls a timed out request.
func (r *partitionReader) finish(err error) error {
	batch := r.batch
	r.batch = nil
	ended := errors.Is(err, io.EOF)
	if !ended && !errors.Is(err, kafka.RequestTimedOut) {
		r.close() // or closing the answer would wait for the rest of it
		_ = batch.Close()
		if r.answered && !ofConnection(err) {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		return err
	}
	if err := batch.Close(); err != nil && !errors.Is(err, kafka.RequestTimedOut) {
		return err
	}
	r.next = max(r.next, batch.Offset())
	if ended && r.next == r.asked && r.end > r.next {
		r.stalled()
	}
	return nil
}

// stalled deals with an answer that held no record although there should be some.
// Compaction can empty a batch and keep its head; kafka-go does not tell how far
// such a batch goes, and the broker would send it for ever. So once it was sent
// several times it is stepped over, offset by offset.
func (r *partitionReader) stalled() {
	if r.stalls++; r.stalls > patience {
		r.next++
	}
}

// patience is how many answers in a row may hold nothing before that is believed.
const patience = 3

// ofConnection tells errors of the connection, or of the broker's own words, from
// those of what was sent.
func ofConnection(err error) bool {
	var network net.Error
	var broker kafka.Error
	return errors.As(err, &network) || errors.As(err, &broker) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrNoProgress) || errors.Is(err, net.ErrClosed)
}

func convert(msg *kafka.Message) message {
	m := message{offset: msg.Offset, value: msg.Value, control: isMarker(msg), keyless: len(msg.Key) == 0}
	for _, h := range msg.Headers {
		m.headers = append(m.headers, header(h))
	}
	return m
}

// isMarker tells a transaction's end marker from a record; kafka-go hands both out
// and hides the attribute. A marker's key is a version and a type of 0 or 1, its
// value a version and the coordinator's epoch.
func isMarker(msg *kafka.Message) bool {
	k, v := msg.Key, msg.Value
	return len(k) == 4 && k[0] == 0 && k[1] == 0 && k[2] == 0 && k[3] <= 1 && len(v) == 6 && v[0] == 0 && v[1] == 0
}
