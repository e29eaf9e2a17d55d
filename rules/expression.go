package rules

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Limits of an expression. It is evaluated for every batch of every query.
const (
	maxExpressionBytes = 2000
	maxExpressionNodes = 200
	maxExpressionDepth = 32
)

// exprError is a fault in an expression, offset bytes into its text.
type exprError struct {
	offset int
	msg    string
}

func (e *exprError) Error() string { return e.msg }

// scope resolves the names of an expression.
type scope struct {
	of SignalOf
	// signal looks up a signal of the rule files; ok is false where there is none.
	signal func(name string) (s *signal, ok bool, err error)
	others []string // names of those signals, for suggestions
}

// sort is the type of an expression's value.
type sort uint8

const (
	aNumber sort = iota
	aTruth
)

func (s sort) String() string {
	if s == aTruth {
		return "a condition"
	}
	return "a number"
}

// compileExpression parses text, checks its types and turns it into a closure.
// The error is an *exprError.
func compileExpression(text string, want sort, sc *scope) (*expression, error) {
	if strings.TrimSpace(text) == "" {
		return nil, &exprError{msg: "the expression is empty"}
	}
	if len(text) > maxExpressionBytes {
		return nil, &exprError{msg: fmt.Sprintf("the expression has more than %d bytes", maxExpressionBytes)}
	}
	config := exprConfig()
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, located(text, err)
	}
	c := &compiler{text: text, scope: sc, out: &expression{text: text, key: text, wide: sc.of == OfOperator}, env: map[string]any{}}
	node, err := c.compile(tree.Node, 0)
	if err != nil {
		return nil, err
	}
	config.WithEnv(c.env)
	config.Strict = true
	if _, err := checker.Check(tree, config); err != nil {
		return nil, located(text, err)
	}
	if node.sort != want {
		return nil, &exprError{msg: fmt.Sprintf("want %s, got %s", want, node.sort)}
	}
	c.out.eval, c.out.figure, c.out.id = node.eval, node.figure, node.id
	return c.out, nil
}

// exprConfig allows none of expr's built-in functions, but min and max of our own.
func exprConfig() *conf.Config {
	config := conf.CreateNew()
	config.MaxNodes = maxExpressionNodes
	config.DisableIfOperator = true
	numbers := new(func(float64, ...float64) float64)
	for _, opt := range []expr.Option{
		expr.DisableAllBuiltins(),
		expr.Function("min", nil, numbers), expr.Function("max", nil, numbers),
	} {
		opt(config)
	}
	return config
}

// located turns an error of the expression library into one of ours: one line,
// its place in bytes.
func located(text string, err error) error {
	var fe *file.Error
	if !errors.As(err, &fe) {
		return &exprError{msg: firstLine(err.Error())}
	}
	msg := "the expression cannot be read"
	switch {
	case fe.Message == "unexpected token EOF":
		msg = "the expression ends too early"
	case fe.Message != "":
		msg = strings.ToLower(fe.Message[:1]) + fe.Message[1:]
	}
	return &exprError{offset: byteOffset(text, fe.From), msg: msg}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// byteOffset turns an offset in characters, as the library counts, into bytes.
func byteOffset(text string, runes int) int {
	at := 0
	for ; runes > 0 && at < len(text); runes-- {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}

// compiler turns a syntax tree into closures.
type compiler struct {
	text  string
	scope *scope
	out   *expression
	env   map[string]any // the names used, typed for the checker
}

// value is a compiled node. Truth is a number too: 1, 0, and NaN where what it
// was made from is absent, so that absent propagates through conditions.
type value struct {
	sort     sort
	eval     Signal
	constant bool
	number   float64 // of a constant
	// figure is set where the value is one figure of the vector that is looked at; id
	// says which.
	figure bool
	id     event.MetricID
	// fact is set where it is one fact; which says which.
	fact  bool
	which Fact
}

func (c *compiler) failf(n ast.Node, format string, args ...any) error {
	return &exprError{offset: byteOffset(c.text, n.Location().From), msg: fmt.Sprintf(format, args...)}
}

func constant(x float64) value {
	return value{constant: true, number: x, eval: func(*event.Vector, *event.Batch, *event.Operator, *Facts) float64 { return x }}
}

func (c *compiler) compile(n ast.Node, depth int) (value, error) {
	if depth > maxExpressionDepth {
		return value{}, c.failf(n, "nested deeper than %d levels", maxExpressionDepth)
	}
	switch n := n.(type) {
	case *ast.IntegerNode:
		return constant(float64(n.Value)), nil
	case *ast.FloatNode:
		return constant(n.Value), nil
	case *ast.BoolNode:
		v := constant(truth(n.Value))
		v.sort = aTruth
		return v, nil
	case *ast.IdentifierNode:
		return c.name(n, n.Value)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ChainNode:
		return c.compile(n.Node, depth+1)
	case *ast.UnaryNode:
		return c.unary(n, depth)
	case *ast.BinaryNode:
		return c.binary(n, depth)
	case *ast.ConditionalNode:
		return c.conditional(n, depth)
	case *ast.CallNode:
		return c.call(n, depth)
	case *ast.NilNode:
		return value{}, c.failf(n, "nil is no value here; write x ?? 0 for a value that may be absent")
	case *ast.StringNode:
		return value{}, c.failf(n, "text has no place in an expression of numbers")
	}
	return value{}, c.failf(n, "only numbers, names, arithmetic, comparison, logic, ?:, ??, min and max are allowed")
}

// compileAs compiles a node that must be of one sort.
func (c *compiler) compileAs(n ast.Node, want sort, depth int) (value, error) {
	v, err := c.compile(n, depth+1)
	if err != nil {
		return v, err
	}
	if v.sort != want {
		return v, c.failf(n, "want %s, got %s", want, v.sort)
	}
	return v, nil
}

// member reads a dotted key of Spark's, such as durationMs.addBatch.
func (c *compiler) member(n *ast.MemberNode) (value, error) {
	key, ok := dotted(n)
	if !ok {
		return value{}, c.failf(n, "only dotted keys such as durationMs.addBatch are allowed")
	}
	v, err := c.name(n, key)
	if err == nil {
		c.typeDotted(key)
	}
	return v, err
}

func dotted(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, true
	case *ast.MemberNode:
		head, ok := dotted(n.Node)
		prop, isName := n.Property.(*ast.StringNode)
		if !ok || !isName || n.Optional || n.Method {
			return "", false
		}
		return head + "." + prop.Value, true
	}
	return "", false
}

// typeDotted enters a dotted key into what the checker knows.
func (c *compiler) typeDotted(key string) {
	parts := strings.Split(key, ".")
	at := c.env
	for _, p := range parts[:len(parts)-1] {
		next, ok := at[p].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[p] = next
		}
		at = next
	}
	at[parts[len(parts)-1]] = float64(0)
}

// name resolves a name: a signal of the rule files, or one of the built-in names.
func (c *compiler) name(n ast.Node, name string) (value, error) {
	if s, ok, err := c.scope.signal(name); err != nil {
		return value{}, c.failf(n, "%v", err)
	} else if ok {
		return c.reference(n, s)
	}
	l, ok := leaves[name]
	if !ok {
		known := append(Names(c.scope.of), c.scope.others...)
		return value{}, c.failf(n, "unknown name %q%s", name, strictyaml.DidYouMean(name, known))
	}
	if l.of == OfOperator && !l.either && c.scope.of == OfQuery {
		return value{}, c.failf(n, "%q is a figure of an operator; the signal must be of: operator", name)
	}
	if l.metric < event.NumMetrics && l.of == OfOperator && event.Lookup(l.metric).Unit == event.UnitSeconds {
		c.out.times = append(c.out.times, l.metric)
	}
	c.out.times = append(c.out.times, l.times...)
	c.out.duration = c.out.duration || l.duration
	c.out.wide = c.out.wide && l.of == OfQuery && !l.either
	c.env[name] = float64(0)
	figure := l.metric < event.NumMetrics && (l.of == OfOperator || c.scope.of == OfQuery)
	return value{eval: l.eval, figure: figure, id: l.metric, fact: l.isFact, which: l.fact}, nil
}

// reference uses another signal's value.
func (c *compiler) reference(n ast.Node, s *signal) (value, error) {
	if s.of == OfOperator && c.scope.of == OfQuery {
		return value{}, c.failf(n, "signal %q has a value per operator and cannot be used for a query", s.name)
	}
	c.out.times = append(c.out.times, s.expr.times...)
	c.out.duration = c.out.duration || s.expr.duration
	c.out.wide = c.out.wide && s.of == OfQuery
	c.out.key += "\x00" + s.key()
	c.env[s.name] = float64(0)
	eval := guarded(s)
	if s.of == OfQuery && c.scope.of == OfOperator {
		inner := eval // names that both have must mean the query's here
		eval = func(_ *event.Vector, b *event.Batch, _ *event.Operator, f *Facts) float64 {
			return inner(&b.Values, b, nil, f)
		}
	}
	return value{eval: eval}, nil
}

// guarded makes a referred signal absent where its own guard does not hold.
func guarded(s *signal) Signal {
	if s.when == nil {
		return s.expr.eval
	}
	eval, when := s.expr.eval, s.when.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		if when(v, b, o, f) != 1 {
			return math.NaN()
		}
		return eval(v, b, o, f)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
