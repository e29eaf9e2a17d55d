package fidelity

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// twin is what the template needs to write the scenario of a captured run.
type twin struct {
	*Run
	Start, Interval, Delay string
	Executors, Cores       int
	Rows, KeyCount         int64
	Off                    int // seconds without a file
	Conf                   []setting
}

type setting struct{ Key, Value string }

// A key of the captured jobs is the third power of a uniform number times the
// number of keys, which is a Zipf law of exponent 2/3.
var scenarioText = template.Must(template.New("").Parse(`
description: {{.Title}} once more
spark_version: {{.Version}}
start: {{.Start}}
query:
  trigger: {interval: {{.Interval}}}
  plan_time: 15ms
{{- if ne .Job "tws"}}
  watermark_delay: {{.Delay}}
{{- end}}
  operators:
{{- if or (eq .Job "agg") (eq .Job "fail") (eq .Job "foreach") (eq .Job "idle")}}
    - {kind: aggregation, window: 10s, mode: update}
{{- else if eq .Job "dedupe"}}
    - {kind: dedupe{{if .Spec.Pad}}, value_bytes: {{.Spec.Pad}}{{end}}}
{{- else if eq .Job "join"}}
    - {kind: join, bound: 5s}
{{- else}}
    - {kind: transform_with_state, timeout: 15s, language: python}
{{- end}}
  sources:
{{- define "source"}}
    - rows_per_second: {{.Rows}}
      partitions: 2
      row_bytes: 16
      rate: {noise: 0{{if eq .Job "idle"}}, on: {{.Spec.Burst}}s, off: {{.Off}}s{{end}}}
{{- if eq .Job "idle"}}
      kind: files
      keys: {count: {{.KeyCount}}, skew: 0.667}
      late: {typical: 0s}
{{- else}}
      kind: rate
{{- if or (eq .Job "dedupe") (eq .Job "join")}}
      keys: {unique: true}
{{- else}}
      keys: {count: {{.KeyCount}}, skew: 0.667}
{{- end}}
{{- if eq .Job "dedupe"}}
      duplicates: 10%
{{- end}}
{{- end}}
{{- end}}
{{- template "source" .}}
{{- if eq .Job "join"}}{{template "source" .}}{{end}}
{{- if eq .Job "foreach"}}
  sink: {kind: foreach_batch, actions: 2}
{{- end}}
cluster:
  executors: {{.Executors}}
  cores: {{.Cores}}
  memory: 1GiB
  memtable_bytes: 2MiB
  core_speed: 0.6
  disk: {fsync: 12ms}
  store: {latency: 20ms}
conf:
{{- range .Conf}}
  {{.Key}}: "{{.Value}}"
{{- end}}
healthy: true
`))

// Scenario is the captured job in the simulator's own words.
func (r *Run) Scenario() (*scenario.Scenario, error) {
	t := twin{
		Run: r, Start: r.start().UTC().Format("2006-01-02T15:04:05.000Z"), Executors: 1, Cores: 2, Off: max(r.Spec.Pause-1, 0),
		Rows: orElse(r.Spec.Rows, 500), KeyCount: orElse(r.Spec.Keys, 5000),
		Interval: short(orElse(r.Spec.Trigger, "1 second")), Delay: short(orElse(r.Spec.Delay, ordinaryDelay(r.Job))),
	}
	if strings.HasPrefix(r.Spec.Master, "local-cluster[2,1,") {
		t.Executors, t.Cores = 2, 1
	}
	conf := r.Legs[0].Conf
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		if strings.HasPrefix(key, "spark.sql.streaming.stateStore.") || key == "spark.sql.shuffle.partitions" {
			t.Conf = append(t.Conf, setting{key, conf[key]})
		}
	}
	var text strings.Builder
	if err := scenarioText.Execute(&text, &t); err != nil {
		return nil, fmt.Errorf("scenario of %s: %w", r.Title(), err)
	}
	sc, err := scenario.Load(r.Name+".yml", []byte(text.String()))
	if err != nil {
		return nil, fmt.Errorf("scenario of %s: %w", r.Title(), err)
	}
	r.delay(sc)
	return sc, nil
}

// delay makes rows late as the captured jobs do behind their rate source, whose
// own rows never are.
func (r *Run) delay(sc *scenario.Scenario) {
	for i := range sc.Query.Sources {
		if s := &sc.Query.Sources[i]; s.Kind == "rate" {
			s.Late.Share = strictyaml.Percent(1 / float64(orElse(r.Spec.Late, 500)))
			s.Late.By = strictyaml.Duration(30 * time.Second)
		}
	}
}

func ordinaryDelay(job string) string {
	if job == "dedupe" {
		return "20 seconds"
	}
	return "10 seconds"
}

// short makes "20 seconds" a duration of the scenario's kind.
func short(words string) string {
	n, _, _ := strings.Cut(words, " ")
	return n + "s"
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// start is when the input begins: when the first file was written, or when the
// clock of the rate source was set, which the event times and the offset of a
// batch tell.
func (r *Run) start() time.Time {
	for i := range r.Batches {
		v := r.Batches[i].Values
		first, ok := v["eventTime.min"]
		switch {
		case !ok:
		case r.Job == "idle":
			return time.UnixMilli(int64(first))
		default:
			between := 1000 / float64(orElse(r.Spec.Rows, 500))
			return time.UnixMilli(int64(v["eventTime.max"] + between - 1000*v["sources.0.endOffset"]))
		}
	}
	return time.UnixMilli(r.Batches[0].StartMs)
}

// pace tells the simulator when each batch ran and what befell the query.
func (r *Run) pace(i int64) (simulator.Pace, bool) {
	if i < 0 || i >= int64(r.Played) {
		return simulator.Pace{}, false
	}
	b := &r.Batches[i]
	p := simulator.Pace{StartMs: b.StartMs, DurationMs: b.DurationMs, Rows: b.sourceRows(orElse(r.Spec.Rows, 500))}
	if i > 0 && r.Batches[i-1].RunID != b.RunID {
		p.NewRun, p.Planned = true, !b.has("durationMs.walCommit")
	}
	for _, f := range r.Legs[0].Facts {
		if f.What == "executor killed" && f.BatchID+1 == b.ID {
			p.LoseExecutors++
		}
	}
	return p, true
}

// Play lets the simulator run the captured job and returns its batches.
func (r *Run) Play(seed uint64) (out []Batch, err error) {
	sc, err := r.Scenario()
	if err != nil {
		return nil, err
	}
	s, err := simulator.New(sc, simulator.Options{Seed: seed, Pace: r.pace})
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", r.Title(), err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for {
		m, err := s.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", r.Title(), err)
		}
		b, ok, err := parseBatch(m.Data)
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", r.Title(), err)
		}
		if ok {
			out = append(out, b)
		}
	}
}
