package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// kafka is a topic whose partitions get rows in turn: the row with offset o of
// partition p is number o*partitions+p of the source.
type kafka struct {
	input
	read   []int64 // next offset of each partition
	origin []int64 // where the query began
}

// maxOffset bounds the offsets that Seek takes, so that none overflows.
const maxOffset = 1 << 53

// NewKafka returns a Kafka topic. Without MaxPerTrigger the offsets behind the
// latest are 0, as with Spark.
func NewKafka(cfg Config) (Source, error) {
	k := &kafka{}
	if err := k.init(cfg, max(cfg.Partitions, 1)); err != nil {
		return nil, fmt.Errorf("kafka topic %q: %w", cfg.withDefaults().Topic, err)
	}
	k.read, k.origin = make([]int64, k.cfg.Partitions), make([]int64, k.cfg.Partitions)
	return k, nil
}

// Description is the text that the progress shows.
func (k *kafka) Description() string { return "KafkaV2[Subscribe[" + k.cfg.Topic + "]]" }

// Poll counts the rows of the partitions that can be read. It takes two round
// trips: for the partitions and for their ends.
func (k *kafka) Poll() Poll {
	return Poll{Available: k.readable(), Requests: 2}
}

// latest is the offset that the next row of a partition will have.
func (k *kafka) latest(partition int) int64 {
	n := int64(len(k.read))
	return (k.arrivals.total - int64(partition) + n - 1) / n
}

// live is how many partitions can be read: the last ones are those that stall.
func (k *kafka) live() int {
	return min(max(len(k.read)-k.conditions.Stalled, 0), len(k.read))
}

func (k *kafka) readable() int64 {
	var rows int64
	for p := range k.live() {
		rows += k.latest(p) - k.read[p]
	}
	return rows
}

// Take reads up to MaxPerTrigger rows, shared among the partitions by what waits
// in each.
func (k *kafka) Take() Take {
	available := k.readable()
	ends := slices.Clone(k.read)
	for p := range k.live() {
		ends[p] = k.share(p, available)
	}
	return k.readTo(ends)
}

// TakeTo reads up to an end offset.
func (k *kafka) TakeTo(end string) (Take, error) {
	ends, err := k.parse(end)
	if err != nil {
		return Take{}, k.refuse(end, err)
	}
	var rows int64
	for p, to := range ends {
		if to < k.read[p] {
			return Take{}, k.refuse(end, fmt.Errorf("of partition %d lies before what was read", p))
		}
		rows += to - k.read[p]
	}
	if err := k.bounded(rows); err != nil {
		return Take{}, k.refuse(end, err)
	}
	k.reach(ends)
	return planned(k.readTo(ends)), nil
}

// readTo makes up the rows between what was read and the ends.
func (k *kafka) readTo(ends []int64) Take {
	start := none
	if k.started {
		start = k.offsets(func(p int) int64 { return k.read[p] })
	}
	n := int64(len(ends))
	var count int64
	for p, end := range ends {
		count += end - k.read[p]
	}
	rows := k.fresh(count)
	for p, end := range ends {
		rows = k.maker.fill(rows, k.read[p]*n+int64(p), end*n+int64(p), n)
	}
	k.read, k.started = ends, true
	t := k.take(rows, start, k.offsets(func(p int) int64 { return k.read[p] }), k.offsets(k.latest))
	k.behind(&t)
	return t
}

func (k *kafka) limit() int64 {
	if k.cfg.MaxPerTrigger > 0 {
		return min(k.cfg.MaxPerTrigger, k.cfg.MaxRows)
	}
	return k.cfg.MaxRows
}

// share is up to where a partition is read, as Spark shares a limit: in
// proportion to what waits, rounded down, but one row at least.
func (k *kafka) share(partition int, available int64) int64 {
	from, latest := k.read[partition], k.latest(partition)
	if available <= k.limit() {
		return latest
	}
	part := float64(k.limit()) * (float64(latest-from) / float64(available))
	if part < 1 {
		return min(latest, from+int64(math.Ceil(part)))
	}
	return min(latest, from+int64(part))
}

// behind fills in what is left behind in each partition.
func (k *kafka) behind(t *Take) {
	t.HasBehind = true
	var sum int64
	for p := range k.read {
		left := k.latest(p) - k.read[p]
		if p == 0 || left < t.BehindMin {
			t.BehindMin = left
		}
		t.BehindMax = max(t.BehindMax, left)
		sum += left
	}
	t.BehindAvg = float64(sum) / float64(len(k.read))
}

// offsets is the JSON text of an offset per partition.
func (k *kafka) offsets(of func(partition int) int64) string {
	topic, _ := json.Marshal(k.cfg.Topic) // a string always has a JSON text
	b := append([]byte{'{'}, topic...)
	b = append(b, ":{"...)
	for p := range k.read {
		if p > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(p), 10)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, of(p), 10)
	}
	return string(append(b, "}}"...))
}

// Seek goes to the offsets of an earlier Take. Offsets beyond what has arrived
// belong to an earlier life of the query: those rows count as arrived before now.
func (k *kafka) Seek(end string) error {
	if atStart(end) {
		copy(k.read, k.origin)
		k.started = false
		return nil
	}
	read, err := k.parse(end)
	if err != nil {
		return k.refuse(end, err)
	}
	k.reach(read)
	k.read, k.started = read, true
	return nil
}

func (k *kafka) refuse(offsets string, why error) error {
	return fmt.Errorf("kafka topic %q: offset %.100s %w", k.cfg.Topic, offsets, why)
}

// reach lets rows up to some offsets have arrived before now.
func (k *kafka) reach(offsets []int64) {
	n := int64(len(offsets))
	for p, offset := range offsets {
		if offset > k.latest(p) {
			k.arrivals.already((offset-1)*n + int64(p) + 1 - k.arrivals.total)
		}
	}
}

// parse reads offsets; they must be of this topic and of each partition.
func (k *kafka) parse(text string) ([]int64, error) {
	var topics map[string]map[string]int64
	if err := decode(text, &topics); err != nil {
		return nil, err
	}
	partitions, ok := topics[k.cfg.Topic]
	if !ok || len(topics) != 1 {
		return nil, errors.New("is not of this topic alone")
	}
	if len(partitions) != len(k.read) {
		return nil, fmt.Errorf("has %d partitions, not %d", len(partitions), len(k.read))
	}
	read := make([]int64, len(k.read))
	for p := range read {
		offset, ok := partitions[strconv.Itoa(p)]
		if !ok || offset < 0 || offset > maxOffset/int64(len(read)) {
			return nil, fmt.Errorf("has no valid number for partition %d", p)
		}
		read[p] = offset
	}
	return read, nil
}

// Skip moves to the newest offsets and forgets that any were read.
func (k *kafka) Skip() {
	for p := range k.read {
		k.read[p] = k.latest(p)
	}
	copy(k.origin, k.read)
	k.started = false
}
