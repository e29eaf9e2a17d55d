package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"

	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/collector/httpsource"
	"github.com/stategauge/stategauge/collector/track"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/exporter"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/rules/notify"
)

// App is one daemon. Several may live in one process: nothing is global.
type App struct {
	opts     Options
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *metrics

	config    atomic.Pointer[Config]
	overrides atomic.Pointer[overrides]

	decoders *decode.Pool
	seen     *track.CacheFilter
	senders  *track.Senders
	names    *track.Names
	shards   *shards
	intake   *intake
	exporter *exporter.Exporter
	judge    *judge
	trends   *trends
	delivery *delivery
	journal  *journal // nil: nothing is kept on disk

	http        atomic.Pointer[httpsource.Source]
	httpMetrics *httpsource.Metrics
	kafka       kafkaSlot
	notifier    *notify.Notifier
	notifying   *runningPart
	listeners   []net.Listener
	server      *http.Server

	ctx       context.Context // ends when the daemon stops
	cancel    context.CancelFunc
	running   sync.WaitGroup
	failed    chan error // first failure of a part that the daemon cannot do without
	ready     atomic.Bool
	judgeStop context.CancelFunc
	keeper    *runningPart
	clock     *runningPart // of the journal
	historian *runningPart // sums up hours
	positions positions
	// lookbackMs is how far back the longest window of the rules reaches.
	lookbackMs atomic.Int64
	measures   atomic.Pointer[[]rules.Measure] // the signals of the rules
	reload     sync.Mutex
	stopped    sync.Once
	stopErr    error
	stillWorks bool // a part was not waited for to its end; of stop alone
}

// New builds a daemon from options and the configuration they name, and opens its
// listeners. Nothing runs until Start. The error names every fault of the options,
// the configuration and the rules.
func New(o Options) (*App, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	conf, err := LoadConfig(o.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	pack, err := LoadRules(o.RuleFiles)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	a := &App{opts: o, log: o.Logger, registry: o.Registry, failed: make(chan error, 1)}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	if a.registry == nil {
		a.registry = prometheus.NewRegistry()
		a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	if err := a.build(&conf, pack); err != nil {
		a.cancel()
		return nil, err
	}
	return a, nil
}

// build makes every part in the order in which they need each other.
func (a *App) build(conf *Config, pack *rules.Pack) error {
	a.config.Store(conf)
	a.overrides.Store(&overrides{conf.Queries})
	a.registry.MustRegister(versioncollector.NewCollector("stategauge"))
	a.metrics = newMetrics(a.registry, "http", "kafka")
	a.decoders = decode.NewPool(limitsOf(&conf.Intake))
	a.exporter = exporter.New(a.exporterOptions(conf))
	a.buildShards(conf)
	a.intake = newIntake(conf.Intake.QueueEvents, len(a.shards.all))
	a.lookbackMs.Store(pack.Lookback().Milliseconds())
	a.learnMeasures(pack)
	a.judge = newJudge(a, pack, a.engineOptions(conf), conf.Intake.RulesQueue)
	a.trends = newTrends(a.exporter, a.registry)
	a.delivery = newDelivery(conf.Alerting.HoldOlderThan.Std())
	if err := a.buildSources(conf); err != nil {
		return err
	}
	n, err := a.newNotifier(conf)
	if err != nil {
		return fmt.Errorf("alerting: %w", err)
	}
	a.notifier = n
	a.registerGauges()
	if err := a.openJournal(conf); err != nil {
		return err
	}
	a.server = newServer(a.routes())
	return a.listen()
}

func (a *App) buildShards(conf *Config) {
	a.seen, a.senders, a.names = track.NewFilter(filterBytes), track.NewSenders(), track.NewNames()
	a.shards = &shards{}
	for i := range a.opts.Shards {
		a.shards.all = append(a.shards.all, &shard{
			index: i, changed: map[event.QueryID]bool{}, homes: map[event.QueryID]place{}, beats: newBeats(),
			jobs:    make(chan job, conf.Intake.QueueEvents),
			tracker: track.New(a.trackerConfig(conf), a.seen),
		})
	}
}

// filterBytes is the memory of the filter behind the exact window of executions.
const filterBytes = 32 << 20

func (a *App) registerGauges() {
	gaugeFunc(a.registry, "stategauge_intake_queue_events", "Events accepted and not yet applied.", func() float64 { return float64(a.intake.inFlight.Load()) })
	gaugeFunc(a.registry, "stategauge_intake_queue_limit", "Events that may wait to be applied.", func() float64 { return float64(a.intake.limit) })
	gaugeFunc(a.registry, "stategauge_rules_queue_updates", "Updates that wait to be judged.", func() float64 { return float64(a.judge.length()) })
	gaugeFunc(a.registry, "stategauge_rules_queue_limit", "Updates that may wait to be judged before intake is refused.", func() float64 { return float64(a.judge.limit) })
	a.registerDecodeGauges()
}

// Start starts every part and returns; Wait tells when a part failed.
func (a *App) Start() {
	for _, s := range a.shards.all {
		a.running.Go(func() { a.runShard(s) })
	}
	judging, stopJudging := context.WithCancel(context.Background())
	a.judgeStop = stopJudging
	go a.judge.run(judging)
	a.startJournal()
	a.keeper = runPart(a.keepHouse, a.fail)
	a.notifying = runPart(a.notifier.Run, func(err error) { a.fail(fmt.Errorf("notifier: %w", err)) })
	a.kafka.start(a)
	a.running.Go(func() {
		if err := a.serve(); err != nil {
			a.fail(fmt.Errorf("serve http: %w", err))
		}
	})
	a.loaded()
	a.ready.Store(true)
	a.log.Info("stategauge is ready", "address", a.Addr().String(), "shards", len(a.shards.all), "memory_limit", debug.SetMemoryLimit(-1))
}

func (a *App) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

// keepHouse ends series that have outlived their time, once a minute.
func (a *App) keepHouse(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.exporter.Expire(a.opts.Now().UnixMilli())
		case <-ctx.Done():
			return nil
		}
	}
}

// Failed delivers the first failure of a part that the daemon cannot do without.
func (a *App) Failed() <-chan error { return a.failed }

// Run starts the daemon and serves until ctx ends or a part fails, reloading
// whenever reload delivers. It returns after everything has stopped.
func (a *App) Run(ctx context.Context, reload <-chan struct{}) error {
	a.Start()
	for {
		select {
		case <-ctx.Done():
			return a.Stop()
		case err := <-a.failed:
			return joinStop(err, a.Stop())
		case <-reload:
			if err := a.Reload(); err != nil {
				a.log.Error("reload failed, the old configuration stays", "err", err)
			}
		}
	}
}
