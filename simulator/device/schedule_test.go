package device

import (
	"slices"
	"testing"
	"time"
)

func TestScheduleFillsTheCoresOfEachExecutor(t *testing.T) {
	f := func(what string, tasks []Task, executors, cores int, dispatch, took time.Duration, busy ...time.Duration) {
		t.Helper()
		got := Schedule(tasks, executors, cores, dispatch, nil)
		if got.Took != took || !slices.Equal(got.Busy, busy) {
			t.Errorf("%s: %v, busy %v; want %v, busy %v", what, got.Took, got.Busy, took, busy)
		}
	}
	f("no task", nil, 2, 2, 0, 0, 0, 0)
	f("one after another on one core", []Task{{0, 3}, {0, 4}}, 1, 1, 0, 7, 7)
	f("at once on two cores", []Task{{0, 3}, {0, 4}}, 1, 2, 0, 4, 7)
	f("at once on two executors", []Task{{0, 3}, {1, 4}}, 2, 1, 0, 4, 3, 4)
	f("where their state lies, though another is idle", []Task{{0, 3}, {0, 4}}, 2, 1, 0, 7, 7, 0)
	f("the core that is free first", []Task{{0, 9}, {0, 2}, {0, 3}, {0, 3}}, 1, 2, 0, 9, 17)
	f("one slow task of many", []Task{{0, 1}, {0, 1}, {0, 20}, {0, 1}}, 1, 2, 0, 21, 23)
	f("launched one after another", []Task{{0, 5}, {1, 5}, {2, 5}}, 3, 1, 2, 9, 5, 5, 5)
	f("an executor that is gone", []Task{{5, 2}, {-1, 2}}, 2, 1, 0, 4, 0, 4)
	f("no executor and no core count as one", []Task{{0, 2}}, 0, 0, 0, 2, 2)
}

func TestScheduleIsNeverShorterThanItsBounds(t *testing.T) {
	n := node(t, DefaultModel(), Noise{}, Name{Seed: 8})
	for range 200 {
		var tasks []Task
		var longest, sum time.Duration
		for i := range 1 + n.random.IntN(60) {
			took := time.Duration(1 + n.random.IntN(1000))
			tasks = append(tasks, Task{Executor: i % 3, Took: took})
			longest, sum = max(longest, took), sum+took
		}
		st := Schedule(tasks, 3, 2, 0, nil)
		if st.Took < longest || st.Took < sum/6 || st.Took > sum {
			t.Fatalf("%d tasks of %v, the longest %v, took %v", len(tasks), sum, longest, st.Took)
		}
	}
}

func TestScheduleTakesOverItsMemory(t *testing.T) {
	busy := []time.Duration{7, 7, 7}
	if got := Schedule([]Task{{0, 1}}, 2, 1, 0, busy); &got.Busy[0] != &busy[0] || got.Busy[1] != 0 {
		t.Errorf("busy %v lies elsewhere", got.Busy)
	}
}

func BenchmarkSchedule200Tasks(b *testing.B) {
	tasks := make([]Task, 200)
	for i := range tasks {
		tasks[i] = Task{Executor: i % 8, Took: time.Duration(i%13) * time.Millisecond}
	}
	var busy []time.Duration
	for b.Loop() {
		busy = Schedule(tasks, 8, 4, time.Millisecond, busy).Busy
	}
}
