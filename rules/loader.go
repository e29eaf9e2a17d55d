package rules

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Load compiles rule files into a Pack. Files share their signals; names of
// signals are unique over all of them, names of groups within a file. The error
// is a strictyaml.Faults with everything that is wrong in any file.
func Load(files ...Source) (*Pack, error) {
	b := &packLoader{signals: map[string]*signalState{}}
	for i := range files {
		b.read(files[i])
	}
	for _, l := range b.files {
		l.compileSignals()
	}
	p := &Pack{}
	for _, l := range b.files {
		l.compileGroups(p)
	}
	b.compileInhibits(p)
	b.checkFleets(p)
	if n := len(p.rules); n > maxRules {
		b.faults = append(b.faults, strictyaml.Fault{File: "rules", Err: fmt.Errorf("%d rules, more than the %d allowed", n, maxRules)})
	}
	if err := b.faults.Err(); err != nil {
		return nil, err
	}
	p.places = b.placed()
	return p, nil
}

// Check reports everything wrong with one rule file, nil if nothing is. name is
// how messages call it.
func Check(name string, data []byte) error {
	_, err := Load(Source{Name: name, Data: data})
	return err
}

// packLoader gathers the files of a pack.
type packLoader struct {
	files   []*loader
	signals map[string]*signalState
	faults  strictyaml.Faults
	places  *places // of expressions
}

// loader compiles one file.
type loader struct {
	*packLoader
	file ruleFile
	pos  *strictyaml.Positions
}

// signalState is a signal that may not be compiled yet: signals refer to each
// other in any order.
type signalState struct {
	owner     *loader
	spec      signalSpec
	name      string
	compiled  *signal
	compiling bool
	failed    bool
}

func (b *packLoader) fault(f strictyaml.Fault) { b.faults = append(b.faults, f) }

func (b *packLoader) read(f Source) {
	l := &loader{packLoader: b}
	pos, err := strictyaml.DecodeAt(f.Name, f.Data, &l.file)
	l.pos = pos
	var fs strictyaml.Faults
	if errors.As(err, &fs) {
		b.faults = append(b.faults, fs...)
	} else if err != nil {
		b.fault(pos.Faultf("", "%w", err))
	}
	b.files = append(b.files, l)
	for _, name := range slices.Sorted(maps.Keys(l.file.Signals)) {
		l.declare(name)
	}
}

// declare makes a signal known.
func (l *loader) declare(name string) {
	path := strictyaml.Path("signals", name)
	spec := l.file.Signals[name]
	switch other, taken := l.signals[name]; {
	case !signalName.MatchString(name):
		l.fault(l.pos.Faultf(path, "signal %q: a name has letters, digits and underscores only", name))
	case taken:
		l.fault(l.pos.Faultf(path, "signal %q is defined in %s already", name, other.owner.pos.File()))
	case isBuiltInName(name):
		l.fault(l.pos.Faultf(path, "signal %q: the name is taken by a figure of Spark's or a derived one", name))
	case len(l.signals) >= maxSignals:
		l.fault(l.pos.Faultf(path, "signal %q: more than %d signals", name, maxSignals))
	default:
		l.signals[name] = &signalState{owner: l, spec: spec, name: name}
	}
}

func isBuiltInName(name string) bool {
	_, ok := leaves[name]
	return ok || name == "min" || name == "max"
}

func (l *loader) compileSignals() {
	for _, name := range slices.Sorted(maps.Keys(l.file.Signals)) {
		if st := l.signals[name]; st != nil && st.owner == l {
			_, _ = st.compile() // what is wrong stands in the list of faults
		}
	}
}

var errCycle = errors.New("it refers to itself")

// compile compiles the signal, and before it those that it refers to.
func (st *signalState) compile() (*signal, error) {
	switch {
	case st.compiling:
		return nil, errCycle
	case st.compiled != nil:
		return st.compiled, nil
	case st.failed:
		return nil, errBroken
	}
	st.compiling = true
	defer func() { st.compiling = false }()
	if s := st.build(); s != nil {
		st.compiled = s
		return s, nil
	}
	st.failed = true
	return nil, errBroken
}

var errBroken = errors.New("it has faults of its own")

func (st *signalState) build() *signal {
	l, path := st.owner, strictyaml.Path("signals", st.name)
	before := len(l.faults)
	s := &signal{name: st.name, unit: st.spec.Unit}
	switch st.spec.Of {
	case "operator":
		s.of = OfOperator
	case "query":
	case "":
		l.fault(l.pos.Faultf(path, "signal %q needs of: query or operator", st.name))
	default:
		l.fault(l.pos.Faultf(path+".of", "%w", oneOf("of", st.spec.Of, []string{"query", "operator"})))
	}
	if s.unit == "" {
		s.unit = "count"
	}
	if err := oneOf("unit", s.unit, units); err != nil {
		l.fault(l.pos.Faultf(path+".unit", "%w", err))
	}
	s.expr = l.expression(st.spec.Value, aNumber, s.of, path+".value")
	if st.spec.When != "" {
		s.when = l.expression(st.spec.When, aTruth, s.of, path+".when")
	}
	if len(l.faults) > before {
		return nil
	}
	return s
}

// expression compiles text that stands at path, and reports its faults there.
func (l *loader) expression(text string, want sort, of SignalOf, path string) *expression {
	sc := &scope{of: of, signal: l.lookup, others: slices.Sorted(maps.Keys(l.signals))}
	x, err := compileExpression(text, want, sc)
	if err == nil {
		l.place(x, x.key)
		return x
	}
	f := l.pos.Faultf(path, "%s: %w", lastKey(path), err)
	var ee *exprError
	if errors.As(err, &ee) && l.pos.Has(path) {
		f.Position = l.pos.Within(path, ee.offset)
	}
	l.fault(f)
	return nil
}

// place gives an expression its place among the pack's different ones.
func (b *packLoader) place(x *expression, key string) {
	p := b.placed()
	if p.of[key] == 0 {
		p.of[key] = len(p.of) + 1
	}
	x.slot, x.places = p.of[key], p
}

// placed are the places given so far.
func (b *packLoader) placed() *places {
	if b.places == nil {
		b.places = &places{of: map[string]int{}}
	}
	return b.places
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// lookup finds a signal by name for an expression.
func (l *loader) lookup(name string) (*signal, bool, error) {
	st, ok := l.signals[name]
	if !ok {
		return nil, false, nil
	}
	s, err := st.compile()
	if err != nil {
		return nil, true, fmt.Errorf("signal %q cannot be used: %w", name, err)
	}
	return s, true, nil
}
