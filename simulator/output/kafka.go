package output

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// kafkaSink produces each event as a message whose key is the query's id, so
// that a query's events stay in order on one partition.
type kafkaSink struct {
	*courier
	writer    *kafka.Writer
	transport *kafka.Transport
	messages  []kafka.Message
}

func newKafka(brokers []string, topic string, o Options) *kafkaSink {
	o.fill()
	t := &kafka.Transport{ClientID: "stategauge-simulate", DialTimeout: 5 * time.Second}
	s := &kafkaSink{transport: t, writer: &kafka.Writer{
		Addr: kafka.TCP(brokers...), Topic: topic, Balancer: &kafka.Hash{}, Transport: t,
		BatchSize: o.BatchEvents, BatchBytes: int64(max(o.BatchBytes, defaultBytes)), BatchTimeout: 5 * time.Millisecond,
		RequiredAcks: kafka.RequireAll, AllowAutoTopicCreation: true, WriteTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
	}}
	s.courier = startCourier(o, func(ctx context.Context, b *batch) error {
		s.fill(b)
		err := persist(ctx, o.Patience, s.attempt)
		if err != nil {
			return fmt.Errorf("produce to %s: %w", topic, err)
		}
		return nil
	})
	return s
}

// Close also lets the connections go.
func (s *kafkaSink) Close() error {
	err := s.courier.Close()
	err = errors.Join(err, s.writer.Close())
	s.transport.CloseIdleConnections()
	return err
}

func (s *kafkaSink) fill(b *batch) {
	s.messages = s.messages[:0]
	for i := range b.ends {
		s.messages = append(s.messages, kafka.Message{Key: []byte(b.keys[i]), Value: b.event(i)})
	}
}

// attempt produces the messages that have not arrived yet. A topic that is being
// made, or a leader that is being chosen, fails at first.
func (s *kafkaSink) attempt(ctx context.Context) error {
	err := s.writer.WriteMessages(ctx, s.messages...)
	if err == nil {
		return nil
	}
	var each kafka.WriteErrors
	if errors.As(err, &each) && len(each) == len(s.messages) {
		s.keepFailed(each)
	}
	var tooLarge kafka.MessageTooLargeError
	if errors.As(err, &tooLarge) || errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.TopicAuthorizationFailed) {
		return err
	}
	return &passing{err: err}
}

func (s *kafkaSink) keepFailed(each kafka.WriteErrors) {
	kept := s.messages[:0]
	for i := range each {
		if each[i] != nil {
			kept = append(kept, s.messages[i])
		}
	}
	s.messages = kept
}
