package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stategauge/stategauge/event"
)

// Settings of Spark by which a conf outranks what the figures show.
const (
	confChangelog = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
	confBounded   = "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage"
	confMinDeltas = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
)

// query puts the facts into the report's form.
func (f *facts) query() Query {
	st := &f.status
	q := Query{
		ID: string(f.id), Name: st.Query.Name, Application: st.Query.Application, State: st.State.String(),
		Runs: st.Runs, Batches: st.Batches, NoData: int64(f.noData), IdleCopies: st.Idle, Repeats: st.Duplicates,
		Late: st.Late, Missed: st.Missed, Provider: f.provider(), Spark: f.spark(), Databricks: f.databricks,
		Changelog: string(f.changelog()), Bounded: string(f.bounded()),
		Trigger: st.Trigger.String(), First: stamp(f.firstMs), Last: stamp(f.lastMs),
		Duration: f.duration.spread(0.001), InputRows: f.rows.spread(1),
		Phases: f.phaseList(), Operators: []Operator{}, Sources: []Source{}, Notes: f.notes(),
	}
	if st.IntervalMs > 0 {
		q.IntervalSeconds = known(st.IntervalMs / 1000)
	}
	if f.watermarkMs != event.Absent && f.eventMaxMs != event.Absent {
		q.WatermarkLag = known(float64(f.eventMaxMs-f.watermarkMs) / 1000)
	}
	if st.Failure != nil {
		q.Failure = failureText(st.Failure)
	}
	for _, o := range f.operators {
		q.Operators = append(q.Operators, o.report())
	}
	for i, s := range f.sources {
		q.Sources = append(q.Sources, Source{Index: i, Description: s.description, Rows: known(s.rows), Backlog: known(s.backlog)})
	}
	return q
}

func failureText(f *event.Failure) string {
	if f.Class == "" {
		return f.Message
	}
	return f.Class + ": " + f.Message
}

// provider is the state store provider of the query's operators.
func (f *facts) provider() string {
	if len(f.operators) == 0 {
		return "none"
	}
	for _, o := range f.operators {
		if o.provider == event.ProviderRocksDB || o.provider == event.ProviderHDFS {
			return o.provider.String()
		}
	}
	return event.ProviderUnknown.String()
}

// changelog is what the conf says, or else what the operators agree on.
func (f *facts) changelog() setting {
	return f.setting(confChangelog, (*operatorFacts).changelog)
}

func (f *facts) bounded() setting {
	return f.setting(confBounded, (*operatorFacts).bounded)
}

func (f *facts) setting(conf string, of func(*operatorFacts) setting) setting {
	switch f.conf[conf] {
	case "true":
		return on
	case "false":
		return off
	}
	agreed := unknown
	for _, o := range f.operators {
		s := of(o)
		if o.provider != event.ProviderRocksDB || s == unknown {
			continue
		}
		if agreed != unknown && agreed != s {
			return unknown
		}
		agreed = s
	}
	return agreed
}

// phaseList returns the phases of the trigger, largest first.
func (f *facts) phaseList() []Phase {
	out := []Phase{}
	if f.triggerMs <= 0 {
		return out
	}
	add := func(name string, ms float64) {
		if ms > 0 {
			out = append(out, Phase{name, ms / 1000 / float64(f.executed), ms / f.triggerMs})
		}
	}
	for i, ms := range f.phases {
		if id := event.FirstPhase + event.MetricID(i); id != event.DurationTriggerExecution {
			add(phaseName(id), ms)
		}
	}
	for _, kv := range f.more {
		add(kv.Key, kv.Value)
	}
	add("unaccounted", f.unaccounted)
	slices.SortStableFunc(out, func(a, b Phase) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// phaseName is Spark's own key below durationMs.
func phaseName(id event.MetricID) string {
	const prefix = "durationMs."
	key := event.Lookup(id).JSON
	if len(key) > len(prefix) && key[:len(prefix)] == prefix {
		return key[len(prefix):]
	}
	return key
}

func (f *operatorFacts) report() Operator {
	o := Operator{
		Index: f.index, Name: f.name, Provider: f.provider.String(),
		Partitions: known(f.partitions), Stores: known(f.stores), Instances: known(f.instances),
		Updated: known(f.updated.mean()), Removed: known(f.removed.mean()),
		UpdateTask: known(f.updateMs.mean() / 1000), RemovalTask: known(f.removeMs.mean() / 1000),
		CommitTask: known(f.commitMs.mean() / 1000), CommitShare: known(f.commitShare()),
		CopiedBytes: known(f.copied.mean()), MissShare: known(f.missShare()), SnapshotLag: known(f.lag),
		WriterStalls: known(f.stall.mean()), Implausible: f.implausible, Commit: []Phase{},
	}
	if f.rows.n > 0 {
		o.RowsFirst, o.Rows = known(f.rows.first), known(f.rows.last)
	}
	if f.memory.n > 0 {
		o.Memory = known(f.memory.last)
	}
	if f.sst.n > 0 {
		o.SST = known(f.sst.last)
	}
	if f.updated.n > 0 {
		o.Dropped = known(f.dropped)
	}
	total := 0.0
	for i := range f.commit {
		total += f.commit[i].sum
	}
	for i := range f.commit {
		if s := &f.commit[i]; s.n > 0 {
			share := 0.0
			if total > 0 {
				share = s.sum / total
			}
			o.Commit = append(o.Commit, Phase{commitPhases[i].name, s.mean() / 1000, share})
		}
	}
	return o
}

// notes says what to know when reading the figures.
func (f *facts) notes() []string {
	notes := []string{}
	add := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	st := &f.status
	add(f.executed == 0 && f.idleCopies > 0, "no batch ran: every progress is the copy that an idle query repeats, so its times and rows are those of an earlier batch")
	add(st.Duplicates > 0, "%s repeats of batches already counted, as polling lastProgress gives", whole(float64(st.Duplicates)))
	add(st.Late > 0, "%s events of an older run arrived after a newer one and were not counted", whole(float64(st.Late)))
	add(f.executed > 0 && f.executed < 20, "%s: too few to judge trends", batches(int64(f.executed)))
	add(f.executed > 0 && len(f.operators) > 0 && f.operators[0].commitMs.n == 0, "this Spark does not say where state spends its time; 3.2 and later do")
	for _, o := range f.operators {
		add(o.hidden(), "%s: all commit phases read 0 while state was updated: asynchronous checkpointing hides them", o.title())
		add(o.implausible > 0, "%s: %s values that cannot be true were left out", o.title(), whole(float64(o.implausible)))
		add(o.changelog() == on && o.equalPairs > 0, "%s: copied bytes repeat the last snapshot until the next one", o.title())
		add(o.stores > 0 && o.stores < o.instances, "%s: Spark reports %s of its %s stores", o.title(), whole(o.stores), whole(o.instances))
	}
	return notes
}

// hidden reports commits that leave no trace in the figures.
func (f *operatorFacts) hidden() bool {
	if f.provider != event.ProviderRocksDB || f.updatedBatch == 0 || f.commit[commitFileSync].n == 0 {
		return false
	}
	for i := range f.commit {
		if f.commit[i].sum > 0 {
			return false
		}
	}
	return !math.IsNaN(f.updated.mean())
}
