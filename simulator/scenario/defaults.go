package scenario

import (
	"strconv"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Defaults of a file, in the order of its keys. The devices' are those of an
// ordinary cloud executor and an object store in the same region.
const (
	DefaultVersion       = "3.5"
	DefaultBatches       = 300
	DefaultStart         = "2026-03-02T00:00:00Z"
	DefaultQueries       = 1
	DefaultApplication   = "simulated"
	DefaultPlanTime      = 60 * time.Millisecond // per batch
	DefaultCodeTime      = 5 * time.Microsecond  // per row
	DefaultLanguage      = "scala"
	DefaultSource        = "kafka"
	DefaultTopic         = "events"
	DefaultPartitions    = 8
	DefaultRowsPerSecond = 50
	DefaultRowBytes      = 100
	DefaultKeys          = 10_000
	DefaultRateNoise     = 0.05
	DefaultLateness      = time.Second // not of rate sources, whose rows are never late
	DefaultSink          = "noop"
	DefaultActions       = 1
	DefaultExecutors     = 4
	DefaultCores         = 4
	DefaultMemory        = 8 << 30
	DefaultMinOverhead   = 384 << 20 // Spark's own: a tenth of the memory, and no less
	DefaultDiskBytes     = 200 << 20 // per second
	DefaultFsync         = 2 * time.Millisecond
	DefaultStoreLatency  = 30 * time.Millisecond
	DefaultStoreTail     = 3
	DefaultStoreShare    = 0.05
	DefaultStoreBytes    = 60 << 20 // per second and connection
	DefaultCoreSpeed     = 1
	DefaultNoise         = "lognormal"
	DefaultSigma         = 0.1
	DefaultCorrelation   = 0.6
	DefaultWander        = 100 // batches
	DefaultMemtable      = 1 << 20
	DefaultFaultSize     = 1.5
)

// filler sets what a file leaves out.
type filler struct{ pos *strictyaml.Positions }

// set writes def to field if the file does not set it and nothing else has.
func set[T comparable](f filler, path string, field *T, def T) {
	var zero T
	if *field == zero && !f.pos.Has(path) {
		*field = def
	}
}

// pointed does the same for a field that tells absent from zero.
func pointed[T any](field **T, def T) {
	if *field == nil {
		*field = &def
	}
}

func (s *Scenario) fill(pos *strictyaml.Positions) {
	f := filler{pos}
	set(f, "spark_version", &s.SparkVersion, DefaultVersion)
	set(f, "batches", &s.Batches, DefaultBatches)
	set(f, "start", &s.Start, DefaultStart)
	set(f, "queries", &s.Queries, DefaultQueries)
	f.query(&s.Query, s.Name)
	f.cluster(&s.Cluster)
	for i := range s.Faults {
		if k, ok := KindOf(s.Faults[i].Kind); ok && k.Has("size") {
			set(f, strictyaml.Path("faults", i, "size"), &s.Faults[i].Size, DefaultFaultSize)
		}
	}
	for i := range s.Expect {
		set(f, expectPath(pos, i)+".from_batch", &s.Expect[i].FromBatch, s.firstFault())
	}
}

// firstFault returns the batch in which the first fault begins, 0 without one.
func (s *Scenario) firstFault() int64 {
	first := int64(0)
	for i := range s.Faults {
		if from := s.Faults[i].FromBatch; i == 0 || from < first {
			first = from
		}
	}
	return first
}

func (f filler) query(q *Query, name string) {
	if !q.Unnamed {
		set(f, "query.name", &q.Name, name)
	}
	set(f, "query.application", &q.Application, DefaultApplication)
	pointed(&q.PlanTime, strictyaml.Duration(DefaultPlanTime))
	pointed(&q.CodeTime, strictyaml.Duration(DefaultCodeTime))
	if t := &q.Trigger; *t == (Trigger{}) {
		t.Default = true
	}
	for i := range q.Operators {
		f.operator(&q.Operators[i], strictyaml.Path("query", "operators", i))
	}
	if len(q.Sources) == 0 {
		q.Sources = []Source{{}}
	}
	for i := range q.Sources {
		f.source(&q.Sources[i], strictyaml.Path("query", "sources", i), i)
	}
	set(f, "query.sink.kind", &q.Sink.Kind, DefaultSink)
	set(f, "query.sink.actions", &q.Sink.Actions, DefaultActions)
}

func (f filler) operator(o *Operator, path string) {
	pointed(&o.EventTimeInKey, true)
	mode := "append"
	if o.Kind == "aggregation" || o.Kind == "flat_map_groups" || o.Kind == "transform_with_state" {
		mode = "update"
	}
	set(f, path+".mode", &o.Mode, mode)
	set(f, path+".language", &o.Language, DefaultLanguage)
}

func (f filler) source(s *Source, path string, i int) {
	set(f, path+".kind", &s.Kind, DefaultSource)
	topic := DefaultTopic
	if i > 0 {
		topic += "-" + strconv.Itoa(i+1)
	}
	set(f, path+".topic", &s.Topic, topic)
	set(f, path+".partitions", &s.Partitions, DefaultPartitions)
	set(f, path+".rows_per_second", &s.RowsPerSecond, DefaultRowsPerSecond)
	set(f, path+".row_bytes", &s.RowBytes, DefaultRowBytes)
	set(f, path+".keys.count", &s.Keys.Count, DefaultKeys)
	set(f, path+".rate.noise", &s.Rate.Noise, DefaultRateNoise)
	if s.Kind != "rate" {
		set(f, path+".late.typical", &s.Late.Typical, strictyaml.Duration(DefaultLateness))
	}
}

func (f filler) cluster(c *Cluster) {
	set(f, "cluster.executors", &c.Executors, DefaultExecutors)
	set(f, "cluster.cores", &c.Cores, DefaultCores)
	set(f, "cluster.memory", &c.Memory, DefaultMemory)
	set(f, "cluster.overhead", &c.Overhead, max(c.Memory/10, DefaultMinOverhead))
	set(f, "cluster.disk.bytes_per_second", &c.Disk.BytesPerSecond, DefaultDiskBytes)
	set(f, "cluster.disk.fsync", &c.Disk.Fsync, strictyaml.Duration(DefaultFsync))
	set(f, "cluster.store.latency", &c.Store.Latency, strictyaml.Duration(DefaultStoreLatency))
	set(f, "cluster.store.tail", &c.Store.Tail, DefaultStoreTail)
	set(f, "cluster.store.tail_share", &c.Store.TailShare, DefaultStoreShare)
	set(f, "cluster.store.bytes_per_second", &c.Store.BytesPerSecond, DefaultStoreBytes)
	set(f, "cluster.core_speed", &c.CoreSpeed, DefaultCoreSpeed)
	set(f, "cluster.memtable_bytes", &c.MemtableBytes, DefaultMemtable)
	f.noise(&c.Noise)
}

func (f filler) noise(n *Noise) {
	set(f, "cluster.noise.kind", &n.Kind, DefaultNoise)
	set(f, "cluster.noise.sigma", &n.Sigma, DefaultSigma)
	if n.Kind == "ar1" {
		set(f, "cluster.noise.correlation", &n.Correlation, DefaultCorrelation)
	}
	if n.Kind == "wander" {
		set(f, "cluster.noise.batches", &n.Batches, DefaultWander)
	}
}

// expectPath is where expectation i stands: one alone needs no list.
func expectPath(pos *strictyaml.Positions, i int) string {
	if path := strictyaml.Path("expect", i); pos.Has(path) {
		return path
	}
	return "expect"
}
