package fault

import (
	"math"
	"time"

	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/store"
	"github.com/stategauge/stategauge/simulator/workload"
)

// appliers say what each kind of fault does. Their reference for users is
// scenario.FaultKinds.
var appliers = map[string]applier{
	"store-slow":              storeSlow,
	"store-throttled":         storeThrottled,
	"disk-slow":               func(e *entry, b int64, s *State) { s.Device.Disk *= e.factor(b) },
	"network-slow":            func(e *entry, b int64, s *State) { s.Device.Network *= e.factor(b) },
	"cpu-slow":                func(e *entry, b int64, s *State) { s.Device.CPU *= e.factor(b) },
	"code-slow":               func(e *entry, b int64, s *State) { s.Device.Code *= e.factor(b) },
	"source-listing-slow":     func(e *entry, b int64, s *State) { s.Device.SourceLatency *= e.factor(b) },
	"sink-slow":               func(e *entry, b int64, s *State) { s.OwnWork += scale(e.lengthOr(5*time.Second), e.amount(b)) },
	"checkpoint-listing-slow": checkpointListingSlow,

	"input-growth":            input(func(e *entry, b int64, c *workload.Conditions) { c.Rate *= e.factor(b) }),
	"input-stopped":           input(func(_ *entry, _ int64, c *workload.Conditions) { c.StopInput = true }),
	"state-growth":            input(func(e *entry, b int64, c *workload.Conditions) { c.KeySpace *= e.factor(b) }),
	"large-writes":            input(func(e *entry, b int64, c *workload.Conditions) { c.RowBytes *= e.factor(b) }),
	"key-skew":                input(func(e *entry, b int64, c *workload.Conditions) { c.Skew = max(c.Skew, e.part(b, 0.3)) }),
	"late-rows":               input(func(e *entry, b int64, c *workload.Conditions) { c.Late = max(c.Late, e.part(b, 0.05)) }),
	"source-frozen":           input(func(_ *entry, _ int64, c *workload.Conditions) { c.Frozen = true }),
	"kafka-partition-stalled": input(func(e *entry, _ int64, c *workload.Conditions) { c.Stalled += int(e.countOr(1)) }),
	"watermark-future":        input(watermarkFuture),
	"upstream-late":           input(upstreamLate),

	"state-never-expires": func(_ *entry, _ int64, s *State) { s.NoExpiry = true },
	"watermark-stuck":     func(_ *entry, _ int64, s *State) { s.WatermarkStuck = true },
	"memory-unbounded":    memoryUnbounded,
	"cap-too-small":       cacheLost,
	"cache-too-small":     cacheLost,
	"compaction-debt":     func(_ *entry, _ int64, s *State) { s.Store.CompactionPaused = true },
	"maintenance-stuck":   func(_ *entry, _ int64, s *State) { s.Store.MaintenanceStuck = true },
	"snapshot-damaged":    snapshotDamaged,
	"evaluated-twice":     func(e *entry, _ int64, s *State) { s.Actions = int(e.countOr(2)) },

	"executor-lost":   executorLost,
	"autoscale-churn": autoscaleChurn,
	"locality-lost":   localityLost,

	"restart":            once(Action{Kind: Restart}),
	"crash":              once(Action{Kind: Crash}),
	"redeploy":           once(Action{Kind: Redeploy}),
	"upgrade":            once(Action{Kind: Upgrade}),
	"outage":             outage,
	"conf-changed":       confChanged,
	"partitions-changed": partitionsChanged,
	"checkpoint-rewound": checkpointRewound,
	"checkpoint-reset":   once(Action{Kind: NewHistory}),
	"checkpoint-shared":  func(_ *entry, _ int64, s *State) { s.Rival = true },
	"query-failed":       queryFailed,
	"restart-loop":       restartLoop,
	"batch-hung":         batchHung,
	"driver-frozen":      func(_ *entry, _ int64, s *State) { s.DriverFroze = true },

	"events-dropped": func(e *entry, b int64, s *State) { s.DropEvent = s.DropEvent || e.rand(b).Float64() < e.part(b, 0.1) },
	"sender-lost":    func(_ *entry, _ int64, s *State) { s.SenderLost = true },
}

// input makes an applier of what a fault does to each source that it befalls.
func input(change func(*entry, int64, *workload.Conditions)) applier {
	return func(e *entry, batch int64, s *State) {
		e.inputs(s, func(c *workload.Conditions) { change(e, batch, c) })
	}
}

// once makes an applier of something done to the query when the fault is due.
func once(a Action) applier {
	return func(e *entry, batch int64, s *State) { e.act(batch, s, a) }
}

// act does a to the query if the fault is due.
func (e *entry) act(batch int64, s *State, a Action) {
	if !e.due(batch) {
		return
	}
	if a.Pause == 0 {
		a.Pause = e.lengthOr(time.Minute)
	}
	s.Before = append(s.Before, a)
}

func (e *entry) lengthOr(def time.Duration) time.Duration {
	if e.For > 0 {
		return e.For.Std()
	}
	return def
}

func scale(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }

func storeSlow(e *entry, batch int64, s *State) {
	s.Device.StoreLatency *= e.factor(batch)
	s.Device.StoreThroughput *= e.factor(batch)
}

// storeThrottled refuses 1 - 1/size of the requests: with tries until one is
// served that is size tries in the mean, before any time spent waiting between.
func storeThrottled(e *entry, batch int64, s *State) {
	served := (1 - s.Device.StoreThrottled) / e.factor(batch)
	s.Device.StoreThrottled = min(0.95, 1-served)
}

func checkpointListingSlow(e *entry, batch int64, s *State) {
	s.Device.ListLatency *= e.factor(batch)
	s.WalExtra += scale(e.lengthOr(time.Second), e.amount(batch))
}

// watermarkFuture needs one row only: a watermark never goes back.
func watermarkFuture(e *entry, batch int64, c *workload.Conditions) {
	if batch == e.FromBatch {
		c.FutureMs = e.lengthOr(30 * 24 * time.Hour).Milliseconds()
	}
}

func upstreamLate(e *entry, batch int64, c *workload.Conditions) {
	c.DelayMs += scale(e.lengthOr(time.Hour), e.amount(batch)).Milliseconds()
}

// memoryUnbounded grows from nothing after each time the containers are killed.
func memoryUnbounded(e *entry, batch int64, s *State) {
	since := batch - e.FromBatch
	if e.Every > 0 {
		if since > 0 && since%e.Every == 0 {
			s.LoseExecutors += int(e.countOr(int64(e.executors)))
		}
		since %= e.Every
	}
	perBatch := float64(e.Bytes) * (e.Size - 1) / (medium - 1)
	s.Store.LeakBytes += int64(perBatch * float64(since))
}

// cacheLost leaves a share of the cache, in proportion to size on a logarithmic
// scale: what is left at the medium size is left twice over at twice its amount.
func cacheLost(e *entry, batch int64, s *State) {
	left := max(1e-6, math.Pow(e.shareOr(0.05), e.amount(batch)))
	if s.Store.CacheFactor == 0 {
		s.Store.CacheFactor = 1
	}
	s.Store.CacheFactor *= left
}

// snapshotDamaged shows when the stores of a dead executor are fetched again.
// The files stay damaged: whoever reads one of them later finds it so.
func snapshotDamaged(e *entry, batch int64, s *State) {
	if batch == e.FromBatch {
		s.LoseExecutors++
	}
	from, until := e.FromBatch-e.countOr(15), e.FromBatch
	root, hit := e.seed, e.shareOr(0.5)
	before := s.Store.Damaged
	s.Store.Damaged = func(id store.ID, version int64) bool {
		if before != nil && before(id, version) {
			return true
		}
		return version > from && version <= until && seed.New(root, uint64(id.Operator), uint64(id.Partition)).Float64() < hit
	}
}

func executorLost(e *entry, batch int64, s *State) {
	if e.due(batch) {
		s.LoseExecutors += int(e.countOr(1))
	}
}

// autoscaleChurn has the additional executors for every other span of batches.
func autoscaleChurn(e *entry, batch int64, s *State) {
	span := e.Every
	if span <= 0 {
		span = 10
	}
	if s.Executors == 0 {
		s.Executors = e.executors
	}
	if (batch-e.FromBatch)/span%2 == 0 {
		s.Executors += int(e.countOr(2))
	}
}

// localityLost moves tasks in every batch while it lasts, or at a rhythm.
func localityLost(e *entry, batch int64, s *State) {
	if e.Every == 0 || e.due(batch) {
		s.LocalityLost = max(s.LocalityLost, e.shareOr(0.5))
	}
}

func outage(e *entry, batch int64, s *State) {
	e.act(batch, s, Action{Kind: Outage, Pause: e.lengthOr(2 * time.Hour)})
}

func confChanged(e *entry, batch int64, s *State) {
	e.act(batch, s, Action{Kind: Restart, Conf: e.Conf})
}

// partitionsChanged stays in force: each run from then on has so many.
func partitionsChanged(e *entry, batch int64, s *State) {
	s.Partitions = int(e.Count)
	e.act(batch, s, Action{Kind: Restart})
}

func checkpointRewound(e *entry, batch int64, s *State) {
	e.act(batch, s, Action{Kind: Rewind, Batches: e.countOr(20)})
}

func queryFailed(e *entry, batch int64, s *State) {
	if batch == e.FromBatch {
		s.Before = append(s.Before, Action{Kind: Fail, Class: e.Error, Text: e.Text, Final: true})
	}
}

// restartLoop fails so many attempts at one batch, one after another.
func restartLoop(e *entry, batch int64, s *State) {
	if !e.due(batch) {
		return
	}
	for range e.countOr(6) {
		s.Before = append(s.Before, Action{Kind: Fail, Pause: e.lengthOr(time.Minute), Class: e.Error, Text: e.Text})
	}
}

func batchHung(e *entry, batch int64, s *State) {
	if e.due(batch) {
		s.Hang += e.lengthOr(12 * time.Hour)
	}
}
