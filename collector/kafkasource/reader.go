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
	if _, err := conn.Seek(offset, kafka.SeekAbsolute|kafka.SeekDontCheck); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("seeking %s: %w", p, explain(err))
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
}

func (r *partitionReader) position() int64  { return r.next }
func (r *partitionReader) highWater() int64 { return r.end }
func (r *partitionReader) close()           { _ = r.conn.Close() }

// fetch returns at the end of an answer, so that nobody waits for a step to fill.
// A broken batch makes kafka-go panic in places; here that is an error.
func (r *partitionReader) fetch(ctx context.Context, buf []message) (out []message, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = buf, fmt.Errorf("reading %s at offset %d: batch is broken: %v", r.partition, r.next, p)
		}
	}()
	defer context.AfterFunc(ctx, r.close)()
	if r.batch == nil {
		r.ask()
	}
	// An answer read in several turns needs its time anew in each.
	_ = r.conn.SetReadDeadline(time.Now().Add(requestTimeout))
	out, err = r.read(buf)
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		return out, fmt.Errorf("reading %s at offset %d: %w", r.partition, r.next, explain(err))
	}
	return out, nil
}

// ask sends a fetch request and waits for the head of the answer.
func (r *partitionReader) ask() {
	_ = r.conn.SetReadDeadline(time.Now().Add(r.cfg.MaxWait + requestTimeout))
	r.batch = r.conn.ReadBatchWith(kafka.ReadBatchConfig{
		MinBytes: r.cfg.MinBytes, MaxBytes: r.cfg.MaxBytes, MaxWait: r.cfg.MaxWait,
	})
	if r.batch.Err() == nil {
		r.end = r.batch.HighWaterMark()
	}
}

func (r *partitionReader) read(buf []message) ([]message, error) {
	bytes := 0
	for n := 0; n < r.cfg.BatchEvents && bytes < r.cfg.MaxBytes; n++ {
		msg, err := r.batch.ReadMessage()
		if err != nil {
			return buf, r.finish(err)
		}
		r.next = msg.Offset + 1
		bytes += len(msg.Key) + len(msg.Value)
		buf = append(buf, convert(&msg))
	}
	return buf, nil
}

// finish closes the answer. Its ordinary end is no error; neither is an answer
// without messages, which kafka-go calls a timed out request.
func (r *partitionReader) finish(err error) error {
	batch := r.batch
	r.batch = nil
	closed := batch.Close()
	if !errors.Is(err, io.EOF) && !errors.Is(err, kafka.RequestTimedOut) {
		return err
	}
	if closed != nil && !errors.Is(closed, kafka.RequestTimedOut) {
		return closed
	}
	r.next = max(r.next, batch.Offset())
	return nil
}

func convert(msg *kafka.Message) message {
	m := message{offset: msg.Offset, value: msg.Value, control: isMarker(msg)}
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
