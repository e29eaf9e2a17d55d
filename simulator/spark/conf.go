package spark

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Class names of the providers, as the settings and offset logs hold them.
const (
	RocksDBClass = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
	HDFSClass    = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
)

// families are the prefixes whose keys are checked: a misspelt one would
// otherwise be a setting without effect.
var families = []string{"spark.sql.streaming.", "spark.sql.shuffle.", "spark.locality."}

// ParseConf makes the settings of a query of version v from Spark's own keys.
// Settings that v does not know yet are accepted and have no effect, as in
// Spark; keys of other families pass. All faults are returned, in order of their
// keys: unknown keys with the nearest right one, and values that Spark would
// refuse. With faults the settings concerned keep their defaults.
func ParseConf(given map[string]string, v event.Version) (Conf, []error) {
	c := defaults(v)
	c.Given = maps.Clone(given)
	var faults []error
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if err := c.set(key, strings.TrimSpace(given[key]), v); err != nil {
			faults = append(faults, err)
		}
	}
	return c, append(faults, c.conflicts()...)
}

// defaults returns what holds where nothing is given.
func defaults(v event.Version) Conf {
	c := Conf{Provider: HDFS, CheckpointFormat: 1}
	for i := range settings {
		s := &settings[i]
		if s.apply == nil || v.Less(s.since) {
			continue
		}
		if err := s.apply(&c, s.value); err != nil {
			panic("default of " + s.key + ": " + err.Error()) // the table itself is wrong
		}
	}
	return c
}

func (c *Conf) set(key, value string, v event.Version) error {
	s := find(key)
	if s == nil {
		return unknown(key)
	}
	if s.apply == nil || v.Less(s.since) {
		return nil
	}
	if err := s.apply(c, value); err != nil {
		return fmt.Errorf("%s (%s) %w", key, value, err)
	}
	return s.allowed(value, v)
}

// conflicts finds settings that Spark refuses together.
func (c *Conf) conflicts() []error {
	if c.Provider != HDFS {
		return nil
	}
	var out []error
	if c.CheckpointFormat == 2 {
		out = append(out, fmt.Errorf("%s (2) needs the RocksDB provider", stateStore+"checkpointFormatVersion"))
	}
	if c.JoinFormat > 2 {
		out = append(out, fmt.Errorf("%s (%d) needs the RocksDB provider", joinFormat, c.JoinFormat))
	}
	return out
}

// unknown says what is wrong with a key that is not in the table: nothing, where
// it is not of a family that is checked.
func unknown(key string) error {
	if !slices.ContainsFunc(families, func(f string) bool { return strings.HasPrefix(key, f) }) {
		return nil
	}
	return fmt.Errorf("unknown setting %q%s", key, strictyaml.DidYouMean(key, settingKeys))
}

// settingKeys lists the keys of the table, for suggestions.
var settingKeys = func() (out []string) {
	for i := range settings {
		out = append(out, settings[i].key)
	}
	return out
}()

var byKey = func() map[string]*setting {
	m := make(map[string]*setting, len(settings))
	for i := range settings {
		s := &settings[i]
		m[s.key] = s
		if strings.HasPrefix(s.key, rocksDB) {
			m[strings.ToLower(s.key)] = s
		}
	}
	return m
}()

// find returns the setting of a key, nil if there is none. Spark reads those of
// RocksDB without regard to case.
func find(key string) *setting {
	if s := byKey[key]; s != nil {
		return s
	}
	if strings.HasPrefix(strings.ToLower(key), strings.ToLower(rocksDB)) {
		return byKey[strings.ToLower(key)]
	}
	return nil
}

// listenerKeys are the settings that our listeners tell, in their order.
var listenerKeys = []string{
	stateStore + "providerClass",
	rocksDB + "changelogCheckpointing.enabled",
	rocksDB + "boundedMemoryUsage",
	rocksDB + "maxMemoryUsageMB",
	stateStore + "minDeltasForSnapshot",
	streaming + "minBatchesToRetain",
	stateStore + "maintenanceInterval",
	"spark.locality.wait",
	"spark.sql.shuffle.partitions",
}

// ListenerConf returns the settings that a listener's envelope tells, in its
// order: what was given, and for the rest what a session answers by itself,
// which is nothing for the settings of RocksDB and of the scheduler.
func (c *Conf) ListenerConf(v event.Version) []KV {
	var out []KV
	for _, key := range listenerKeys {
		if value, ok := c.answer(key, v); ok {
			out = append(out, KV{key, value})
		}
	}
	return out
}

// offsetKeys are the settings that a checkpoint pins, sorted.
var offsetKeys = []string{
	"spark.sql.shuffle.partitions",
	streaming + "aggregation.stateFormatVersion",
	streaming + "flatMapGroupsWithState.stateFormatVersion",
	streaming + "join.stateFormatVersion",
	streaming + "multipleWatermarkPolicy",
	stateStore + "compression.codec",
	stateStore + "encodingFormat",
	stateStore + "providerClass",
	stateStore + "rocksdb.formatVersion",
	streaming + "statefulOperator.useStrictDistribution",
}

// OffsetLogConf returns the settings that each file of offsets/ holds.
func (c *Conf) OffsetLogConf(v event.Version) map[string]string {
	out := make(map[string]string, len(offsetKeys))
	for _, key := range offsetKeys {
		s := find(key)
		if v.Less(s.since) {
			continue
		}
		if value, ok := c.given(s); ok {
			out[key] = value
			continue
		}
		out[key] = s.value
	}
	return out
}

func (c *Conf) answer(key string, v event.Version) (string, bool) {
	s := find(key)
	if value, ok := c.given(s); ok {
		return value, true
	}
	if !s.answered || v.Less(s.since) {
		return "", false
	}
	return s.value, true
}

// given finds what was given for a setting, in whatever case.
func (c *Conf) given(s *setting) (string, bool) {
	if value, ok := c.Given[s.key]; ok {
		return value, true
	}
	if !strings.HasPrefix(s.key, rocksDB) {
		return "", false
	}
	for _, key := range slices.Sorted(maps.Keys(c.Given)) {
		if strings.EqualFold(key, s.key) {
			return c.Given[key], true
		}
	}
	return "", false
}

var errProvider = errors.New("must be " + RocksDBClass + " or " + HDFSClass)
