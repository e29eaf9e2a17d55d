package history

import (
	"fmt"
	"io"
	"time"
)

// Report is what a history holds, and what is wrong with it or was lost.
type Report struct {
	Format          uint64 // version of the contents
	Bytes           int64  // size on disk
	NewestStep      uint64
	FirstMs, LastMs int64 // times of the oldest and the newest record, 0 where there is none
	Queries         int64
	Records         int64
	LoggedSteps     int64 // steps that Replay can still give
	Offsets         int64
	States          int64
	Words           int64
	Hours           int64    // summaries
	Faults          []string // damage that was found, or, after a repair, what was lost
	MoreFaults      int64    // beyond those named
	Aside           string   // where a repair has put the broken database; empty: nothing was repaired
}

// maxFaults bounds the list of a report.
const maxFaults = 50

func (r *Report) fault(format string, args ...any) {
	if len(r.Faults) >= maxFaults {
		r.MoreFaults++
		return
	}
	r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
}

// OK reports whether nothing is wrong.
func (r Report) OK() bool { return len(r.Faults) == 0 }

// Write prints the report for people.
func (r Report) Write(w io.Writer) error {
	lines := fmt.Sprintf("format %d, %d bytes, newest step %d\n", r.Format, r.Bytes, r.NewestStep)
	lines += fmt.Sprintf("%d records of %d queries%s\n", r.Records, r.Queries, r.period())
	lines += fmt.Sprintf("%d steps to replay, %d offsets, %d states, %d words, %d hourly summaries\n",
		r.LoggedSteps, r.Offsets, r.States, r.Words, r.Hours)
	for _, fault := range r.Faults {
		lines += "fault: " + fault + "\n"
	}
	if r.MoreFaults > 0 {
		lines += fmt.Sprintf("fault: %d more\n", r.MoreFaults)
	}
	if r.Aside != "" {
		lines += "the broken database was moved to " + r.Aside + "\n"
	}
	_, err := io.WriteString(w, lines)
	return err
}

func (r Report) period() string {
	if r.Records == 0 {
		return ""
	}
	format := func(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") }
	return ", from " + format(r.FirstMs) + " to " + format(r.LastMs) + " UTC"
}
