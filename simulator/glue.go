package simulator

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/operator"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// alone reports whether a query has an application of its own, because something
// befalls its driver and not those of the others. All other queries of a scenario
// run in one application, with one listener.
func alone(sc *scenario.Scenario, index int) bool {
	for i := range sc.Faults {
		if sc.Faults[i].Query != index+1 {
			continue
		}
		switch sc.Faults[i].Kind {
		case "driver-frozen", "sender-lost", "crash", "redeploy", "upgrade":
			return true
		}
	}
	return false
}

// model is the devices of a scenario's cluster.
func model(sc *scenario.Scenario) device.Model {
	c, m := &sc.Cluster, device.DefaultModel()
	m.DiskBytesPerSecond = float64(c.Disk.BytesPerSecond)
	m.Fsync = time.Duration(c.Disk.Fsync)
	m.StoreLatency = time.Duration(c.Store.Latency)
	m.StoreTail = c.Store.Tail
	m.StoreTailShare = float64(c.Store.TailShare)
	m.StoreBytesPerSecond = float64(c.Store.BytesPerSecond)
	m.CoreSpeed = c.CoreSpeed
	m.MemoryBytes = float64(c.Memory)
	if sc.Query.PlanTime != nil {
		m.PlanBase = time.Duration(*sc.Query.PlanTime)
	}
	if sc.Query.CodeTime != nil {
		m.UserRow = time.Duration(*sc.Query.CodeTime)
	}
	return m
}

func noise(sc *scenario.Scenario) (device.Noise, error) {
	n := &sc.Cluster.Noise
	kind, err := device.ParseNoise(n.Kind)
	return device.Noise{Kind: kind, Sigma: n.Sigma, Correlation: n.Correlation, Batches: n.Batches}, err
}

// newNode makes the devices of an executor or of the driver.
func (q *query) newNode(number int) (*device.Node, error) {
	n, err := noise(q.sc)
	if err != nil {
		return nil, err
	}
	return device.NewNode(model(q.sc), n, device.Name{Seed: q.o.Seed, Query: q.index, Node: number})
}

func (q *query) newDriver() error {
	if q.o.Live {
		q.driver = device.NewLive()
		return nil
	}
	n, err := q.newNode(device.Driver)
	if err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	q.node, q.driver = n, n
	return nil
}

// newExecutor starts an executor in a slot, with an empty disk.
func (q *query) newExecutor(slot int) (*executor, error) {
	q.started++
	e := &executor{id: q.started, every: q.conf.MaintenanceInterval, cores: make([]time.Duration, max(q.sc.Cluster.Cores, 1))}
	disk, dir := vfs.FS(vfs.NewMem()), "local"
	if q.o.Live {
		disk, dir = q.fs, q.fs.PathJoin(q.o.LocalDir, fmt.Sprintf("query-%d", q.index+1), fmt.Sprintf("executor-%d", e.id))
		e.meter = device.NewLive()
	} else {
		n, err := q.newNode(slot)
		if err != nil {
			return nil, fmt.Errorf("executor %d: %w", e.id, err)
		}
		e.node, e.meter = n, n
	}
	var err error
	e.stores, err = store.NewExecutor(store.Options{
		ID: e.id, FS: disk, Dir: dir, Checkpoint: q.ckpt, Conf: &q.conf, Version: q.version, Meter: e.meter,
		Seed: q.seed, Salt: seed.Mix(uint64(q.runs), uint64(e.id)), MemtableBytes: int64(q.sc.Cluster.MemtableBytes), Live: q.o.Live,
	})
	if err != nil {
		return nil, fmt.Errorf("start executor %d: %w", e.id, err)
	}
	return e, nil
}

// operatorKinds maps scenarios' names.
var operatorKinds = map[string]spark.OperatorKind{
	"aggregation":             spark.Aggregation,
	"dedupe":                  spark.Dedupe,
	"dedupe_within_watermark": spark.DedupeWithinWatermark,
	"join":                    spark.Join,
	"flat_map_groups":         spark.FlatMapGroups,
	"transform_with_state":    spark.TransformWithState,
	"session_window":          spark.SessionWindow,
}

// newStages makes the operators for the query's version and settings.
func (q *query) newStages(partitions int) error {
	q.stages = q.stages[:0]
	for i := range q.sc.Query.Operators {
		spec, err := q.spec(&q.sc.Query.Operators[i])
		if err != nil {
			return fmt.Errorf("operator %d: %w", i, err)
		}
		op, err := operator.New(spec, q.version, &q.conf)
		if err != nil {
			return fmt.Errorf("operator %d: %w", i, err)
		}
		s := newStage(i, op, partitions, newCopies(partitions, q.sc.Cluster.RealStores, q.seed))
		s.collect = i+1 < len(q.sc.Query.Operators)
		q.stages = append(q.stages, s)
	}
	return nil
}

func (q *query) spec(o *scenario.Operator) (operator.Spec, error) {
	kind, ok := operatorKinds[o.Kind]
	if !ok {
		return operator.Spec{}, fmt.Errorf("unknown kind %q", o.Kind)
	}
	mode, err := operator.ParseMode(o.Mode)
	if err != nil {
		return operator.Spec{}, err
	}
	s := operator.Spec{
		Kind: kind, Mode: mode, EventTimeInKey: o.EventTimeInKey == nil || *o.EventTimeInKey,
		ValueBytes: o.ValueBytes, Python: o.Language == "python",
	}
	if d := q.sc.Query.WatermarkDelay; d != nil {
		s.Watermark, s.Delay = true, time.Duration(*d)
	}
	set := func(to *time.Duration, from *strictyaml.Duration) {
		if from != nil {
			*to = time.Duration(*from)
		}
	}
	set(&s.Window, o.Window)
	set(&s.Gap, o.Gap)
	set(&s.Timeout, o.Timeout)
	if o.Bound != nil {
		s.Bounded = true
		set(&s.Bound, o.Bound)
	}
	return s, nil
}

// newSources makes the query's inputs, whose time begins at startMs, and what
// follows their watermarks.
func (q *query) newSources(startMs int64) error {
	var beyond time.Duration
	delay := int64(-1)
	if d := q.sc.Query.WatermarkDelay; d != nil {
		delay = ms(time.Duration(*d))
		beyond = time.Duration(*d) + 2*q.every
	}
	for i := range q.sc.Query.Sources {
		s, err := q.newSource(i, startMs, beyond)
		if err != nil {
			return fmt.Errorf("source %d: %w", i, err)
		}
		q.source = append(q.source, s)
		q.clocks = append(q.clocks, fromMs(startMs))
	}
	q.takes = make([]workload.Take, len(q.source))
	q.wm = newWatermark(len(q.source), delay, q.conf.MultipleWatermarkMax)
	return nil
}

func (q *query) newSource(i int, startMs int64, beyond time.Duration) (workload.Source, error) {
	s := &q.sc.Query.Sources[i]
	cfg := workload.Config{
		Seed: q.o.Seed, Query: q.index, Source: i, StartMs: startMs, Side: uint8(min(i, 1)),
		Topic: s.Topic, Partitions: s.Partitions, RowsPerSecond: s.RowsPerSecond, RowBytes: s.RowBytes, MaxPerTrigger: s.MaxPerTrigger,
		Keys: workload.Keys{
			Count: s.Keys.Count, Skew: s.Keys.Skew, NewPerSecond: s.Keys.NewPerSecond, Grow: s.Keys.Grow, Unique: s.Keys.Unique,
		},
		Rate: workload.Rate{
			Daily: float64(s.Rate.Daily), Growth: float64(s.Rate.Growth),
			BurstEvery: time.Duration(s.Rate.Bursts.Every), BurstLength: time.Duration(s.Rate.Bursts.Length), BurstFactor: s.Rate.Bursts.Factor,
			On: time.Duration(s.Rate.On), Off: time.Duration(s.Rate.Off), Noise: s.Rate.Noise,
		},
		Late: workload.Late{
			Typical: time.Duration(s.Late.Typical), Share: float64(s.Late.Share), By: time.Duration(s.Late.By), Beyond: beyond,
		},
		Duplicates: float64(s.Duplicates), Backlog: s.Backlog,
	}
	switch s.Kind {
	case "kafka":
		return workload.NewKafka(cfg)
	case "rate":
		return workload.NewRate(cfg)
	case "files":
		return workload.NewFiles(cfg)
	}
	return nil, fmt.Errorf("unknown kind %q", s.Kind)
}

// stateIDs is what a commit of checkpoint format 2 says about the stores.
func (q *query) stateIDs() map[int][][]string {
	if q.conf.CheckpointFormat < 2 {
		return nil
	}
	ids := make(map[int][][]string, len(q.stages))
	for _, s := range q.stages {
		parts := make([][]string, len(s.results))
		for p := range s.tasks {
			for _, st := range s.tasks[p].Stores {
				parts[p] = append(parts[p], st.Figures().UniqueID)
			}
		}
		ids[s.index] = parts
	}
	return ids
}

// wantsNoData reports whether some operator has work when only the watermark has
// moved, always whether one has work whenever a trigger comes.
func (q *query) wantsNoData() bool {
	for i := range q.sc.Query.Operators {
		switch o := &q.sc.Query.Operators[i]; o.Kind {
		case "dedupe":
			if o.EventTimeInKey == nil || *o.EventTimeInKey {
				return true
			}
		case "aggregation":
			if o.Mode != "complete" {
				return true
			}
		default:
			return true
		}
	}
	return false
}

func (q *query) always() bool {
	for i := range q.sc.Query.Operators {
		switch o := &q.sc.Query.Operators[i]; o.Kind {
		case "transform_with_state":
			return true
		case "flat_map_groups":
			if o.Timeout != nil && q.sc.Query.WatermarkDelay == nil {
				return true
			}
		}
	}
	return false
}
