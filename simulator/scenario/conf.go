package scenario

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/spark"
)

const boundedMemory = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"

// version returns what spark_version says, zero where it says nothing known.
func (c *checker) version() event.Version {
	v, err := spark.ParseVersion(c.sc.SparkVersion)
	if err != nil {
		c.bad("spark_version", "%w", err)
	}
	return v
}

// conf checks settings one by one, so that each fault stands at its line, and
// then together.
func (c *checker) conf(path string, given map[string]string, v event.Version) {
	if v.IsZero() {
		return // every setting would be wrong
	}
	alone := len(c.faults)
	for _, key := range slices.Sorted(maps.Keys(given)) {
		_, errs := spark.ParseConf(c.beside(key, given), v)
		for _, err := range errs {
			c.bad(fmt.Sprintf("%s[%q]", path, key), "%w", err)
		}
	}
	parsed, errs := spark.ParseConf(given, v)
	if len(c.faults) == alone {
		for _, err := range errs {
			c.bad(path, "%w", err)
		}
	}
	if path == "conf" {
		c.fits(&parsed)
	}
}

// beside is one setting alone, with the provider, which decides what goes with it.
func (c *checker) beside(key string, given map[string]string) map[string]string {
	one := map[string]string{key: given[key]}
	if p, ok := c.sc.Conf[provider]; ok && key != provider {
		one[provider] = p
	}
	return one
}

const provider = "spark.sql.streaming.stateStore.providerClass"

// fits checks what the rest of the scenario asks of the settings.
func (c *checker) fits(conf *spark.Conf) {
	if real := c.sc.Cluster.RealStores; real > conf.ShufflePartitions {
		c.bad("cluster.real_stores", "real_stores (%d) must be at most the %d shuffle partitions", real, conf.ShufflePartitions)
	}
	for i := range c.sc.Query.Operators {
		if c.sc.Query.Operators[i].Kind == "transform_with_state" && conf.Provider == spark.HDFS {
			c.bad(fmt.Sprintf("query.operators[%d].kind", i), "transform_with_state needs the RocksDB provider: set %s", provider)
		}
	}
}
