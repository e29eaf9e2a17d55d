package rules

import (
	"math"

	"github.com/expr-lang/expr/ast"

	"github.com/stategauge/stategauge/event"
)

func (c *compiler) unary(n *ast.UnaryNode, depth int) (value, error) {
	want := aNumber
	if n.Operator == "!" || n.Operator == "not" {
		want = aTruth
	}
	v, err := c.compileAs(n.Node, want, depth)
	if err != nil {
		return v, err
	}
	x := v.eval
	switch n.Operator {
	case "+":
		return v, nil
	case "-":
		if v.constant {
			return constant(-v.number), nil
		}
		return value{eval: func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 { return -x(v, b, o, f) }}, nil
	case "!", "not":
		return value{sort: aTruth, eval: func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 { return 1 - x(v, b, o, f) }}, nil
	}
	return v, c.failf(n, "operator %q is not allowed", n.Operator)
}

// binaryOperators says what each operator takes and gives.
var binaryOperators = map[string]struct {
	takes, gives sort
	make         func(x, y value) Signal
}{
	"+": {aNumber, aNumber, plus},
	"-": {aNumber, aNumber, minus},
	"*": {aNumber, aNumber, times},
	"/": {aNumber, aNumber, divide},

	"<":  {aNumber, aTruth, below},
	"<=": {aNumber, aTruth, func(x, y value) Signal { return atLeast(y, x) }},
	">":  {aNumber, aTruth, func(x, y value) Signal { return below(y, x) }},
	">=": {aNumber, aTruth, atLeast},
	"==": {aNumber, aTruth, equal},
	"!=": {aNumber, aTruth, unequal},

	"and": {aTruth, aTruth, both},
	"&&":  {aTruth, aTruth, both},
	"or":  {aTruth, aTruth, either},
	"||":  {aTruth, aTruth, either},
}

func (c *compiler) binary(n *ast.BinaryNode, depth int) (value, error) {
	if n.Operator == "??" {
		return c.orElse(n, depth)
	}
	op, ok := binaryOperators[n.Operator]
	if !ok {
		return value{}, c.failf(n, "operator %q is not allowed", n.Operator)
	}
	x, err := c.compileAs(n.Left, op.takes, depth)
	if err != nil {
		return x, err
	}
	y, err := c.compileAs(n.Right, op.takes, depth)
	if err != nil {
		return y, err
	}
	return value{sort: op.gives, eval: op.make(x, y)}, nil
}

// orElse is x ?? y: y where x is absent.
func (c *compiler) orElse(n *ast.BinaryNode, depth int) (value, error) {
	l, err := c.compile(n.Left, depth+1)
	if err != nil {
		return l, err
	}
	r, err := c.compileAs(n.Right, l.sort, depth)
	if err != nil {
		return r, err
	}
	x, y := l.eval, r.eval
	if r.constant {
		return value{sort: l.sort, eval: orConstant(l, r.number)}, nil
	}
	return value{sort: l.sort, eval: func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		if a := x(v, b, o, f); a == a {
			return a
		}
		return y(v, b, o, f)
	}}, nil
}

// orConstant is x ?? a constant: the common one, above all of facts and figures.
func orConstant(l value, other float64) Signal {
	x, id, which := l.eval, l.id, l.which
	switch {
	case l.fact:
		return func(_ *event.Vector, _ *event.Batch, _ *event.Operator, f *Facts) float64 {
			if a := f[which]; a == a {
				return a
			}
			return other
		}
	case l.figure:
		return func(v *event.Vector, _ *event.Batch, _ *event.Operator, _ *Facts) float64 {
			if a := v[id]; a == a {
				return a
			}
			return other
		}
	}
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		if a := x(v, b, o, f); a == a {
			return a
		}
		return other
	}
}

func (c *compiler) conditional(n *ast.ConditionalNode, depth int) (value, error) {
	cond, err := c.compileAs(n.Cond, aTruth, depth)
	if err != nil {
		return cond, err
	}
	l, err := c.compile(n.Exp1, depth+1)
	if err != nil {
		return l, err
	}
	r, err := c.compileAs(n.Exp2, l.sort, depth)
	if err != nil {
		return r, err
	}
	when, x, y := cond.eval, l.eval, r.eval
	return value{sort: l.sort, eval: func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		switch when(v, b, o, f) {
		case 1:
			return x(v, b, o, f)
		case 0:
			return y(v, b, o, f)
		}
		return math.NaN()
	}}, nil
}

func (c *compiler) call(n *ast.CallNode, depth int) (value, error) {
	callee, ok := n.Callee.(*ast.IdentifierNode)
	if !ok || callee.Value != "min" && callee.Value != "max" {
		return value{}, c.failf(n, "only the functions min and max are known")
	}
	if len(n.Arguments) == 0 {
		return value{}, c.failf(n, "%s needs at least one number", callee.Value)
	}
	pick := math.Min
	if callee.Value == "max" {
		pick = math.Max
	}
	var eval Signal
	for _, arg := range n.Arguments {
		v, err := c.compileAs(arg, aNumber, depth)
		if err != nil {
			return v, err
		}
		eval = picked(pick, eval, v.eval)
	}
	return value{eval: eval}, nil
}

// picked chains arguments; math.Min and math.Max are absent where one is absent.
func picked(pick func(a, b float64) float64, x, y Signal) Signal {
	if x == nil {
		return y
	}
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return pick(x(v, b, o, f), y(v, b, o, f))
	}
}

func plus(l, r value) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return x(v, b, o, f) + y(v, b, o, f)
	}
}

func minus(l, r value) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return x(v, b, o, f) - y(v, b, o, f)
	}
}

func times(l, r value) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return x(v, b, o, f) * y(v, b, o, f)
	}
}

// divide makes a division by zero absent. Divisions by a constant are the common
// ones (units) and save a call.
func divide(l, r value) Signal {
	x, y := l.eval, r.eval
	by, id := r.number, l.id
	switch {
	case r.constant && by != 0 && l.figure:
		return func(v *event.Vector, _ *event.Batch, _ *event.Operator, _ *Facts) float64 { return v[id] / by }
	case r.constant && by != 0:
		return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 { return x(v, b, o, f) / by }
	case l.figure:
		return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
			d := y(v, b, o, f)
			if d == 0 {
				return math.NaN()
			}
			return v[id] / d
		}
	}
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		d := y(v, b, o, f)
		if d == 0 {
			return math.NaN()
		}
		return x(v, b, o, f) / d
	}
}

// below is l < r. What is absent is below nothing and above nothing, and the answer is
// absent too. Comparisons with a constant are the common ones.
func below(l, r value) Signal {
	x, y := l.eval, r.eval
	switch {
	case r.constant && r.number == r.number:
		most := r.number
		return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
			p := x(v, b, o, f)
			if p != p {
				return p
			}
			return truth(p < most)
		}
	case l.constant && l.number == l.number:
		least := l.number
		return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
			q := y(v, b, o, f)
			if q != q {
				return q
			}
			return truth(least < q)
		}
	}
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p, q := x(v, b, o, f), y(v, b, o, f)
		if p != p || q != q {
			return math.NaN()
		}
		return truth(p < q)
	}
}

// atLeast is l >= r.
func atLeast(l, r value) Signal {
	if !r.constant || r.number != r.number {
		return compare(l, r, func(a, b float64) bool { return a >= b })
	}
	x, least := l.eval, r.number
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p := x(v, b, o, f)
		if p != p {
			return p
		}
		return truth(p >= least)
	}
}

// unequal is l != r.
func unequal(l, r value) Signal {
	same := equal(l, r)
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		return 1 - same(v, b, o, f)
	}
}

// equal is l == r.
func equal(l, r value) Signal {
	if !r.constant || r.number != r.number {
		return compare(l, r, func(a, b float64) bool { return a == b })
	}
	x, want := l.eval, r.number
	if l.fact {
		which := l.which
		return func(_ *event.Vector, _ *event.Batch, _ *event.Operator, f *Facts) float64 {
			p := f[which]
			if p != p {
				return p
			}
			return truth(p == want)
		}
	}
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p := x(v, b, o, f)
		if p != p {
			return p
		}
		return truth(p == want)
	}
}

func compare(l, r value, holds func(a, b float64) bool) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p, q := x(v, b, o, f), y(v, b, o, f)
		if p != p || q != q {
			return math.NaN()
		}
		return truth(holds(p, q))
	}
}

// both is false where one side is, whatever the other may be, and absent where
// the answer hangs on an absent one.
func both(l, r value) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p := x(v, b, o, f)
		if p == 0 {
			return 0
		}
		q := y(v, b, o, f)
		if q == 0 {
			return 0
		}
		return p * q
	}
}

// either is the mirror of both.
func either(l, r value) Signal {
	x, y := l.eval, r.eval
	return func(v *event.Vector, b *event.Batch, o *event.Operator, f *Facts) float64 {
		p := x(v, b, o, f)
		if p == 1 {
			return 1
		}
		q := y(v, b, o, f)
		if q == 1 {
			return 1
		}
		return p + q
	}
}
