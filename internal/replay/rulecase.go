package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/collector/decode"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/rules"
	"github.com/stategauge/stategauge/simulator"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/spark"
)

// caseFile is a file of tests for rules.
type caseFile struct {
	// RuleFiles are tested; paths are relative to the file. None: those
	// of CaseOptions.
	RuleFiles []string   `yaml:"rule_files"`
	Tests     []ruleCase `yaml:"tests"`
}

// ruleCase is one test. Exactly one of Scenario, Events and Series says what is
// played.
type ruleCase struct {
	Name     string `yaml:"name"`
	Scenario string `yaml:"scenario"` // name of one that comes with stategauge, or a file
	// Seed, Batches, Size, SparkVersion and Envelope are as for simulate; seed 1 and
	// the scenario's own where they are left out.
	Seed         *uint64    `yaml:"seed"`
	Batches      int64      `yaml:"batches"`
	Size         float64    `yaml:"size"`
	SparkVersion string     `yaml:"spark_version"`
	Envelope     bool       `yaml:"envelope"`
	Events       pathList   `yaml:"events"` // files, folders or histories, relative to the file
	Series       *notedSpec `yaml:"series"`
	// Expect lists alerts that must fire; Never symptoms, alert names or severities
	// that must not, or "others" for whatever is not expected.
	Expect []expected `yaml:"expect"`
	Never  []string   `yaml:"never"`

	play func(ctx context.Context, p *Player) error
}

// pathList is one path or a list of them.
type pathList []string

// UnmarshalYAML takes one path as well as a list.
func (l *pathList) UnmarshalYAML(unmarshal func(any) error) error {
	var shape any
	if err := unmarshal(&shape); err != nil {
		return err
	}
	if _, list := shape.([]any); list {
		return unmarshal((*[]string)(l))
	}
	*l = pathList{""}
	return unmarshal(&(*l)[0])
}

// CaseOptions is what tests of rules need from outside.
type CaseOptions struct {
	// Rules loads rule files; of no files, the built-in rules.
	Rules func(files []string) (*rules.Pack, error)
	// RuleFiles are tested where a test file names none.
	RuleFiles []string
	// Scenario finds the text of a scenario by its name.
	Scenario func(name string) (file string, data []byte, err error)
}

// CaseResult is how one test went.
type CaseResult struct {
	Name string
	Line int
	// Failures says what was not as expected, each several lines; nil: it passed.
	Failures []string
}

// RunCases runs the tests of one file, which is called name in messages. The error
// is about the file or what it names; failed tests are no error.
func RunCases(ctx context.Context, name string, data []byte, o CaseOptions) ([]CaseResult, error) {
	f, pack, pos, err := loadCases(name, data, o)
	if err != nil {
		return nil, err
	}
	var out []CaseResult
	for i := range f.Tests {
		r, err := f.Tests[i].run(ctx, pack, pos, i)
		if err != nil {
			return out, fmt.Errorf("%s: test %q: %w", name, f.Tests[i].Name, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// CheckCases finds every fault of a test file without running it.
func CheckCases(name string, data []byte, o CaseOptions) error {
	_, _, _, err := loadCases(name, data, o)
	return err
}

func loadCases(name string, data []byte, o CaseOptions) (*caseFile, *rules.Pack, *strictyaml.Positions, error) {
	f := &caseFile{}
	pos, err := strictyaml.DecodeAt(name, data, f)
	if err != nil {
		return nil, nil, nil, err
	}
	dir := filepath.Dir(name)
	for i := range f.RuleFiles {
		f.RuleFiles[i] = beside(dir, f.RuleFiles[i])
	}
	if len(f.RuleFiles) == 0 {
		f.RuleFiles = o.RuleFiles
	}
	pack, err := o.Rules(f.RuleFiles)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("rules: %w", err)
	}
	return f, pack, pos, f.prepare(pos, dir, pack, o)
}

func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// inputBeside is beside for what a replay reads.
func inputBeside(dir, path string) string {
	if history, ok := strings.CutPrefix(path, HistoryPrefix); ok {
		return HistoryPrefix + beside(dir, history)
	}
	return beside(dir, path)
}

// prepare checks every test and says how each is played.
func (f *caseFile) prepare(pos *strictyaml.Positions, dir string, pack *rules.Pack, o CaseOptions) error {
	var faults strictyaml.Faults
	if len(f.Tests) == 0 {
		faults = append(faults, pos.Faultf("tests", "there are no tests"))
	}
	words := wordsOf(pack)
	for i := range f.Tests {
		t, path := &f.Tests[i], fmt.Sprintf("tests[%d]", i)
		if t.Name == "" {
			t.Name = fmt.Sprintf("test %d", i+1)
		}
		faults = append(faults, t.source(pos, path, dir, o)...)
		faults = append(faults, t.check(pos, path, words)...)
	}
	return faults.Err()
}

// source compiles what is played.
func (t *ruleCase) source(pos *strictyaml.Positions, path, dir string, o CaseOptions) strictyaml.Faults {
	given := 0
	for _, is := range []bool{t.Scenario != "", len(t.Events) > 0, t.Series != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return strictyaml.Faults{pos.Faultf(path, "test %q needs one of scenario, events and series", t.Name)}
	}
	switch {
	case t.Series != nil:
		n, faults := t.Series.compile(pos, path+".series")
		t.play = func(_ context.Context, p *Player) error { n.play(p); return nil }
		return faults
	case t.Scenario != "":
		return t.scenario(pos, path, dir, o)
	}
	for i := range t.Events {
		t.Events[i] = inputBeside(dir, t.Events[i])
	}
	t.play = t.playFiles
	return nil
}

func (t *ruleCase) playFiles(ctx context.Context, p *Player) error {
	in, err := Merge(ctx, Inputs{Paths: t.Events}, func(it *collector.Item) { p.Play(it.Event, it.Origin) })
	if err == nil && in.Events == 0 {
		err = errors.New("the files hold no event")
	}
	return err
}

// scenario readies a simulation.
func (t *ruleCase) scenario(pos *strictyaml.Positions, path, dir string, o CaseOptions) strictyaml.Faults {
	fault := func(key string, err error) strictyaml.Faults {
		return strictyaml.Faults{pos.Faultf(path+"."+key, "%s: %w", key, err)}
	}
	name := t.Scenario
	if filepath.Ext(name) != "" {
		name = beside(dir, name)
	}
	file, data, err := o.Scenario(name)
	if err != nil {
		return fault("scenario", err)
	}
	sc, err := scenario.Load(file, data)
	if err != nil {
		return fault("scenario", err)
	}
	so := simulator.Options{Seed: 1, Batches: t.Batches, Size: t.Size, Envelope: t.Envelope}
	if t.Seed != nil {
		so.Seed = *t.Seed
	}
	if t.SparkVersion != "" {
		if so.Version, err = spark.ParseVersion(t.SparkVersion); err != nil {
			return fault("spark_version", err)
		}
	}
	t.play = func(ctx context.Context, p *Player) error { return playScenario(ctx, p, sc, so) }
	return nil
}

// playScenario plays a simulation's events as if they had been read from a file.
func playScenario(ctx context.Context, p *Player, sc *scenario.Scenario, o simulator.Options) error {
	sim, err := simulator.New(sc, o)
	if err != nil {
		return err
	}
	lines := NewLines(p)
	for err == nil {
		var m *simulator.Message
		if m, err = sim.Next(); err == nil {
			err = errors.Join(lines.Play(m.Data), ctx.Err())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, sim.Close())
}

// Lines plays events that come as JSON.
type Lines struct {
	p    *Player
	pool *decode.Pool
	dec  *decode.Decoder
}

// NewLines returns Lines that decode for p.
func NewLines(p *Player) *Lines {
	pool := decode.NewPool(decode.DefaultLimits())
	return &Lines{p: p, pool: pool, dec: pool.Get()}
}

// Play decodes the events of data and plays them. Events before a broken one count.
func (l *Lines) Play(data []byte) (err error) {
	l.dec.Body(data, func(_ int, e *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			err = fmt.Errorf("event %s: %w", bytes.TrimSpace(data[:min(len(data), 60)]), rej.Err)
			return false
		}
		if e != nil {
			l.p.Play(e, event.Origin{})
			l.pool.Release(e)
		}
		return true
	})
	return err
}

// wordsOf are the symptoms, alert names and severities that a pack can fire.
func wordsOf(p *rules.Pack) []string {
	out := []string{others, page, ticket, info}
	st := rules.New(p, rules.Options{}).Status(false)
	for _, g := range st.Groups {
		for i := range g.Rules {
			r := &g.Rules[i]
			out = append(out, r.Alert, r.Labels.Get("symptom"), r.Labels.Get("severity"))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
