package simulator

import (
	"slices"
	"strings"

	"github.com/stategauge/stategauge/simulator/spark"
)

// lowestSnapshots appends the n stores with the oldest uploaded snapshots: all
// that Spark 4.1 and newer say of how far behind uploads are.
func (s *stage) lowestSnapshots(dst []spark.SnapshotKey, n int) []spark.SnapshotKey {
	for p := range s.results {
		for i, version := range s.results[p].Uploaded {
			if i < len(s.storeNames) {
				dst = append(dst, spark.SnapshotKey{Partition: p, Store: s.storeNames[i], Version: version})
			}
		}
	}
	slices.SortFunc(dst, func(a, b spark.SnapshotKey) int {
		switch {
		case a.Version != b.Version:
			return int(min(max(a.Version-b.Version, -1), 1))
		case a.Partition != b.Partition:
			return a.Partition - b.Partition
		}
		return strings.Compare(a.Store, b.Store)
	})
	return dst[:min(n, len(dst))]
}
