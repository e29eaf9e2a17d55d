package scenario

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

const (
	boundedMemory     = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
	shufflePartitions = "spark.sql.shuffle.partitions"
)

// parseVersion reads a version as files name it: 3.5 or 3.5.8.
func parseVersion(text string) (event.Version, error) {
	for _, known := range versions {
		if text != known && !strings.HasPrefix(text, known+".") {
			continue
		}
		var v event.Version
		if _, err := fmt.Sscanf(known, "%d.%d", &v.Major, &v.Minor); err != nil {
			return v, fmt.Errorf("spark version %q: %w", text, err)
		}
		return v, nil
	}
	return event.Version{}, fmt.Errorf("unknown Spark version %q%s", text, strictyaml.DidYouMean(text, versions))
}

// confErrors returns what is wrong with one setting.
func confErrors(_, _ string, _ event.Version) []error { return nil }

// realStores checks that no more stores are real than there are.
func (c *checker) realStores(event.Version) {
	partitions := 200
	if text, ok := c.sc.Conf[shufflePartitions]; ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return
		}
		partitions = n
	}
	if real := c.sc.Cluster.RealStores; real > partitions {
		c.bad("cluster.real_stores", "real_stores (%d) must be at most the %d shuffle partitions", real, partitions)
	}
}
