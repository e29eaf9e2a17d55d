package app

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/history"
	"github.com/stategauge/stategauge/history/rollup"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules"
)

// maxPoints is how many points one answer holds.
const maxPoints = 11_000

// pointJSON is one batch, or what the batches of a step have in common.
type pointJSON struct {
	At       time.Time `json:"at"`
	QueryID  string    `json:"query_id,omitempty"` // where several checkpoints of one name are asked about
	Operator *int      `json:"operator_index,omitempty"`
	Batch    *int64    `json:"batch,omitempty"`
	Value    *float64  `json:"value,omitempty"`

	Min    *float64 `json:"min,omitempty"`
	Median *float64 `json:"median,omitempty"`
	P95    *float64 `json:"p95,omitempty"`
	Max    *float64 `json:"max,omitempty"`
	Last   *float64 `json:"last,omitempty"`
	Count  int      `json:"count,omitempty"`
}

type historyJSON struct {
	QueryID   string      `json:"query_id,omitempty"`
	QueryName string      `json:"query_name,omitempty"`
	Signal    string      `json:"signal"`
	Unit      string      `json:"unit"`
	From      time.Time   `json:"from"`
	To        time.Time   `json:"to"`
	Step      float64     `json:"step_seconds"` // 0: one point for each batch
	Source    string      `json:"source"`       // batches or hours
	Points    []pointJSON `json:"points"`
}

// historyAsked is a request of /api/v1/query_history, checked.
type historyAsked struct {
	query        event.QueryID
	lineage      string
	measure      *rules.Measure
	fromMs, toMs int64
	stepMs       int64
}

// serveHistory answers with a signal of a query over time: batch by batch, or in
// steps; steps of an hour and more come from the hourly summaries, which last longer
// than the batches.
func (a *App) serveHistory(w http.ResponseWriter, r *http.Request) {
	if a.journal == nil {
		refuse(w, http.StatusNotFound, errors.New("nothing is kept: the daemon runs without --storage.path"))
		return
	}
	q, err := a.historyOf(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	out, err := a.journal.look(q)
	if errors.Is(err, errTooManyPoints) {
		refuse(w, http.StatusBadRequest, errTooManyPoints)
		return
	}
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, http.StatusOK, reply{Status: "success", Data: out})
}

// refusalJSON is an error in the form of Prometheus' API.
type refusalJSON struct {
	Status string `json:"status"`
	Error  string `json:"error"`
}

func refuse(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, refusalJSON{"error", err.Error()})
}

var errTooManyPoints = fmt.Errorf("more than %d points: ask for a shorter time or a longer step", maxPoints)

func (a *App) historyOf(v url.Values) (q historyAsked, err error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	q.query, q.lineage = event.QueryID(v.Get("query_id")), v.Get("query_name")
	if (q.query == "") == (q.lineage == "") {
		fault("give query_id or query_name")
	}
	if q.measure = a.measure(v.Get("signal")); q.measure == nil {
		fault("signal %q is not known%s", v.Get("signal"), a.nearSignal(v.Get("signal")))
	}
	now := a.opts.Now()
	to, err := timeParam(v.Get("to"), now)
	if err != nil {
		fault("to: %w", err)
	}
	from, err := timeParam(v.Get("from"), to.Add(-24*time.Hour))
	if err != nil {
		fault("from: %w", err)
	}
	if !from.Before(to) {
		fault("from (%s) must be before to (%s)", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	if text := v.Get("step"); text != "" {
		step, err := stepParam(text)
		if err != nil {
			fault("step: %w", err)
		}
		q.stepMs = step.Milliseconds()
	}
	q.fromMs, q.toMs = from.UnixMilli(), to.UnixMilli()
	return q, errors.Join(faults...)
}

// timeParam reads RFC 3339 or Unix seconds, as Prometheus' API does.
func timeParam(text string, def time.Time) (time.Time, error) {
	if text == "" {
		return def, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > -1e11 && seconds < 1e11 {
		return time.UnixMilli(int64(seconds * 1000)), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return def, fmt.Errorf("%q is neither a time such as 2026-01-31T18:00:00Z nor Unix seconds", text)
	}
	return t, nil
}

// stepParam reads a duration or seconds.
func stepParam(text string) (time.Duration, error) {
	d, err := strictyaml.ParseDuration(text)
	if seconds, bad := strconv.ParseFloat(text, 64); bad == nil && seconds < 1e9 {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is neither a duration such as 1h nor seconds", text)
	}
	return d, nil
}

func (a *App) measure(name string) *rules.Measure {
	all := *a.measures.Load()
	for i := range all {
		if all[i].Name == name {
			return &all[i]
		}
	}
	return nil
}

func (a *App) nearSignal(name string) string {
	var names []string
	for _, m := range *a.measures.Load() {
		names = append(names, m.Name)
	}
	return strictyaml.DidYouMean(name, names)
}

// look reads what was asked for.
func (j *journal) look(q historyAsked) (*historyJSON, error) {
	out := &historyJSON{
		QueryID: string(q.query), QueryName: q.lineage, Signal: q.measure.Name, Unit: q.measure.Unit,
		From: time.UnixMilli(q.fromMs).UTC(), To: time.UnixMilli(q.toMs).UTC(), Step: float64(q.stepMs) / 1000, Points: []pointJSON{},
	}
	of, err := j.queriesOf(&q)
	if err != nil {
		return nil, err
	}
	read := j.batches
	out.Source = "batches"
	if q.stepMs >= rollup.HourMs {
		read, out.Source = j.summaries, "hours"
	}
	for _, info := range of {
		points, err := read(q, info)
		if err != nil {
			return nil, err
		}
		for i := range points {
			if len(of) > 1 {
				points[i].QueryID = string(info.ID)
			}
		}
		if out.Points = append(out.Points, points...); len(out.Points) > maxPoints {
			return nil, errTooManyPoints
		}
	}
	return out, nil
}

// queriesOf are the queries of a request that history knows.
func (j *journal) queriesOf(q *historyAsked) (out []history.QueryInfo, err error) {
	all, err := j.store.Queries()
	for _, info := range all {
		if q.query != "" && info.ID == q.query || q.lineage != "" && info.Lineage == q.lineage {
			out = append(out, info)
		}
	}
	return out, err
}

// batches reads a query batch by batch; in steps where there is one.
func (j *journal) batches(q historyAsked, info history.QueryInfo) (out []pointJSON, err error) {
	steps := stepper{stepMs: q.stepMs, fromMs: q.fromMs, open: map[int]*openStep{}}
	err = eachBatch(j.store, j.words, info.ID, q.fromMs, q.toMs, func(u *event.Update) error {
		b := u.Event.Batch
		q.measure.Visit(u, func(operator int, v float64) {
			if q.stepMs > 0 {
				out = steps.add(b.StartMs, operator, v, out)
			} else {
				out = append(out, pointJSON{At: time.UnixMilli(b.StartMs).UTC(), Operator: operatorOf(operator), Batch: batchOf(b.ID), Value: &v})
			}
		})
		if len(out) > maxPoints {
			return errTooManyPoints
		}
		return nil
	})
	return steps.finish(out), err
}

func operatorOf(i int) *int {
	if i < 0 {
		return nil
	}
	return &i
}

// stepper sums up values that come in order of time, operator by operator.
type stepper struct {
	fromMs, stepMs int64
	open           map[int]*openStep
}

type openStep struct {
	startMs int64
	values  []float64
}

func (s *stepper) add(atMs int64, operator int, v float64, out []pointJSON) []pointJSON {
	start := s.fromMs + (atMs-s.fromMs)/s.stepMs*s.stepMs
	o := s.open[operator]
	if o == nil {
		o = &openStep{startMs: start}
		s.open[operator] = o
	}
	if o.startMs != start {
		out = append(out, o.point(operator))
		o.startMs, o.values = start, o.values[:0]
	}
	o.values = append(o.values, v)
	return out
}

func (s *stepper) finish(out []pointJSON) []pointJSON {
	for operator := -1; operator < len(s.open); operator++ {
		if o := s.open[operator]; o != nil {
			out = append(out, o.point(operator))
		}
	}
	return out
}

func (o *openStep) point(operator int) pointJSON {
	h, _ := rollup.Of(o.startMs, o.values)
	return pointOf(&h, operator)
}

func pointOf(h *rollup.Hour, operator int) pointJSON {
	c := *h
	return pointJSON{
		At: time.UnixMilli(h.StartMs).UTC(), Operator: operatorOf(operator),
		Min: &c.Min, Median: &c.Median, P95: &c.P95, Max: &c.Max, Last: &c.Last, Count: h.Count,
	}
}

// maxOperators bounds the operators that are looked for in the summaries.
const maxOperators = 64

// summaries reads the hours of a query, put together in steps.
func (j *journal) summaries(q historyAsked, info history.QueryInfo) (out []pointJSON, err error) {
	first, last := -1, 0
	if q.measure.Of != rules.OfQuery {
		first, last = 0, maxOperators
	}
	for operator := first; operator < last; operator++ {
		var hours []rollup.Hour
		err := j.store.ReadHours(info.Lineage, string(info.ID), signalKey(q.measure.Name, operator), rollup.Start(q.fromMs), q.toMs, func(_ string, h history.Hour) error {
			got, err := rollup.Decode(h.Body)
			hours = append(hours, got)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(hours) == 0 && operator > 0 {
			break
		}
		for _, h := range rollup.Merge(hours, rollup.Start(q.fromMs), q.stepMs, nil) {
			out = append(out, pointOf(&h, operator))
		}
	}
	return out, nil
}
