// Package score measures how far rules can be trusted. It plays scenarios with
// known faults and asks which were found, named rightly, and how soon; and it
// plays healthy queries, many of them cheaply made, and counts what fired all the
// same. What users would write today in PromQL is judged on the same events.
package score

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// Scenario is the text of one scenario.
type Scenario struct {
	Name string
	Data []byte
}

// Options say what is scored and how much of it. A zero field means its default.
type Options struct {
	Rules     []rules.Source // rule files; required
	Scenarios []Scenario
	// Seeds is how many seeds each scenario is played with, from FirstSeed on; default
	// 2 and 1. Rules are tuned on one family of seeds and reported on another.
	Seeds     int
	FirstSeed uint64
	Batches   int64     // of each query; default the scenario's own
	Sizes     []float64 // of the faults; default 1.2, 1.5 and 3
	// Healthy is how many healthy batches are made and judged for each trigger.
	Healthy []HealthyRun
	// Within is how long making and judging healthy batches may take, all in all; what was
	// not reached by then is left out, and the report says how much was. 0: no limit.
	Within time.Duration
	// Beside is the score on another family of seeds, the one that rules were tuned on, to
	// be shown beside; nil: none.
	Beside *Report
	// Recorded are files and folders with events of healthy queries that the simulator
	// did not make; healthy batches are made of them too.
	Recorded []string
	// TradeOff asks for the curves over thresholds and holds, on as many healthy
	// batches; 0 leaves them out.
	TradeOff int64
	// Delays is how many plays, from FirstSeed on, each of the delays that stand beside a
	// goal is measured over; 0 leaves them out.
	Delays   int
	CacheDir string // for the scenarios' streams; empty: none are kept
	// KeepDir is where what was measured is kept, part by part, for a score that goes on
	// where it was interrupted; empty: nowhere.
	KeepDir string
	// Program tells the program that scores from others, so that what they measured is
	// not mixed; required with KeepDir.
	Program  string
	Fresh    bool // play and measure anew what is kept
	Parallel int  // default the number of processors
	// Say is told what is being done; nil: nobody. It may be called at any time from
	// any goroutine.
	Say func(format string, args ...any)
}

func (o Options) withDefaults() Options {
	if o.Seeds <= 0 {
		o.Seeds = 2
	}
	if o.FirstSeed == 0 {
		o.FirstSeed = 1
	}
	if len(o.Sizes) == 0 {
		o.Sizes = []float64{1.2, 1.5, 3}
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	return o
}

// Run scores. The report is complete unless the error says otherwise.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	pack, err := rules.Load(o.Rules...)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	r := &Report{Rules: pack.Len(), Pack: rulesOf(pack), Seeds: o.Seeds, FirstSeed: o.FirstSeed, Batches: o.Batches, Beside: o.Beside}
	began := time.Now()
	jobs, err := o.jobs()
	if err != nil {
		return r, err
	}
	x, err := o.runner(pack, jobs)
	if err != nil {
		return r, err
	}
	err = x.plays(ctx, jobs)
	r.addPlays(jobs)
	if err != nil {
		return r, err
	}
	if r.Goals, err = x.delays(ctx); err != nil {
		return r, err
	}
	if r.Hung, err = x.hungTradeOff(ctx); err != nil {
		return r, err
	}
	recorded, err := donorsIn(ctx, o.Recorded)
	if err != nil {
		return r, fmt.Errorf("recorded events: %w", err)
	}
	sources := append(donors(jobs), recorded...)
	r.Donors, r.Recorded = len(sources), len(recorded)
	healthyBegan := time.Now()
	for i, h := range o.Healthy {
		e, err := x.healthy(ctx, h, sources, o.share(len(o.Healthy)-i, time.Since(healthyBegan)))
		if err != nil {
			return r, err
		}
		r.Healthy = append(r.Healthy, e)
		r.addPeers(e)
	}
	if o.TradeOff > 0 {
		if r.TradeOff, err = x.tradeOff(ctx, jobs, sources); err != nil {
			return r, err
		}
		if err = x.hungHealthy(ctx, r.Hung, sources); err != nil {
			return r, err
		}
	}
	r.finish()
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// runner is what every part of a score is measured with.
type runner struct {
	*Options
	pack     *rules.Pack
	cache    *cache
	parts    *parts
	progress *progress
	hung     []hungRules
}

func (o *Options) runner(pack *rules.Pack, jobs []*play) (*runner, error) {
	x := &runner{Options: o, pack: pack}
	var err error
	if x.cache, err = newCache(o.CacheDir, o.Fresh); err != nil {
		return nil, err
	}
	if x.parts, err = newParts(o, o.Rules); err != nil {
		return nil, err
	}
	if x.hung, err = o.hungRules(pack); err != nil {
		return nil, err
	}
	total := playCost * float64(len(jobs)+max(0, o.Delays)*len(delayCases))
	total += o.againCost() * float64(max(0, o.Delays)*len(x.hung))
	for _, h := range o.Healthy {
		total += batchCost * float64(h.Batches)
	}
	if o.TradeOff > 0 {
		total += float64(len(tradeOffPoints)) * (judgeCost*float64(len(o.hardest(jobs))) + batchCost*float64(o.TradeOff))
		total += float64(len(x.hung)) * batchCost * float64(hungShare*o.TradeOff)
	}
	x.progress = newProgress(o.Say, total)
	return x, nil
}

// share is the time that one of the healthy runs that are left may take, 0 for any.
func (o *Options) share(left int, spent time.Duration) time.Duration {
	if o.Within <= 0 {
		return 0
	}
	return max(time.Millisecond, (o.Within-spent)/time.Duration(left))
}

// play is one scenario at one size and seed, and what came of it.
type play struct {
	scenario *scenario.Scenario
	size     float64 // 0: the scenario's own
	seed     uint64
	load     func(ctx context.Context) (*stream, error)
	stream   *stream // kept where it is needed again and cannot be loaded quickly
	done     bool
	result   result
}

// plays plays every scenario at every size and seed.
func (x *runner) plays(ctx context.Context, jobs []*play) error {
	return each(ctx, x.Parallel, len(jobs), func(i int) error {
		p := jobs[i]
		p.load = func(ctx context.Context) (*stream, error) { return x.cache.stream(ctx, p, x.Batches) }
		if p.donates(x.FirstSeed) {
			var err error
			if p.stream, err = p.load(ctx); err != nil {
				return p.failed(err)
			}
		}
		was, err := x.result(ctx, p, x.TradeOff > 0 && x.cache.dir == "")
		if err != nil {
			return p.failed(err)
		}
		p.done = true
		x.progress.step(playCost, was, "scenario %d of %d: %s, size %v, seed %d", i+1, len(jobs), p.scenario.Name, p.size, p.seed)
		return nil
	})
}

func (p *play) failed(err error) error {
	return fmt.Errorf("scenario %s, seed %d: %w", p.scenario.Name, p.seed, err)
}

// result judges a play unless that was done before. hold keeps its stream in memory.
func (x *runner) result(ctx context.Context, p *play, hold bool) (was bool, err error) {
	key, err := x.cache.file(p.scenario, p.options(x.Batches))
	if err != nil {
		return false, err
	}
	p.result, was, err = keep(x.parts, "play", filepath.Base(key), func() (result, error) {
		s := p.stream
		if s == nil {
			if s, err = p.load(ctx); err != nil {
				return result{}, err
			}
		}
		if hold {
			p.stream = s
		}
		return judge(x.pack, s, p.scenario)
	})
	return was, err
}

// donates reports whether healthy batches are made of the play.
func (p *play) donates(firstSeed uint64) bool { return p.scenario.Healthy && p.seed == firstSeed }

// jobs lists what is played. A scenario without a fault that can be scaled is
// played at its own size only.
func (o *Options) jobs() ([]*play, error) {
	var out []*play
	for _, s := range o.Scenarios {
		sc, err := scenario.Load(s.Name, s.Data)
		if err != nil {
			return nil, err
		}
		sizes := o.Sizes
		if !slices.ContainsFunc(sc.Faults, scalable) {
			sizes = []float64{0}
		}
		for _, size := range sizes {
			for k := range o.Seeds {
				out = append(out, &play{scenario: sc, size: size, seed: o.FirstSeed + uint64(k)})
			}
		}
	}
	return out, nil
}

// scalable reports whether a size given for a run changes the fault. The same play three
// times over would count as three faults.
func scalable(f scenario.Fault) bool {
	kind, ok := scenario.KindOf(f.Kind)
	return ok && kind.Has("size") && !f.Fixed
}

// each calls f for 0 to n-1 on several goroutines and returns the errors, joined.
// After the first one, and after the end of ctx, no further call begins.
func each(ctx context.Context, parallel, n int, f func(i int) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	errs := make([]error, n)
	next := make(chan int)
	for range min(parallel, n) {
		wg.Go(func() {
			for i := range next {
				if errs[i] = f(i); errs[i] != nil {
					stop()
				}
			}
		})
	}
	for i := range n {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return ctx.Err()
}
