package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// searchAttempts is how often a search by time is tried before it is given up. With
// brokers that refuse at once that is 3 s, with brokers that hang half a minute.
const searchAttempts = 6

// OffsetsForTimes returns for each partition the offset of its first message that
// is not older than atMs, a Unix time in milliseconds: the place to begin at for
// reading what came since. Where every message is older, or there is none, that is
// the end of the log. Where the messages have no times it is event.Absent.
//
// Partitions whose leader does not answer are asked again a few times. If there are
// some left the error says so, and they too have event.Absent; the offsets of the
// others are good. It may be called from a hook, and before Run.
func (s *Source) OffsetsForTimes(ctx context.Context, of []collector.Assignment, atMs int64) ([]int64, error) {
	found := map[partition]int64{}
	left := make([]partition, len(of))
	for i := range of {
		left[i] = partitionOf(of[i])
	}
	var err error
	wait := backoff{}
	for try := 0; len(left) > 0 && try < searchAttempts; try++ {
		if try > 0 && !pause(ctx, wait.next()) {
			break
		}
		left, err = s.search(ctx, left, atMs, found)
	}
	out := make([]int64, len(of))
	for i := range of {
		out[i] = event.Absent
		if offset, ok := found[partitionOf(of[i])]; ok {
			out[i] = offset
		}
	}
	if len(left) > 0 {
		return out, fmt.Errorf("finding the offset of %s in %d of %d partitions, %s among them: %w",
			time.UnixMilli(atMs).UTC().Format(time.RFC3339), len(left), len(of), left[0], err)
	}
	return out, nil
}

// search is one attempt. It adds to found and returns the partitions that had no
// answer, with the error of the first of them.
func (s *Source) search(ctx context.Context, of []partition, atMs int64, found map[partition]int64) (left []partition, err error) {
	// The ends come first: what is written while we search must not lie before an
	// end that stands for "nothing is that young".
	looks, err := s.cluster.look(ctx, topicsOf(of))
	if err != nil {
		return of, err
	}
	answers := s.cluster.firstSince(ctx, of, max(atMs, 0))
	ends := map[partition]int64{} // where nothing was found in a log that is not empty
	for _, p := range of {
		at, lookErr := placeOf(looks, p)
		got := answers[p]
		switch fault := errors.Join(lookErr, got.err); {
		case errors.Is(got.err, errNoTimes):
			found[p] = event.Absent
		case fault != nil:
			left, err = append(left, p), errors.Join(err, fault)
		case known(got.offset):
			found[p] = max(got.offset, at.first)
		case at.first == at.last:
			found[p] = at.last
		default:
			ends[p] = at.last
		}
	}
	missed, missedErr := s.endsOrNoTimes(ctx, ends, found)
	return append(left, missed...), errors.Join(err, missedErr)
}

// endsOrNoTimes tells logs whose messages are all too old from logs whose messages
// have no times: not even a search from the beginning of time finds those.
func (s *Source) endsOrNoTimes(ctx context.Context, ends, found map[partition]int64) (left []partition, err error) {
	if len(ends) == 0 {
		return nil, nil
	}
	of := make([]partition, 0, len(ends))
	for p := range ends {
		of = append(of, p)
	}
	for p, any := range s.cluster.firstSince(ctx, of, 0) {
		switch {
		case any.err != nil:
			left, err = append(left, p), any.err
		case known(any.offset):
			found[p] = ends[p]
		default:
			found[p] = event.Absent
		}
	}
	return left, err
}

func topicsOf(of []partition) []string {
	var out []string
	seen := map[string]bool{}
	for _, p := range of {
		if !seen[p.topic] {
			seen[p.topic] = true
			out = append(out, p.topic)
		}
	}
	return out
}

// firstSince asks all leaders at once.
func (c *client) firstSince(ctx context.Context, of []partition, atMs int64) map[partition]sought {
	api, done := c.api(topicsOf(of))
	defer done()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ask := map[string][]kafka.OffsetRequest{}
	for _, p := range of {
		ask[p.topic] = append(ask[p.topic], kafka.OffsetRequest{Partition: int(p.id), Timestamp: atMs})
	}
	out := make(map[partition]sought, len(of))
	answer, err := api.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: ask})
	if err != nil {
		for _, p := range of {
			out[p] = sought{err: explain(err)}
		}
		return out
	}
	for topic, partitions := range answer.Topics {
		for i := range partitions {
			out[partition{topic, int32(partitions[i].Partition)}] = soughtIn(&partitions[i])
		}
	}
	return out
}

// soughtIn reads one partition's answer, which has one offset: -1 for none.
func soughtIn(p *kafka.PartitionOffsets) sought {
	if p.Error != nil {
		return sought{err: explain(p.Error)}
	}
	for offset := range p.Offsets {
		if offset < 0 {
			offset = event.Absent
		}
		return sought{offset: offset}
	}
	return sought{err: errors.New("leader does not tell an offset")}
}
