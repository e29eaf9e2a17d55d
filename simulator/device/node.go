package device

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/stategauge/stategauge/simulator/seed"
)

// Name is whose time a Node tells; every random number of it hangs on the name.
type Name struct {
	Seed  uint64 // of the scenario
	Query int
	Node  int // executor from 0; Driver for the driver
}

// Driver is the number of the driver among the nodes.
const Driver = -1

// Node is one executor or the driver on the virtual clock. What it draws depends
// on its name, the batch and the task, never on what other nodes do. Not safe
// for concurrent use.
type Node struct {
	model      Model
	name       Name
	rates      [NumSteps]rates
	common     level // all nodes of the query
	own        level
	weather    level // of the checkpoint store, by the minute: all queries
	conditions Conditions
	batch      int64
	level      float64
	pcg        rand.PCG
	random     *rand.Rand
	heap       float64 // live bytes seen this batch
	heapBefore float64 // and in the batch before
}

// NewNode returns a node at batch 0 under normal conditions. The error names
// what is wrong with the model.
func NewNode(m Model, noise Noise, name Name) (*Node, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	n := &Node{model: m, name: name, rates: m.rates()}
	n.random = rand.New(&n.pcg)
	n.common = newLevel(noise, name.Seed, seed.ForNoise, uint64(name.Query))
	part := Noise{Kind: Lognormal, Sigma: noise.Sigma * ownShare}
	if noise.Kind == NoNoise {
		part.Kind = NoNoise
	}
	n.own = newLevel(part, name.Seed, seed.ForNoise, uint64(name.Query), uint64(name.Node+2))
	n.weather = newLevel(part, name.Seed, seed.ForNoise)
	n.SetBatch(0, 0, Normal())
	return n, nil
}

// SetBatch starts a batch at a time (Unix milliseconds): its level of noise and
// what is wrong in it.
func (n *Node) SetBatch(batch, nowMs int64, c Conditions) {
	n.batch, n.conditions = batch, c
	n.conditions.StoreLatency *= n.weather.at(nowMs / 60_000)
	n.level = n.common.at(batch) * n.own.at(batch)
	n.heapBefore, n.heap = n.heap, 0
	n.draw(0, 0)
}

// SetTask starts a task, so that its luck does not depend on the tasks that the
// node ran before it.
func (n *Node) SetTask(operator, partition int) {
	n.draw(uint64(operator)+1, uint64(partition)+1)
}

func (n *Node) draw(parts ...uint64) {
	h := seed.Mix(n.name.Seed, seed.ForDevice, uint64(n.name.Query), uint64(n.name.Node+2), uint64(n.batch), parts[0], parts[1])
	n.pcg.Seed(h, seed.Mix(h, 1))
}

// Model is what things cost on this node.
func (n *Node) Model() Model { return n.model }

// Begin marks nothing: virtual time follows from the work alone.
func (n *Node) Begin(Step) Mark { return 0 }

// End is how long the work of a step took.
func (n *Node) End(s Step, _ Mark, w Work) time.Duration {
	if s >= NumSteps {
		return 0
	}
	r := &n.rates[s]
	c := &n.conditions
	t := r.cpu(w) / n.model.CoreSpeed * c.CPU
	if r.code {
		t *= c.Code
	}
	if s == StepGC {
		t += n.collect(float64(w.BytesIn)) * c.CPU
	}
	t += r.disk(w) * c.Disk
	if r.remote != nil {
		t += r.remote(n, w)
	}
	return time.Duration(math.Round(min(max(t*n.level, 0), maxStep)))
}

// maxStep bounds a step, in nanoseconds: 30 days.
const maxStep = 30 * 24 * 3600 * 1e9

// collect is the time, in nanoseconds, that the collector stops the world for so
// many live bytes of one store: each collection walks them, and the fuller the
// heap the more often it comes.
func (n *Node) collect(live float64) float64 {
	n.heap += live
	used := max(n.heap, n.heapBefore) / n.model.MemoryBytes
	factor := n.model.GCWorstFactor
	if used < 1 {
		factor = min(factor, 1/(1-used))
	}
	return live * float64(n.model.GCByte) / 1e6 * factor / n.model.CoreSpeed
}

// request is the time, in nanoseconds, of one request whose median is given:
// mostly near it, some far slower.
func (n *Node) request(median float64) float64 {
	m := &n.model
	t := median * math.Exp(m.StoreSigma*n.random.NormFloat64())
	if m.StoreTailShare > 0 && n.random.Float64() < m.StoreTailShare {
		t *= min(pareto(n.random.Float64(), slowFrom, m.StoreTail), slowLongest)
	}
	return t
}

const (
	slowFrom    = 2   // a slow request takes at least so many times as long
	slowLongest = 200 // and at most
	drawn       = 64  // requests of a step that are drawn; the rest are like them
	retries     = 8
	maxBackoff  = 20e9 // nanoseconds
)

// requests is the time of several, one after another. Each is drawn, up to a
// number from which their mean tells.
func (n *Node) requests(count int64, median, throttled float64) float64 {
	if count <= 0 {
		return 0
	}
	var sum float64
	some := min(count, drawn)
	for range some {
		sum += n.request(median) + n.backoff(median, throttled)
	}
	return sum * (float64(count) / float64(some))
}

// backoff is the time that "slow down" costs: pauses that double, each a try
// that may be refused as well.
func (n *Node) backoff(median, throttled float64) float64 {
	if throttled <= 0 {
		return 0
	}
	var sum float64
	pause := float64(n.model.StoreBackoff)
	for range retries {
		if n.random.Float64() >= throttled {
			break
		}
		sum += pause*(0.5+n.random.Float64()) + median
		pause = min(pause*2, maxBackoff)
	}
	return sum
}
