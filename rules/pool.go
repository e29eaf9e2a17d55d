package rules

// weighed is a ratio and how much it counts.
type weighed struct{ value, weight float32 }

// pool gathers ratios of few events.
type pool struct {
	spec *pooledSpec
	ring []weighed
	seen int
}

// push takes in a batch; one whose weight is unknown or nothing does not count.
func (p *pool) push(v, weight float64) {
	if !(weight > 0 && weight <= most) {
		return
	}
	p.ring[p.seen%len(p.ring)] = weighed{float32(v), float32(weight)}
	p.seen++
}

// mean is the weighted mean of the newest batches that weigh enough together, and
// whether there are any.
func (p *pool) mean() (float64, bool) {
	sum, weight := 0.0, 0.0
	for back := 1; back <= min(p.seen, len(p.ring)); back++ {
		w := p.ring[(p.seen-back)%len(p.ring)]
		sum += float64(w.value) * float64(w.weight)
		if weight += float64(w.weight); weight >= float64(p.spec.AtLeast) {
			return sum / weight, true
		}
	}
	return 0, false
}

// weight is what the pool weighs in all.
func (p *pool) weight() float64 {
	sum := 0.0
	for _, w := range p.ring[:min(p.seen, len(p.ring))] {
		sum += float64(w.weight)
	}
	return sum
}
