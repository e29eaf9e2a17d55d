package device

import "time"

// Task is a task to be scheduled: where it runs and how long.
type Task struct {
	Executor int
	Took     time.Duration
}

// Stage is how a stage of tasks went.
type Stage struct {
	Took time.Duration   // from the first launch to the end of the last task
	Busy []time.Duration // of each executor: sum over its cores
}

// Schedule runs the tasks of a stage in order, each on the core of its executor
// that is free first, launched by the driver one after another with dispatch
// between them. Where a task runs is the caller's choice: placement follows the
// state. A task of an executor that is not there runs on the one whose number it
// has modulo executors. Busy lies in memory that is taken over if large enough.
// Executors and cores count as 1 at least.
func Schedule(tasks []Task, executors, cores int, dispatch time.Duration, busy []time.Duration) Stage {
	executors, cores = max(executors, 1), max(cores, 1)
	free := make([]time.Duration, executors*cores) // when each core is
	st := Stage{Busy: cleared(busy, executors)}
	for i, t := range tasks {
		at := t.Executor % executors
		if at < 0 {
			at += executors
		}
		core := earliest(free[at*cores : (at+1)*cores])
		*core = max(*core, time.Duration(i)*dispatch) + t.Took
		st.Busy[at] += t.Took
		st.Took = max(st.Took, *core)
	}
	return st
}

func cleared(d []time.Duration, n int) []time.Duration {
	if cap(d) < n {
		return make([]time.Duration, n)
	}
	d = d[:n]
	clear(d)
	return d
}

func earliest(free []time.Duration) *time.Duration {
	first := &free[0]
	for i := range free {
		if free[i] < *first {
			first = &free[i]
		}
	}
	return first
}
