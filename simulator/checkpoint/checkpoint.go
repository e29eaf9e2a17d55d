// Package checkpoint reads and writes a query's checkpoint directory: Spark's
// paths, names, headers and JSON, on any file system that Pebble can use. What
// is inside snapshots is the simulator's own. Files appear whole or not at all.
package checkpoint

import "errors"

// ErrDamaged is in every error about a file that is there but can not be what
// its name says: torn, empty, of a foreign format. A file that is not there
// gives an error with fs.ErrNotExist instead.
var ErrDamaged = errors.New("damaged")

// Offsets is offsets/<batch>: what a batch will read, written before it runs.
type Offsets struct {
	WatermarkMs int64
	TimestampMs int64
	Conf        map[string]string
	Sources     []string // JSON per source; empty: "-"
	// Names is what the lines of format 2 are keyed by; nil: the sources' numbers.
	Names  []string
	Format int // 1, or 2 for the offset log of 4.2; 0 is written as 1
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

// SST says where a snapshot's table is: its name in the local database and the
// one below SSTs/ of the checkpoint.
type SST struct {
	Local string `json:"localFileName"`
	DFS   string `json:"dfsSstFileName"`
	Bytes int64  `json:"sizeBytes"`
}

// SmallFile is a file that lies inside a snapshot's zip.
type SmallFile struct {
	Name string
	Data []byte
}

// Snapshot is what <version>.zip holds, and the tables that it points to.
type Snapshot struct {
	SSTs []SST
	Keys int64
	// InternalKeys counts keys of families that Spark keeps for itself.
	InternalKeys int64
	// Families is the number of each column family by name, InternalFamilies
	// whether Spark keeps it for itself; nil without column families.
	Families         map[string]int
	InternalFamilies map[string]bool
	Small            []SmallFile // the local database's other files, by name
}

// Kind is what a file of a store's folder holds.
type Kind uint8

// The kinds.
const (
	KindSnapshot  Kind = iota // <version>.zip, the whole state
	KindChangelog             // <version>.changelog, what one batch changed
	KindMap                   // <version>.snapshot, the whole state of the HDFS provider
	KindDelta                 // <version>.delta, what one batch changed there
)

// StateFile is one version's file in a store's folder.
type StateFile struct {
	Version  int64
	UniqueID string // of checkpoint format 2, otherwise empty
	Kind     Kind
}

// Deleted is what a round of deleting old versions did.
type Deleted struct {
	Files  int // files of versions deleted
	SSTs   int // tables deleted that no version kept points to
	Listed int // entries of the folders that were listed
}
