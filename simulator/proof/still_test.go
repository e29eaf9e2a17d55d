package proof

import (
	"errors"
	"testing"

	"github.com/stategauge/stategauge/simulator"
)

// withoutFault are scenarios that are played without what they are about: some of
// each kind of statistic and of each way to look at it.
var withoutFault = []string{
	"commit-sync-rising", "checkpoint-store-slow", "writer-stall", "state-reload", "state-reload-hdfs", "cache-misses", "snapshot-lag",
	"watermark-stuck", "late-data-dropped", "falling-behind", "duration-rising", "offsets-slow", "state-evaluated-twice", "freshness",
}

// Without this a row could be true of a scenario whatever its fault does.
func TestStatisticsStandStillWhereTheFaultIsLeftOut(t *testing.T) {
	skipRaced(t)
	all := byScenario()
	for _, name := range withoutFault {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := all[name]
			if len(rows) == 0 {
				t.Fatal("no row of the scenario")
			}
			sc := load(t, name)
			sc.Faults = nil
			for seed := range seeds(t) {
				all := play(t, sc, simulator.Options{Seed: uint64(seed + 1), Batches: lastTurn(rows)})
				for i := range rows {
					for query := range max(1, rows[i].queries) {
						if err := rows[i].check(all, query); !errors.Is(err, errStill) {
							t.Errorf("seed %d, query %d: %s moves without the fault: %v", seed+1, query+1, rows[i].what, err)
						}
					}
				}
			}
		})
	}
}

// eventless are scenarios whose fault is told by events that must be absent
// without it.
var eventless = map[string]bool{
	"state-reload-with-envelope": true, "partitions-changed": true, "checkpoint-shared": true, "rewound": true, "failed": true,
	"stalled-with-envelope": true, "missed-events": true,
}

func TestEventsOfAFaultAreAbsentWhereItIsLeftOut(t *testing.T) {
	skipRaced(t)
	for _, h := range happenings {
		if !eventless[h.scenario] {
			continue
		}
		t.Run(h.scenario, func(t *testing.T) {
			t.Parallel()
			sc := load(t, h.scenario)
			sc.Faults = nil
			for seed := range seeds(t) {
				all := play(t, sc, simulator.Options{Seed: uint64(seed + 1), Batches: h.batches})
				if at := h.at(all); at >= 0 {
					t.Errorf("seed %d: %s at batch %d without the fault", seed+1, h.what, at)
				}
			}
		})
	}
}
