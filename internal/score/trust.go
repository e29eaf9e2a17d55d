package score

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/rules"
)

// RuleRow is a rule of the pack.
type RuleRow struct {
	Alert    string `json:"alert"`
	Symptom  string `json:"symptom"`
	Severity string `json:"severity"`
}

// rulesOf lists the rules of a pack in its order.
func rulesOf(pack *rules.Pack) (out []RuleRow) {
	st := rules.New(pack, rules.Options{}).Status(false)
	for _, g := range st.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			out = append(out, RuleRow{r.Alert, r.Labels.Get("symptom"), r.Labels.Get("severity")})
		}
	}
	return out
}

// The part of a page between these lines is written by PutErrorTable.
const (
	tableBegins = "<!-- measured: begin (make score writes what stands between these lines) -->"
	tableEnds   = "<!-- measured: end -->"
)

// PutErrorTable puts what was measured of each symptom into a Markdown page, in place of
// what stands between its two marks. It is an error if they are not there, once each and in
// order.
func PutErrorTable(page []byte, r *Report) ([]byte, error) {
	begin, end, err := errorTable(page)
	if err != nil {
		return nil, err
	}
	return slices.Concat(page[:begin], []byte("\n\n"+r.errorTables()+"\n"), page[end:]), nil
}

// errorTable is where the part between the marks lies in a page.
func errorTable(page []byte) (begin, end int, err error) {
	for _, mark := range []string{tableBegins, tableEnds} {
		if n := bytes.Count(page, []byte(mark)); n != 1 {
			return 0, 0, fmt.Errorf("the page has the line %q %d times, and must have it once", mark, n)
		}
	}
	begin, end = bytes.Index(page, []byte(tableBegins))+len(tableBegins), bytes.Index(page, []byte(tableEnds))
	if begin > end {
		return 0, 0, errors.New("the mark of the table's end stands before that of its beginning")
	}
	return begin, end, nil
}

// errorTables is what was measured, as Markdown.
func (r *Report) errorTables() string {
	var t strings.Builder
	fmt.Fprintf(&t, "Seeds %s", r.seeds())
	if r.Beside != nil {
		fmt.Fprintf(&t, "; rules were tuned on seeds %s", r.Beside.seeds())
	}
	t.WriteString(".\n")
	sizes := r.sizesPlayed()
	markdown(&t, r.faultRows())
	markdown(&t, r.exposureRows())
	t.WriteString("\nBy symptom: faults found out of those played, at each size; the delay from a fault's first batch to the first alert and to the first ticket or page, in batches, " +
		"the median over scenarios and sizes; alerts in 1,000 healthy query-days at each trigger; and what else was said in the same plays, and how often (\"early\": before the fault).\n")
	markdown(&t, r.symptomRows(sizes))
	return t.String()
}

// markdown writes a table without padding.
func markdown(t *strings.Builder, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	t.WriteByte('\n')
	for i, row := range rows {
		t.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			t.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
}

// sizesPlayed are the sizes of faults, the scenarios' own (0) first.
func (r *Report) sizesPlayed() (out []float64) {
	for _, s := range r.Sizes {
		out = append(out, s.Size)
	}
	slices.Sort(out)
	return out
}

func (r *Report) faultRows() [][]string {
	rows := [][]string{{"faults", "number", "found and rightly named", "and no ticket or page wrong beside", "visible beyond the noise", "found of them"}}
	for _, s := range r.Sizes {
		name := sizeName(s.Size)
		if s.Size == 0 {
			name = "of a size of their own"
		}
		rows = append(rows, []string{name, fmt.Sprint(s.Expected), fmt.Sprintf("%.3f", s.FoundShare), fmt.Sprintf("%.3f", s.RightShare), fmt.Sprint(s.Visible), fmt.Sprintf("%.3f", s.VisibleShare)})
	}
	return rows
}

// made are the exposures to healthy batches that were made.
func (r *Report) made() (out []*Exposure) {
	for i := range r.Healthy {
		if r.Healthy[i].Source == "made" {
			out = append(out, &r.Healthy[i])
		}
	}
	return out
}

func (r *Report) exposureRows() [][]string {
	rows := [][]string{{"healthy queries, trigger", "query-days", "pages per 1,000 (the true rate, at most)", "tickets per 1,000 (at most)", "information per 1,000"}}
	for _, e := range r.made() {
		page, pageBound := e.Rate("page")
		ticket, ticketBound := e.Rate("ticket")
		info, _ := e.Rate("info")
		rows = append(rows, []string{
			shortTrigger(e.Trigger), fmt.Sprintf("%.0f", e.QueryDays), fmt.Sprintf("%.3g (%.2g)", page, pageBound), fmt.Sprintf("%.3g (%.2g)", ticket, ticketBound), fmt.Sprintf("%.3g", info),
		})
	}
	return rows
}

// shortTrigger writes 1m0s as 1m.
func shortTrigger(s string) string {
	if strings.HasSuffix(s, "m0s") {
		return strings.TrimSuffix(s, "0s")
	}
	return s
}

func (r *Report) symptomRows(sizes []float64) [][]string {
	head := []string{"symptom", "rules"}
	for _, size := range sizes {
		head = append(head, sizeName(size))
	}
	head = append(head, "alert", "ticket or page")
	for _, e := range r.made() {
		head = append(head, "healthy, "+shortTrigger(e.Trigger))
	}
	rows := [][]string{append(head, "confused with")}
	for _, symptom := range r.symptoms() {
		rows = append(rows, r.symptomRow(symptom, sizes))
	}
	return rows
}

// symptoms are those that rules of the pack find, sorted; the watchdog is none.
func (r *Report) symptoms() (out []string) {
	for _, rule := range r.Pack {
		if rule.Symptom != "watchdog" && !slices.Contains(out, rule.Symptom) {
			out = append(out, rule.Symptom)
		}
	}
	slices.Sort(out)
	return out
}

func (r *Report) symptomRow(symptom string, sizes []float64) []string {
	row := []string{symptom, r.namesOf(symptom)}
	for _, size := range sizes {
		found, of := 0, 0
		for _, d := range r.Delays {
			if d.Symptom == symptom && d.Size == size {
				found, of = found+d.Found, of+d.Expected
			}
		}
		cell := ""
		if of > 0 {
			cell = fmt.Sprintf("%d/%d", found, of)
		}
		row = append(row, cell)
	}
	row = append(row, r.delayOf(symptom, func(d *DelayRow) float64 { return d.Any }), r.delayOf(symptom, func(d *DelayRow) float64 { return d.Ticket }))
	for _, e := range r.made() {
		n := 0
		for _, rule := range r.Pack {
			if rule.Symptom == symptom {
				n += e.Rules[rule.Alert]
			}
		}
		row = append(row, fmt.Sprintf("%.3g", 1000*float64(n)/e.QueryDays))
	}
	return append(row, r.confused(symptom))
}

// namesOf are the rules of a symptom, each with its severity.
func (r *Report) namesOf(symptom string) string {
	var names []string
	for _, rule := range r.Pack {
		if rule.Symptom == symptom {
			names = append(names, rule.Alert+" ("+rule.Severity+")")
		}
	}
	return strings.Join(names, ", ")
}

// delayOf is the median of a delay over the rows of a symptom, each counting as often as
// the fault was found.
func (r *Report) delayOf(symptom string, of func(*DelayRow) float64) string {
	var all []float64
	for i := range r.Delays {
		d := &r.Delays[i]
		if d.Symptom != symptom || of(d) < 0 {
			continue
		}
		for range d.Found {
			all = append(all, of(d))
		}
	}
	return goalNumber(quantile(all, 0.5))
}

// confused is what nobody ordered in the plays of a symptom.
func (r *Report) confused(symptom string) string {
	wrong := map[string]int{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		if !slices.ContainsFunc(r.Delays, func(d DelayRow) bool { return d.Scenario == s.Scenario && d.Size == s.Size && d.Symptom == symptom }) {
			continue
		}
		for name, n := range s.Wrong {
			wrong[name] += n
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(wrong)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, wrong[name]))
	}
	return strings.Join(parts, ", ")
}
