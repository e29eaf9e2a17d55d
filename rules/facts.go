package rules

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/event"
)

// Fact is something known of a query beside the figures of one batch: told by our
// listeners' envelope or by the configuration, or inferred from many batches.
type Fact uint8

// The facts. Truths are 1 or 0; what nobody told is absent.
const (
	FactEnveloped        Fact = iota // our listeners' envelope was seen
	FactChangelog                    // changelog checkpointing is on: told, or inferred from what uploads do
	FactBoundedMemory                // boundedMemoryUsage is on
	FactMemoryCap                    // maxMemoryUsageMB, bytes per executor
	FactMinDeltas                    // minDeltasForSnapshot
	FactMaintenanceMs                // maintenanceInterval
	FactUnloadOnCommit               // unloadOnCommit is on
	FactExecutors                    // executors now
	FactCores                        // cores in all
	FactExecutorMemory               // heap, bytes per executor
	FactExecutorOverhead             // memory beside the heap, bytes per executor
	FactExecutorLosses               // executors lost since the application began
	FactGCMs                         // garbage collection since the application began
	FactIntervalMs                   // trigger interval
	FactSpark                        // version as 100*major + minor: 305, 401
	FactRunAgeMs                     // from the run's start to this batch
	FactRunBatches                   // executed batches of the run
	FactGapMs                        // from the start of the batch before
	FactFreshnessMs                  // objective: how old the newest row may be
	FactMemoryLimit                  // bytes of state memory that the user says an executor may hold
	FactDiskLimit                    // bytes of local disk that the user says an executor has for state
	FactCritical                     // the user marked the query as critical
	FactIntervalTrigger              // batches start on a grid
	FactDefaultTrigger               // the next batch starts at once
	FactChainedTrigger               // short runs that end by themselves: available_now, once
	FactFirstEventMs                 // newest event time of the first batches watched, since 1970
	numFacts
)

// Facts holds one value per Fact; NaN means unknown.
type Facts [numFacts]float64

// factNames are the names that expressions use.
var factNames = [numFacts]string{
	"enveloped", "changelog", "bounded_memory", "memory_cap_bytes", "min_deltas", "maintenance_ms", "unload_on_commit",
	"executors", "cores", "executor_memory_bytes", "executor_overhead_bytes", "executor_losses", "gc_ms",
	"trigger_interval_ms", "spark_version", "run_age_ms", "run_batches", "gap_ms",
	"freshness_objective_ms", "memory_limit_bytes", "disk_limit_bytes", "critical",
	"interval_trigger", "default_trigger", "chained_trigger", "first_event_time_ms",
}

// String returns the name that expressions use.
func (f Fact) String() string { return factNames[f] }

// unknownFacts is where every query begins.
var unknownFacts = func() (f Facts) {
	for i := range f {
		f[i] = math.NaN()
	}
	f[FactEnveloped] = 0
	return f
}()

// Override is what the configuration says of one query. The zero value says
// nothing.
type Override struct {
	FreshnessMs      float64 // how old the newest row may be; 0: no objective
	MemoryLimitBytes float64 // 0: not told
	DiskLimitBytes   float64
	Critical         bool
}

func (f *Facts) override(o Override) {
	told := func(x float64) float64 {
		if x > 0 {
			return x
		}
		return math.NaN()
	}
	f[FactFreshnessMs], f[FactMemoryLimit], f[FactDiskLimit] = told(o.FreshnessMs), told(o.MemoryLimitBytes), told(o.DiskLimitBytes)
	f[FactCritical] = truth(o.Critical)
}

const (
	stateStoreConf = "spark.sql.streaming.stateStore."
	changelogConf  = "rocksdb.changelogCheckpointing.enabled"
)

// tell takes what an envelope says. Settings that a sender leaves out are not
// defaults: they stay unknown.
func (f *Facts) tell(e *event.Envelope) {
	if e == nil {
		return
	}
	f[FactEnveloped] = 1
	for key, text := range e.Conf {
		f.setting(key, text)
	}
	if v := sparkVersion(e.App.SparkVersion); v > 0 {
		f[FactSpark] = v
	}
	x := e.Executors
	if x == nil {
		return
	}
	for _, p := range []struct {
		fact  Fact
		value int64
	}{
		{FactExecutors, x.Count},
		{FactCores, x.Cores},
		{FactExecutorMemory, x.MemoryBytes},
		{FactExecutorOverhead, x.OverheadBytes},
		{FactExecutorLosses, x.Losses},
		{FactGCMs, x.GCTimeMs},
	} {
		if p.value != event.Absent {
			f[p.fact] = float64(p.value)
		}
	}
}

func (f *Facts) setting(key, text string) {
	text = strings.TrimSpace(text)
	switch key {
	case stateStoreConf + changelogConf:
		f[FactChangelog] = truth(text == "true")
	case stateStoreConf + "rocksdb.boundedMemoryUsage":
		f[FactBoundedMemory] = truth(text == "true")
	case stateStoreConf + "unloadOnCommit":
		f[FactUnloadOnCommit] = truth(text == "true")
	case stateStoreConf + "rocksdb.maxMemoryUsageMB":
		f.number(FactMemoryCap, text, 1<<20)
	case stateStoreConf + "minDeltasForSnapshot":
		f.number(FactMinDeltas, text, 1)
	case stateStoreConf + "maintenanceInterval":
		f.milliseconds(FactMaintenanceMs, text)
	}
}

func (f *Facts) number(fact Fact, text string, scale float64) {
	if x, err := strconv.ParseFloat(text, 64); err == nil && x >= 0 {
		f[fact] = x * scale
	}
}

// milliseconds reads a time as Spark writes it: "60s", "1min", or bare milliseconds.
func (f *Facts) milliseconds(fact Fact, text string) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz ")
	scale, ok := map[string]float64{
		"": 1, "ms": 1, "s": 1e3, "sec": 1e3, "second": 1e3, "seconds": 1e3, "m": 60e3, "min": 60e3, "minute": 60e3, "minutes": 60e3,
		"h": 3600e3, "hour": 3600e3, "hours": 3600e3,
	}[strings.TrimSpace(text[len(digits):])]
	if ok {
		f.number(fact, digits, scale)
	}
}

// sparkVersion reads "4.1.4" as 401; 0 where it is no version, or none is told.
func sparkVersion(text string) float64 {
	if text == "" {
		return 0
	}
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	if errA != nil || errB != nil || a < 1 || a > 99 || b < 0 || b > 99 {
		return 0
	}
	return float64(100*a + b)
}

// known returns the facts that somebody told, by name.
func (f *Facts) known() map[string]float64 {
	out := map[string]float64{}
	for i, x := range f {
		if !math.IsNaN(x) {
			out[factNames[i]] = x
		}
	}
	return out
}

// overrideOf takes what the configuration says now: a reload may have changed it.
func (e *Engine) overrideOf(q *queryState) {
	if e.opts.Override != nil {
		q.facts.override(e.opts.Override(q.ref))
	}
}

// told takes what an envelope says, whatever event it comes with: settings come
// with the start of a run, and not again.
func (q *queryState) told(e *event.Envelope) {
	q.facts.tell(e)
	if e != nil && e.Conf[stateStoreConf+changelogConf] != "" {
		q.uploads.told = true
	}
}

// learn takes what the query's position says before its batch is judged.
func (q *queryState) learn(u *event.Update) {
	f, b := &q.facts, u.Event.Batch
	f[FactIntervalMs] = u.IntervalMs
	if f[FactEnveloped] == 0 && !b.Spark.IsZero() {
		f[FactSpark] = float64(100*int(b.Spark.Major) + int(b.Spark.Minor))
	}
	f[FactRunAgeMs] = math.NaN()
	if q.runStartMs != event.Absent && q.atMs != event.Absent {
		f[FactRunAgeMs] = float64(q.atMs - q.runStartMs)
	}
	f[FactRunBatches], f[FactGapMs] = float64(q.runBatches), float64(q.gapMs)
	f.triggers(q.trigger)
	q.firstEvents(b)
	if q.uploads.push(b); !q.uploads.told {
		f[FactChangelog] = q.uploads.changelog()
	}
}

// triggers says of each kind whether it is the query's; unknown where it is not known.
func (f *Facts) triggers(t event.TriggerKind) {
	if t == event.TriggerUnknown {
		return
	}
	f[FactIntervalTrigger] = truth(t == event.TriggerInterval)
	f[FactDefaultTrigger] = truth(t == event.TriggerDefault)
	f[FactChainedTrigger] = truth(chained(t))
}

// firstWatched is how many batches with event time tell where the watch began.
const firstWatched = 5

// firstEvents learns up to where the first batches watched had rows: once the
// watermark has passed that, what they put into the state should leave it.
func (q *queryState) firstEvents(b *event.Batch) {
	if q.dated >= firstWatched || b.EventTimeMaxMs == event.Absent {
		return
	}
	q.dated++
	if at := float64(b.EventTimeMaxMs); !(q.facts[FactFirstEventMs] >= at) {
		q.facts[FactFirstEventMs] = at
	}
}

// uploads infers changelog checkpointing from what the figures of uploads do:
// without it each commit uploads and they differ from batch to batch; with it
// they stand still from one upload to the next. Zero proves nothing.
type uploads struct {
	told    bool // an envelope said it
	last    [8]float64
	changed uint64 // newest batches, one bit each
	judged  int
}

const (
	uploadsNeeded = 20  // batches before a word is said
	uploadsShare  = 0.9 // of batches that differ where each commit uploads
	uploadsKept   = 64  // bits
)

func (p *uploads) push(b *event.Batch) {
	differs, any := false, false
	for i := range b.Operators[:min(len(b.Operators), len(p.last))] {
		o := &b.Operators[i]
		if o.Values[event.NumRowsUpdated] <= 0 && o.Values[event.NumRowsRemoved] <= 0 {
			continue
		}
		sum := o.Values[event.RocksDBBytesCopied] + o.Values[event.RocksDBZipFileBytesUncompressed]
		if math.IsNaN(sum) {
			continue
		}
		any = true
		differs = differs || sum != p.last[i]
		p.last[i] = sum
	}
	if !any {
		return
	}
	p.judged++
	p.changed = p.changed<<1 | uint64(truth(differs))
}

// changelog is 1 where it is on, 0 where it is off, absent before enough batches.
func (p *uploads) changelog() float64 {
	if p.judged < uploadsNeeded {
		return math.NaN()
	}
	share := float64(bits.OnesCount64(p.changed)) / float64(min(p.judged, uploadsKept))
	return truth(share < uploadsShare)
}

// factLeaves makes the facts usable in expressions.
func factLeaves() map[string]leaf {
	out := map[string]leaf{}
	for i, name := range factNames {
		out[name] = leaf{
			eval:   func(_ *event.Vector, _ *event.Batch, _ *event.Operator, f *Facts) float64 { return f[i] },
			metric: noMetric, of: OfQuery, fact: Fact(i), isFact: true,
		}
	}
	return out
}
