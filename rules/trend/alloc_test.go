package trend

import "testing"

func TestStatisticsWorkWithoutAllocation(t *testing.T) {
	x, y, other, batch, at := benchSeries(240)
	s, spikes := new(Scratch), make([]int, 0, 240)
	before, recent := SplitRecent(y, 40, 10)
	c := NewCUSUM(DefaultCUSUM())
	for name, work := range map[string]func(){
		"baseline":     func() { c.Freeze(s.Baseline(y, 0)) },
		"cusum":        func() { c.Push(1, 2); benchSink += c.Alarm().Sum },
		"rank sum":     func() { s.RankSum(before, recent, RankSumOptions{}) },
		"locate":       func() { s.Locate(x, y) },
		"spikes":       func() { s.Spikes(y, SpikeOptions{}, spikes[:0]) },
		"periodicity":  func() { s.Periodicity(batch, at, y, SpikeOptions{}) },
		"partial rank": func() { s.PartialRank(y, other, x, nil, PartialOptions{}) },
		"elasticity":   func() { s.Elasticity(y, other) },
		"forecast":     func() { s.TimeToLimit(x, y, 10, LimitOptions{}) },
	} {
		work()
		if allocs := testing.AllocsPerRun(20, work); allocs != 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}
