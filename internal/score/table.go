package score

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// WriteText writes the report as tables that read well in a terminal and as
// Markdown.
func (r *Report) WriteText(w io.Writer) error {
	var t strings.Builder
	fmt.Fprintf(&t, "# How far the rules can be trusted\n\n")
	fmt.Fprintf(&t, "%d rules, seeds %d to %d", r.Rules, r.FirstSeed, r.FirstSeed+uint64(r.Seeds)-1)
	if r.Batches > 0 {
		fmt.Fprintf(&t, ", %d batches of each query", r.Batches)
	}
	t.WriteString(". `stategauge score` makes this page.\n")
	r.beside(&t)
	r.sizes(&t)
	r.healthy(&t)
	r.peers(&t)
	r.goals(&t)
	r.delays(&t)
	r.tradeOff(&t)
	r.scenarios(&t)
	if _, err := io.WriteString(w, t.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// table writes a table; the first row is its head. Numbers stand right.
func table(t *strings.Builder, title, about string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(t, "\n## %s\n\n%s\n\n", title, about)
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell), 3)
		}
	}
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(t, "| %-*s ", width[i], cell)
		}
		t.WriteString("|\n")
		if n > 0 {
			continue
		}
		for i := range row {
			t.WriteString("|" + strings.Repeat("-", width[i]+2))
		}
		t.WriteString("|\n")
	}
}

// beside says what was tuned on what.
func (r *Report) beside(t *strings.Builder) {
	if r.Beside == nil {
		return
	}
	fmt.Fprintf(t, "\nRules were tuned on seeds %s and on noise of that family. Seeds %s and their noise were only ever used for this page; what the tables say without naming seeds is of these.\n", r.Beside.seeds(), r.seeds())
}

func (r *Report) seeds() string {
	return fmt.Sprintf("%d to %d", r.FirstSeed, r.FirstSeed+uint64(r.Seeds)-1)
}

// families are the report and the one beside it.
func (r *Report) families() []*Report {
	if r.Beside == nil {
		return []*Report{r}
	}
	return []*Report{r, r.Beside}
}

func (r *Report) sizes(t *strings.Builder) {
	rows := [][]string{{"seeds", "size", "faults", "found", "found and nothing wrong beside", "share found", "share right", "visible", "share of them found"}}
	for _, f := range r.families() {
		rows = append(rows, f.sizeRows()...)
	}
	table(t, "Faults found and rightly named", "Found means an alert with the right symptom, on the right query, not before the fault. Right means that no ticket and no page was wrong in the same play. "+
		fmt.Sprintf("A fault is not visible where nobody could see it who knew its first batch: in no figure that is judged for its symptom do the %d batches with the whole fault differ from the %d before it, by ranks at %g %% and by %g %% of the level. "+
			"A fault that no size changes is played at its own.", seenBatches, seenBatches, 100*seenConfidence, 100*seenShare), rows)
}

func (r *Report) sizeRows() (rows [][]string) {
	for _, s := range r.Sizes {
		rows = append(rows, []string{
			r.seeds(), sizeName(s.Size), fmt.Sprint(s.Expected), fmt.Sprint(s.Found), fmt.Sprint(s.Right), fmt.Sprintf("%.3f", s.FoundShare), fmt.Sprintf("%.3f", s.RightShare),
			fmt.Sprint(s.Visible), fmt.Sprintf("%.3f", s.VisibleShare),
		})
	}
	return rows
}

func sizeName(size float64) string {
	if size == 0 {
		return "own"
	}
	return fmt.Sprintf("x%g", size)
}

func (r *Report) healthy(t *strings.Builder) {
	rows := [][]string{{"seeds", "source", "trigger", "batches", "query-days", "severity", "alerts", "per 1,000 query-days", "95 % bound", "batches a second and processor"}}
	for _, f := range r.families() {
		rows = append(rows, f.healthyRows()...)
	}
	table(t, "Alerts on healthy queries", "The budget is 1 page per 1,000 query-days and 16.7 tickets (1 per 60 query-days). The bound is Poisson's: the true rate lies below it with 95 % confidence. "+
		fmt.Sprintf("Made are batches put together anew in blocks of %d healthy runs, %d of them recorded from Spark, under noise and a daily load of their own. ", r.Donors, r.Recorded)+
		pausesText()+" That a query runs with Spark's defaults (PostureDefaults) is so, and is said once of each. "+r.listened()+r.cut()+r.fired(), rows)
}

// listened says for how long heartbeats were judged.
func (r *Report) listened() string {
	var days []string
	for _, e := range r.made() {
		if e.ListenedDays > 0 {
			days = append(days, fmt.Sprintf("%.0f query-days at %s (the longest batch: %.0f s)", e.ListenedDays, shortTrigger(e.Trigger), e.LongestSeconds))
		}
	}
	if len(days) == 0 {
		return ""
	}
	return fmt.Sprintf("Half of the clusters made have a listener that sends heartbeats, one in %d at triggers above %d minutes, where heartbeats are most of the work: %s. ", listenShareLong, listenLongMs/60_000, strings.Join(days, ", ")) +
		"Only there are rules with heartbeats put to the test, and for a hung batch they take none that is shorter than their `at_least`. "
}

// cut says where time was short.
func (r *Report) cut() string {
	for i := range r.Healthy {
		if e := &r.Healthy[i]; e.Asked > e.Batches {
			return "Fewer batches were judged than asked for: the time for them was over. "
		}
	}
	return ""
}

func (r *Report) healthyRows() (rows [][]string) {
	for i := range r.Healthy {
		e := &r.Healthy[i]
		speed := ""
		if e.Seconds > 0 {
			speed = fmt.Sprintf("%.0f", float64(e.Batches)/e.Seconds)
		}
		for _, severity := range []string{"page", "ticket", "info"} {
			rate, bound := e.Rate(severity)
			rows = append(rows, []string{r.seeds(), e.Source, e.Trigger, fmt.Sprint(e.Batches), fmt.Sprintf("%.0f", e.QueryDays), severity, fmt.Sprint(e.By[severity]), fmt.Sprintf("%.2f", rate), fmt.Sprintf("%.2f", bound), speed})
		}
	}
	return rows
}

// fired names the rules that fired on healthy batches.
func (r *Report) fired() string {
	var parts []string
	for i := range r.Healthy {
		for _, rule := range slices.Sorted(maps.Keys(r.Healthy[i].Rules)) {
			parts = append(parts, fmt.Sprintf("%s %d (%s, %s)", rule, r.Healthy[i].Rules[rule], r.Healthy[i].Source, r.Healthy[i].Trigger))
		}
	}
	if len(parts) == 0 {
		return "Nothing fired."
	}
	return "What fired: " + strings.Join(parts, ", ") + "."
}

func (r *Report) peers(t *strings.Builder) {
	rows := [][]string{{"rule", "faults", "found", "of them named", "median delay in batches", "fired before the fault", "healthy: per 1,000 query-days"}}
	var all SizeRow
	days, fired := 0.0, 0
	for _, s := range r.Sizes {
		all.Expected, all.Found, all.Right = all.Expected+s.Expected, all.Found+s.Found, all.Right+s.Right
	}
	for i := range r.Healthy {
		days += r.Healthy[i].QueryDays
		fired += r.Healthy[i].By["page"] + r.Healthy[i].By["ticket"]
	}
	ours := "-"
	if days > 0 {
		ours = fmt.Sprintf("%.2f", 1000*float64(fired)/days)
	}
	rows = append(rows, []string{"stategauge (tickets and pages)", fmt.Sprint(all.Expected), fmt.Sprint(all.Found), fmt.Sprint(all.Found), r.medianDelay(), r.early(), ours})
	for _, p := range r.Peers {
		rows = append(rows, []string{p.Rule, fmt.Sprint(p.Expected), fmt.Sprint(p.Found), fmt.Sprint(p.Named), number(p.Delay), fmt.Sprint(p.BeforeFaults), fmt.Sprintf("%.2f", p.HealthyRate)})
	}
	table(t, "What users would write today, on the same events", "Each on the duration of batches and on the upload time per store: 1.5 x the 95th percentile of the first 60 batches; deriv over an hour above 25 % of the mean; predict_linear over an hour, four hours ahead, above twice the mean; the mean of 10 batches above 1.25 x that of 100. All held for 5 batches. Whatever fires on the right query once the fault is there counts as found; it is named where the series is that of the symptom.", rows)
}

func (r *Report) medianDelay() string {
	var all []int64
	for _, d := range r.Delays {
		for range d.Found {
			all = append(all, int64(d.Any))
		}
	}
	return number(median(all))
}

// early counts tickets and pages of the rules that came before their fault.
func (r *Report) early() string {
	n := 0
	for _, s := range r.Scenarios {
		for name, count := range s.Wrong {
			if strings.HasSuffix(name, " early") && !strings.HasPrefix(name, "info ") {
				n += count
			}
		}
	}
	return fmt.Sprint(n)
}

func number(v float64) string {
	if v < 0 {
		return "-"
	}
	return fmt.Sprintf("%g", v)
}

func (r *Report) delays(t *strings.Builder) {
	rows := [][]string{{"scenario", "symptom", "size", "found", "any alert", "ticket or page"}}
	for _, d := range r.Delays {
		if d.Found > 0 {
			rows = append(rows, []string{d.Scenario, d.Symptom, sizeName(d.Size), fmt.Sprint(d.Found), number(d.Any), number(d.Ticket)})
		}
	}
	table(t, "Delay", "Median batches from the fault's first batch to the alert.", rows)
}

func (r *Report) tradeOff(t *strings.Builder) {
	rows := [][]string{{"thresholds", "holds", "faults", "found", "right", "median delay", "healthy query-days", "tickets", "bound per 1,000", "pages", "bound per 1,000"}}
	for _, p := range r.TradeOff {
		rows = append(rows, []string{
			fmt.Sprintf("x%g", p.Threshold), fmt.Sprintf("x%g", p.Hold), fmt.Sprint(p.Expected), fmt.Sprint(p.Found), fmt.Sprint(p.Right), number(p.Delay),
			fmt.Sprintf("%.0f", p.QueryDays), fmt.Sprint(p.Tickets), fmt.Sprintf("%.2f", p.TicketBound), fmt.Sprint(p.Pages), fmt.Sprintf("%.2f", p.PageBound),
		})
	}
	table(t, "Trade-off", "Every threshold of a rise (relative, and the least in the signal's unit) and every hold of the pack scaled, on the smallest faults of the first seed, where thresholds decide, and on healthy batches at one minute.", rows)
}

func (r *Report) scenarios(t *strings.Builder) {
	rows := [][]string{{"scenario", "size", "found", "cannot tell", "clean", "delay", "wrong"}}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		found, undecided := "healthy", ""
		if !s.Healthy {
			found = fmt.Sprintf("%d of %d", s.Found, s.Expected)
		}
		if s.Undecidable > 0 {
			undecided = fmt.Sprintf("%d of %d", s.Undecided, s.Undecidable)
		}
		var wrong []string
		for _, name := range slices.Sorted(maps.Keys(s.Wrong)) {
			wrong = append(wrong, fmt.Sprintf("%s %d", name, s.Wrong[name]))
		}
		rows = append(rows, []string{s.Scenario, sizeName(s.Size), found, undecided, fmt.Sprintf("%d of %d", s.Clean, s.Seeds), number(s.Delay), strings.Join(wrong, ", ")})
	}
	table(t, "Scenario by scenario", "Over all seeds. Clean are the seeds in which nothing was sent that nobody ordered.", rows)
}
