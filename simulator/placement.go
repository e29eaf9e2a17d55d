package simulator

import (
	"math/rand/v2"
	"slices"
)

// placement says which executor holds each partition's stores. Tasks go where
// the state is; a partition moves only when its executor is gone, when the
// cluster has another size, or when locality is lost.
type placement struct {
	of []int // partition -> slot of the executor
}

// newPlacement deals partitions out over the executors in turn.
func newPlacement(partitions, executors int) *placement {
	p := &placement{of: make([]int, partitions)}
	for i := range p.of {
		p.of[i] = i % executors
	}
	return p
}

// move is one partition that changed its executor.
type move struct{ partition, from, to int }

// vacate gives the partitions of the slots in gone to whoever has fewest, the
// replacements in those slots included when they are below executors.
func (p *placement) vacate(gone []int, executors int) []move {
	load := p.load(executors, gone)
	var moves []move
	for part, slot := range p.of {
		if slot < executors && !slices.Contains(gone, slot) {
			continue
		}
		to := least(load)
		load[to]++
		p.of[part] = to
		moves = append(moves, move{part, slot, to})
	}
	return moves
}

// spread evens the partitions out over more executors than before.
func (p *placement) spread(executors int) []move {
	load := p.load(executors, nil)
	share := (len(p.of) + executors - 1) / executors
	var moves []move
	for part := len(p.of) - 1; part >= 0; part-- {
		from := p.of[part]
		to := least(load)
		if load[from] <= share || load[to]+1 > load[from]-1 {
			continue
		}
		load[from]--
		load[to]++
		p.of[part] = to
		moves = append(moves, move{part, from, to})
	}
	return moves
}

// scatter moves a share of the partitions to another executor each, drawn from
// rng, as tasks do whose executor is busy for longer than spark.locality.wait.
func (p *placement) scatter(share float64, executors int, rng *rand.Rand) []move {
	if executors < 2 {
		return nil
	}
	var moves []move
	for part, from := range p.of {
		if rng.Float64() >= share {
			continue
		}
		to := (from + 1 + rng.IntN(executors-1)) % executors
		p.of[part] = to
		moves = append(moves, move{part, from, to})
	}
	return moves
}

// load counts the partitions of each executor, those of gone ones left out.
func (p *placement) load(executors int, gone []int) []int {
	load := make([]int, executors)
	for _, slot := range p.of {
		if slot < executors && !slices.Contains(gone, slot) {
			load[slot]++
		}
	}
	return load
}

func least(load []int) int {
	best := 0
	for i, n := range load {
		if n < load[best] {
			best = i
		}
	}
	return best
}
