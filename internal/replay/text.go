package replay

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeText writes the report for people: what was read, then query by query what
// it is, where its time goes and what its state does, then what stands out.
func writeText(w io.Writer, r *Report) error {
	p := &printer{w: w}
	p.input(r)
	for i := range r.Queries {
		p.query(&r.Queries[i])
	}
	p.findings(r)
	p.rejected(r)
	return p.err
}

// printer keeps the first error of its writer.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

// lineWidth is where prose is broken, characters.
const lineWidth = 100

// wrapped prints prose behind a prefix, broken into lines that stand under its
// beginning.
func (p *printer) wrapped(prefix, text string) {
	at, out := len(prefix), prefix
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case at+1+n > lineWidth:
			p.line("%s", out)
			out, at = strings.Repeat(" ", len(prefix)), len(prefix)
		default:
			out, at = out+" ", at+1
		}
		out, at = out+word, at+n
	}
	p.line("%s", out)
}

// table prints rows of cells in aligned columns; the first column and text stand
// left, all others right.
func (p *printer) table(rows [][]string) {
	if p.err != nil || len(rows) == 0 {
		return
	}
	tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	widths := make([]int, 0, 8)
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			if i > 0 {
				cell = strings.Repeat(" ", widths[i]-len([]rune(cell))) + cell
			}
			cells[i] = cell
		}
		if _, err := fmt.Fprintln(tw, "  "+strings.Join(cells, "\t")); err != nil && p.err == nil {
			p.err = err
		}
	}
	if err := tw.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) input(r *Report) {
	p.line("Read %s: %s", plural(r.Events, "event"), join(
		some(r.Progress, "progress"), some(r.Started, "started"), some(r.Idle, "idle"),
		some(r.Terminated, "terminated"), some(r.Heartbeats, "heartbeats"), "from "+plural(r.Files, "file"),
		some(r.Skipped, "lines without an event"), some(r.Repaired, "repaired characters"),
		some(len(r.Rejected)+r.RejectedHidden, "rejected"),
	))
}

// some names a number unless it is 0.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return whole(float64(n)) + " " + what
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return whole(float64(n)) + " " + what
}

// join joins what is not empty.
func join(parts ...string) string {
	out := parts[:0:0]
	for _, s := range parts {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func (p *printer) query(q *Query) {
	p.line("")
	name := q.Name
	if name == "" {
		name = "(no name)"
	}
	p.line("QUERY %s  %s", name, q.ID)
	spark := ""
	if q.Spark != "" {
		spark = "Spark " + q.Spark
	}
	if q.Databricks {
		spark = strings.TrimSpace("Databricks " + spark)
	}
	p.line("  %s", join(prefixed("application ", q.Application), spark, "state "+q.State, p.store(q), p.trigger(q)))
	if q.First != "" {
		p.line("  %s to %s", q.First, q.Last)
	}
	p.line("  %s", join(plural(int(q.Runs), "run"), batches(q.Batches), some(int(q.NoData), "without data"),
		some(int(q.IdleCopies), "idle reports"), some(int(q.Repeats), "repeats"), some(int(q.Late), "late"), some(int(q.Missed), "missed")))
	if q.Failure != "" {
		p.line("  died of %s", q.Failure)
	}
	p.spreads(q)
	p.phases(q)
	for i := range q.Operators {
		p.operator(&q.Operators[i])
	}
	p.sources(q)
	for _, n := range q.Notes {
		p.wrapped("  note: ", n)
	}
}

func batches(n int64) string {
	if n == 1 {
		return "1 executed batch"
	}
	return whole(float64(n)) + " executed batches"
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (p *printer) store(q *Query) string {
	if q.Provider != "rocksdb" {
		return map[string]string{"none": "no state", "hdfs": "state on the heap (HDFS provider)", "unknown": "state store unknown"}[q.Provider]
	}
	s := "RocksDB"
	if q.Changelog != string(unknown) {
		s += ", changelog " + q.Changelog
	}
	if q.Bounded != string(unknown) {
		s += ", bounded memory " + q.Bounded
	}
	return s
}

func (p *printer) trigger(q *Query) string {
	switch {
	case q.Trigger == "unknown":
		return ""
	case q.IntervalSeconds != nil:
		return "trigger every " + seconds(*q.IntervalSeconds)
	}
	return "trigger " + q.Trigger
}

func (p *printer) spreads(q *Query) {
	if q.Duration == nil {
		return
	}
	if q.Duration.Count == 1 {
		p.single(q)
		return
	}
	rows := [][]string{{"BATCH", "mean", "median", "p95", "max", "newest"}, spreadRow("duration", q.Duration, seconds)}
	if q.InputRows != nil {
		rows = append(rows, spreadRow("input rows", q.InputRows, count))
	}
	p.table(rows)
}

// single prints the figures of a query of which one batch is known.
func (p *printer) single(q *Query) {
	rows := [][]string{{"BATCH", "value"}, {"duration", seconds(q.Duration.Last)}}
	if q.InputRows != nil {
		rows = append(rows, []string{"input rows", count(q.InputRows.Last)})
	}
	p.table(rows)
}

func spreadRow(name string, s *Spread, format func(float64) string) []string {
	return []string{name, format(s.Mean), format(s.Median), format(s.P95), format(s.Max), format(s.Last)}
}

func (p *printer) phases(q *Query) {
	rows := [][]string{{"PHASE", "mean", "share"}}
	for _, ph := range q.Phases {
		rows = append(rows, []string{ph.Phase, seconds(ph.Mean), percent(ph.Share)})
	}
	if len(rows) > 1 {
		p.table(rows)
	}
}

// operator prints one operator in three lines: state, rows, and where a commit
// spends its time per store.
func (p *printer) operator(o *Operator) {
	name := o.Name
	if name == "" {
		name = "(no name)"
	}
	p.line("  OPERATOR %d %s  %s", o.Index, name, join(
		labelled("stores", o.Instances, whole), labelled("partitions", o.Partitions, whole), lag(o.SnapshotLag)))
	rows := [][]string{{"rows", "updated", "removed", "late", "memory", "SST", "copied", "cache misses"}}
	rows = append(rows, []string{
		figure(o.Rows, count), figure(o.Updated, count), figure(o.Removed, count), figure(o.Dropped, count),
		figure(o.Memory, size), figure(o.SST, size), figure(o.CopiedBytes, size), figure(o.MissShare, percent),
	})
	p.table(dropEmpty(rows))
	tasks := [][]string{{"tasks", "updates", "removals", "commits", "commit share"}, {
		"seconds", figure(o.UpdateTask, seconds), figure(o.RemovalTask, seconds), figure(o.CommitTask, seconds), figure(o.CommitShare, percent),
	}}
	if o.CommitTask != nil || o.UpdateTask != nil {
		p.table(dropEmpty(tasks))
	}
	if len(o.Commit) == 0 {
		return
	}
	head, per := []string{"commit"}, []string{"per store"}
	for _, c := range o.Commit {
		head, per = append(head, c.Phase), append(per, seconds(c.Mean))
	}
	p.table([][]string{head, per})
}

func labelled(name string, v *float64, format func(float64) string) string {
	if v == nil {
		return ""
	}
	return format(*v) + " " + name
}

func lag(v *float64) string {
	if v == nil {
		return ""
	}
	return "oldest snapshot " + whole(*v) + " versions behind"
}

// dropEmpty leaves out the columns in which nothing is known.
func dropEmpty(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for i := range rows[0] {
		empty := true
		for _, row := range rows[1:] {
			empty = empty && row[i] == none
		}
		for k := range rows {
			if !empty {
				out[k] = append(out[k], rows[k][i])
			}
		}
	}
	return out
}

func (p *printer) sources(q *Query) {
	rows := [][]string{{"SOURCE", "rows", "behind"}}
	for _, s := range q.Sources {
		rows = append(rows, []string{clip(s.Description, 72), figure(s.Rows, count), figure(s.Backlog, count)})
	}
	if len(rows) > 1 {
		p.table(rows)
	}
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-3]) + "..."
}

func (p *printer) findings(r *Report) {
	p.line("")
	if len(r.Findings) == 0 {
		p.line("FINDINGS  none")
		return
	}
	p.line("FINDINGS")
	for _, f := range r.Findings {
		where := f.Query
		if f.Operator != "" {
			where += ", " + f.Operator
		}
		p.line("  %-6s %s  %s", f.Severity, f.Symptom, where)
		p.wrapped("         ", f.Summary)
		for _, e := range f.Evidence {
			p.wrapped("         - ", e)
		}
		p.wrapped("         fix: ", f.Fix)
	}
}

func (p *printer) rejected(r *Report) {
	if len(r.Rejected) == 0 {
		return
	}
	p.line("")
	p.line("REJECTED")
	for _, rej := range r.Rejected {
		if rej.Line == 0 {
			p.line("  %s: %s", rej.File, rej.Reason)
			continue
		}
		p.line("  %s:%d: %s", rej.File, rej.Line, rej.Reason)
	}
	if r.RejectedHidden > 0 {
		p.line("  and %s more", whole(float64(r.RejectedHidden)))
	}
}
