package simulator

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/simulator/checkpoint"
	"github.com/stategauge/stategauge/simulator/device"
	"github.com/stategauge/stategauge/simulator/fault"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/seed"
	"github.com/stategauge/stategauge/simulator/spark"
	"github.com/stategauge/stategauge/simulator/workload"
)

// query is one simulated query on its own executors: a clock, a checkpoint, and
// the run that is going on. It makes messages ahead of time; the simulation
// merges those of all queries.
type query struct {
	sc        *scenario.Scenario
	o         *Options
	index     int
	seed      uint64
	name      string
	faultPlan *fault.Plan
	fs        vfs.FS
	dir       string
	kind      triggerKind
	every     time.Duration // interval of the trigger, or length of a batch in real-time mode
	source    []workload.Source

	version event.Version
	conf    spark.Conf
	given   map[string]string
	ckpt    *checkpoint.Dir
	stages  []*stage
	place   *placement
	execs   []*executor
	started int // executors ever started
	driver  device.Meter
	node    *device.Node // the driver's, nil in live mode
	lost    int64        // executors lost in the present application

	id, runID string
	runs      int // ever started; part of what run ids are drawn from
	app       int // number of the application
	apps      int // that this query has had to itself
	now       time.Duration
	due       time.Duration // next trigger
	runStart  time.Duration
	lastStart int64 // start of the trigger before in ms; -1 in a new run
	lastTook  time.Duration
	idleFrom  time.Duration // since when nothing arrived; -1: not idle
	idle      idleClock
	next      int64 // id of the next batch
	acted     int64 // newest turn whose actions are done
	ofRun     int   // batches executed in this run
	spent     int64 // batches of this simulation, and intervals in which input stood still
	turn      int64 // batches that the query has begun in its life: what faults go by
	arrived   bool  // available-now: what this run is to read is settled
	frozenMs  int64 // clock of state while nothing expires; 0: it goes
	wm        *watermark
	planned   *plan
	noData    bool // the watermark moved: a batch without data is due
	takes     []workload.Take
	inputs    [][]workload.Row
	rival     *rival

	progress spark.Progress // newest executed, memory reused
	account  Account
	text     []byte
	gc       time.Duration   // of all executors of the application
	clocks   []time.Duration // of the sources, where a pace leads them
	paced    *Pace
	cold     time.Duration // from the start of a run's first job to its first store
	wrapped  bool
	mute     bool  // the sender reaches nobody
	frozen   bool  // the driver stood still before what is said next
	lastSaid int64 // in ms
	out      queue
	ended    bool
}

// plan is a batch whose offsets are written and that is not committed.
type plan struct {
	replay bool // by an earlier run
}

// triggerKind is how batches are started.
type triggerKind uint8

const (
	triggerInterval triggerKind = iota // 0 is the default trigger
	triggerAvailableNow
	triggerRealTime
)

func newQuery(sc *scenario.Scenario, o *Options, dir string, index int, wrapped bool) (*query, error) {
	q := &query{
		sc: sc, o: o, index: index, fs: o.FS, dir: dir, wrapped: wrapped, seed: seed.Mix(o.Seed, uint64(index)),
		name: queryName(sc, index), given: sc.Conf, lastStart: -1, acted: -1, idleFrom: -1,
	}
	q.kind, q.every = triggerOf(sc)
	if alone(sc, index) {
		q.newApp()
	}
	q.account.Name = q.name
	var err error
	if q.faultPlan, err = fault.NewPlan(sc, index, o.Size, o.Seed); err != nil {
		return nil, fmt.Errorf("faults of query %d: %w", index+1, err)
	}
	if err := q.setVersion(o.Version); err != nil {
		return nil, err
	}
	begin, err := time.Parse(time.RFC3339, sc.Start)
	if err != nil {
		return nil, fmt.Errorf("start of the scenario: %w", err)
	}
	if o.StartMs != 0 {
		begin = time.UnixMilli(o.StartMs)
	}
	// Queries of one cluster are not started in the same millisecond.
	stagger := time.Duration(seed.New(q.seed, seed.ForDriver).Int64N(int64(2 * time.Second)))
	q.now = time.Duration(begin.UnixNano()) + time.Duration(index)*3*time.Second + stagger
	if err := q.newSources(ms(time.Duration(begin.UnixNano()))); err != nil {
		return nil, err
	}
	if err := q.newDriver(); err != nil {
		return nil, err
	}
	return q, q.open()
}

func queryName(sc *scenario.Scenario, index int) string {
	switch {
	case sc.Query.Unnamed:
		return ""
	case sc.Queries > 1:
		return fmt.Sprintf("%s-%d", sc.Query.Name, index+1)
	}
	return sc.Query.Name
}

func triggerOf(sc *scenario.Scenario) (triggerKind, time.Duration) {
	t := &sc.Query.Trigger
	switch {
	case t.AvailableNow > 0:
		return triggerAvailableNow, time.Duration(t.AvailableNow)
	case t.RealTime > 0:
		return triggerRealTime, time.Duration(t.RealTime)
	}
	return triggerInterval, time.Duration(t.Interval)
}

// setVersion makes the query one of a Spark version: settings and operators.
func (q *query) setVersion(v event.Version) error {
	conf, faults := spark.ParseConf(q.given, v)
	if len(faults) > 0 {
		return fmt.Errorf("settings for Spark %s: %w", v, faults[0])
	}
	if q.place != nil { // fixed by the checkpoint
		conf.ShufflePartitions = len(q.place.of)
	}
	q.version, q.conf = v, conf
	q.idle = idleClock{intervalMs: ms(conf.IdleInterval), atOnce: v.Less(spark.V35)}
	return q.newStages(conf.ShufflePartitions)
}

// uuid draws a random UUID.
func uuid(parts ...uint64) string {
	rng := seed.New(parts...)
	return spark.UUID(rng.Uint64(), rng.Uint64())
}

// rng gives the driver's own random numbers for a batch; what sets several uses
// within one batch apart.
func (q *query) rng(batch int64, what uint64) *rng {
	return &rng{seed.New(q.seed, seed.ForDriver, uint64(q.runs), uint64(batch), what)}
}

// limit reports whether the query has run as long as was asked for.
func (q *query) limit() bool {
	n := q.o.Batches
	if n <= 0 {
		n = q.sc.Batches
	}
	return n > 0 && q.spent >= n
}

// step plays on until the query has said something or has ended.
func (q *query) step() error {
	for !q.ended && q.out.len() == 0 {
		if q.o.Pace == nil && q.limit() {
			q.ended = true
			return nil
		}
		if err := q.trigger(); err != nil {
			return fmt.Errorf("query %d, batch %d: %w", q.index+1, q.next, err)
		}
	}
	return nil
}

// faults is what is wrong at this moment.
func (q *query) faults() fault.State { return q.faultPlan.At(q.turn, ms(q.now)) }

// close releases the executors' stores.
func (q *query) close() error {
	err := q.closeExecutors()
	q.ended = true
	return err
}
