// Package checkpoint reads and writes a query's checkpoint directory: Spark's
// paths, names, headers and JSON, on any file system that Pebble can use. What
// is inside snapshots is the simulator's own. Files appear whole or not at all.
package checkpoint

// Offsets is offsets/<batch>: what a batch will read, written before it runs.
type Offsets struct {
	WatermarkMs int64
	TimestampMs int64
	Conf        map[string]string
	Sources     []string // JSON per source; empty: "-"
	Format      int      // 1, or 2 for the offset log of 4.2
}

// Commit is commits/<batch>: that it is done, and the watermark for the next.
type Commit struct {
	NextWatermarkMs int64
	// StateIDs is operator -> partition -> store -> unique id, of checkpoint
	// format 2; nil otherwise.
	StateIDs map[int][][]string
}

// OperatorInfo is state/<operator>/_metadata/metadata of Spark 4.
type OperatorInfo struct {
	ID   int
	Name string
	// Stores is the name of each store and its number of partitions.
	Stores []StoreInfo
}

// StoreInfo is one store of an operator.
type StoreInfo struct {
	Name          string
	PrefixColumns int
	Partitions    int
}
