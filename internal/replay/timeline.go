package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stategauge/stategauge/event"
)

// happening is one entry of a timeline: an alert that fires, or that is over.
type happening struct {
	ms   int64
	over bool
	e    *Episode
}

// writeTimeline tells in the order of time what fired and what resolved.
func (b *Backtested) writeTimeline(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "%d events of %s", b.Events, counted(b.Queries, "query", "queries"))
	if b.FromMs > 0 {
		fmt.Fprintf(&t, ", %s to %s", moment(b.FromMs), moment(b.ToMs))
	}
	t.WriteByte('\n')
	if n := len(b.Rejects) + b.Hidden; n > 0 {
		fmt.Fprintf(&t, "%s could not be used, the first: %s:%d: %s\n", counted(n, "piece", "pieces"), b.Rejects[0].File, b.Rejects[0].Line, b.Rejects[0].Reason)
	}
	for _, h := range b.happenings() {
		t.WriteByte('\n')
		h.write(&t, b.ToMs)
	}
	t.WriteByte('\n')
	t.WriteString(b.total())
	if _, err := io.WriteString(w, t.String()); err != nil {
		return fmt.Errorf("write the timeline: %w", err)
	}
	return nil
}

func (b *Backtested) happenings() []happening {
	var out []happening
	for _, e := range b.Episodes {
		out = append(out, happening{e.FiringMs, false, e})
		if e.ResolvedMs != event.Absent {
			out = append(out, happening{e.ResolvedMs, true, e})
		}
	}
	slices.SortStableFunc(out, func(x, y happening) int { return cmp.Compare(x.ms, y.ms) })
	return out
}

func (h *happening) write(t *strings.Builder, nowMs int64) {
	e := h.e
	if h.over {
		fmt.Fprintf(t, "%s  resolved  %s: %s\n", moment(h.ms), e.title(), cmp.Or(e.Reason, "it was over"))
		detail(t, "after %s, at batch %d", e.lasted(nowMs), e.LastBatch)
		return
	}
	fmt.Fprintf(t, "%s  %-8s  %s\n", moment(h.ms), e.Severity, e.title())
	if s := e.Annotations["summary"]; s != "" {
		detail(t, "%s", oneLine(s))
	}
	began := ""
	if e.FirstBatch != nil {
		began = fmt.Sprintf(", began at batch %d", *e.FirstBatch)
	}
	detail(t, "fired at batch %d%s, pending for %s", e.FiringBatch, began, time.Duration(e.FiringMs-e.PendingMs)*time.Millisecond)
	for _, key := range []string{"cause", "fix", "runbook_url"} {
		if s := e.Annotations[key]; s != "" {
			detail(t, "%s: %s", strings.TrimSuffix(key, "_url"), oneLine(s))
		}
	}
	if e.InhibitedBy != nil {
		detail(t, "inhibited: %s speaks for it, nothing was sent", *e.InhibitedBy)
	}
	if e.ResolvedMs == event.Absent {
		detail(t, "still firing at the newest event, for %s by then", e.lasted(nowMs))
	}
}

// title says which alert it is and what it is about.
func (e *Episode) title() string {
	about := e.Query()
	if op := e.Labels["operator"]; op != "" {
		about += fmt.Sprintf(", %s (operator %s)", op, e.Labels["operator_index"])
	}
	if about == "" {
		about = cmp.Or(e.Labels["spark_cluster"], "all queries")
	}
	return fmt.Sprintf("%s of %s", e.Alert, about)
}

func detail(t *strings.Builder, format string, args ...any) {
	t.WriteString("                      " + fmt.Sprintf(format, args...) + "\n")
}

// total sums up, the worst first.
func (b *Backtested) total() string {
	count := map[string]int{}
	for _, e := range b.Episodes {
		count[e.Severity]++
	}
	var parts []string
	for _, s := range []string{page, ticket, info} {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[s], s))
		}
		delete(count, s)
	}
	for s, n := range count {
		parts = append(parts, fmt.Sprintf("%d %s", n, cmp.Or(s, "without severity")))
	}
	said := "nothing fired"
	if len(parts) > 0 {
		said = counted(len(b.Episodes), "alert", "alerts") + ": " + strings.Join(parts, ", ")
	}
	if b.Inhibited > 0 {
		said += fmt.Sprintf("; %d inhibited by the alert of their cause", b.Inhibited)
	}
	return said + "\n"
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }
