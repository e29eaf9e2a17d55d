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

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// client is a cluster through kafka-go.
type client struct {
	cfg    *Config
	net    *network
	dialer *kafka.Dialer
	log    kafka.Logger
}

func newClient(cfg *Config, log kafka.Logger) *client {
	n := newNetwork(cfg.TLS)
	return &client{
		cfg: cfg, net: n, log: log,
		dialer: &kafka.Dialer{
			ClientID:      cfg.ClientID,
			DialFunc:      n.dial,
			Timeout:       2 * dialTimeout, // DialFunc's own, and the login
			SASLMechanism: cfg.SASL.mechanism(),
		},
	}
}

func (c *client) cut() { c.net.cut() }

// api makes a client with a transport of its own: kafka-go's keeps the metadata it
// has when a broker stops answering, and would go on to serve it. done lets its
// connections go.
func (c *client) api(topics []string) (api *kafka.Client, done func()) {
	transport := &kafka.Transport{
		Dial: c.net.dial, DialTimeout: dialTimeout, ClientID: c.cfg.ClientID,
		SASL: c.cfg.SASL.mechanism(), MetadataTopics: topics, MetadataTTL: 2 * requestTimeout,
		Context: c.net.ctx,
	}
	return &kafka.Client{Addr: kafka.TCP(c.cfg.Brokers...), Transport: transport}, transport.CloseIdleConnections
}

func (c *client) look(ctx context.Context, topics []string) (map[string]topicLook, error) {
	api, done := c.api(topics)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	meta, err := api.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("asking %v for topics: %w", c.cfg.Brokers, explain(err))
	}
	out := map[string]topicLook{}
	for i := range meta.Topics {
		out[meta.Topics[i].Name] = lookOf(&meta.Topics[i])
	}
	return out, c.fillOffsets(ctx, api, out)
}

func lookOf(t *kafka.Topic) topicLook {
	if t.Error != nil && len(t.Partitions) == 0 {
		return topicLook{err: explain(t.Error)}
	}
	look := topicLook{places: make([]place, len(t.Partitions))}
	for _, p := range t.Partitions {
		if p.ID < 0 || p.ID >= len(look.places) {
			return topicLook{err: fmt.Errorf("metadata names partition %d of %d", p.ID, len(look.places))}
		}
		at := place{leader: net.JoinHostPort(p.Leader.Host, strconv.Itoa(p.Leader.Port))}
		if p.Leader.Host == "" {
			at.err = errors.New("partition has no leader")
		}
		look.places[p.ID] = at
	}
	return look
}

// fillOffsets asks the leaders where the logs start and end.
func (c *client) fillOffsets(ctx context.Context, api *kafka.Client, looks map[string]topicLook) error {
	ask := map[string][]kafka.OffsetRequest{}
	for topic, look := range looks {
		for id := range look.places {
			if look.places[id].err == nil {
				ask[topic] = append(ask[topic], kafka.FirstOffsetOf(id), kafka.LastOffsetOf(id))
			}
		}
	}
	if len(ask) == 0 {
		return nil
	}
	answer, err := api.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		return fmt.Errorf("asking for log ends: %w", explain(err))
	}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			at := &looks[topic].places[p.Partition]
			at.first, at.last, at.err = p.FirstOffset, p.LastOffset, explain(p.Error)
			if at.err == nil && (at.first < 0 || at.last < 0) {
				at.err = errors.New("leader does not tell its offsets")
			}
		}
	}
	return nil
}

func (c *client) join(topics []string, held func() claim) (group, error) {
	start := kafka.FirstOffset
	if c.cfg.StartOffset == StartLatest {
		start = kafka.LastOffset
	}
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.cfg.GroupID, Brokers: c.cfg.Brokers, Dialer: c.dialer, Topics: topics,
		HeartbeatInterval: c.cfg.HeartbeatInterval, SessionTimeout: c.cfg.SessionTimeout,
		RebalanceTimeout: c.cfg.RebalanceTimeout, JoinGroupBackoff: joinBackoff,
		StartOffset: start, Timeout: requestTimeout, ErrorLogger: c.log,
		GroupBalancers: []kafka.GroupBalancer{stickyBalancer{held}, kafka.RangeGroupBalancer{}, kafka.RoundRobinGroupBalancer{}},
	})
	if err != nil {
		return nil, fmt.Errorf("consumer group %q: %w", c.cfg.GroupID, err)
	}
	return kafkaGroup{g}, nil
}

// joinBackoff is the pause between two attempts to join a group that refuses.
const joinBackoff = 2 * time.Second

type kafkaGroup struct{ *kafka.ConsumerGroup }

func (g kafkaGroup) next(ctx context.Context) (generation, error) {
	gen, err := g.Next(ctx)
	switch {
	case err == nil:
		return kafkaGeneration{gen}, nil
	case errors.Is(err, kafka.RebalanceInProgress):
		return nil, fmt.Errorf("%w: %w", errRebalancing, err)
	}
	return nil, explain(err)
}

func (g kafkaGroup) close() error { return g.Close() }

type kafkaGeneration struct{ *kafka.Generation }

func (g kafkaGeneration) number() int32 { return g.ID }

func (g kafkaGeneration) start(fn func(context.Context)) { g.Start(fn) }

func (g kafkaGeneration) assigned() []collector.Assignment {
	var out []collector.Assignment
	for topic, partitions := range g.Assignments {
		for _, p := range partitions {
			a := collector.Assignment{Topic: topic, Partition: int32(p.ID), Committed: p.Offset}
			if p.Offset < 0 { // kafka-go puts the configured start there
				a.Committed = event.Absent
			}
			out = append(out, a)
		}
	}
	return out
}

func (g kafkaGeneration) commit(offsets map[partition]int64) error {
	byTopic := map[string]map[int]int64{}
	for p, offset := range offsets {
		if byTopic[p.topic] == nil {
			byTopic[p.topic] = map[int]int64{}
		}
		byTopic[p.topic][int(p.id)] = offset
	}
	return explain(g.CommitOffsets(byTopic))
}

// explain wraps errors that the source must know, and those whose text would not
// help anyone.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kafka.OffsetOutOfRange):
		return fmt.Errorf("%w: %w", errOutOfRange, err)
	case errors.Is(err, kafka.UnknownTopicOrPartition):
		return fmt.Errorf("%w: %w", errUnknownTopic, err)
	case errors.Is(err, kafka.UnsupportedForMessageFormat):
		return fmt.Errorf("%w: %w", errNoTimes, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("broker closed the connection; it may refuse this client's protocol version or login: %w", err)
	}
	return err
}
