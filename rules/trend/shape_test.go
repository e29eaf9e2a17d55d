package trend

import (
	"math"
	"testing"
)

func shapeOf(n int, sign float64, value func(i int) float64) shape {
	s := new(Scratch)
	for i := range n {
		s.keptX, s.keptY = append(s.keptX, float64(2*i)), append(s.keptY, value(i))
	}
	return s.picture(sign)
}

func TestShapeOfAStepIsTheStep(t *testing.T) {
	for _, at := range []int{1, 10, 50, 98, 99} {
		p := shapeOf(100, 1, func(i int) float64 { return 40 + 8*stepSlow(at, 2)(i) })
		if p.bend || p.from != float64(2*at) || !p.beatsLine() {
			t.Errorf("step at %d: %+v", at, p)
		}
		near(t, "height", p.amount, 8, 1e-9)
		near(t, "level before", p.at(0), 48, 1e-9)
		near(t, "level after", p.at(198), 56, 1e-9)
	}
}

func TestShapeOfABendIsTheBend(t *testing.T) {
	for _, at := range []int{10, 50, 90} {
		p := shapeOf(100, 1, func(i int) float64 { return 40 + 0.5*math.Max(0, float64(i-at)) })
		if !p.bend || p.from != float64(2*at) || !p.beatsLine() {
			t.Errorf("bend at %d: %+v", at, p)
		}
		near(t, "slope", p.amount, 0.25, 1e-9)
		near(t, "level before", p.at(0), 40, 1e-9)
	}
}

func TestStraightLineIsNoShapeOfItsOwn(t *testing.T) {
	n := newNoise(4, nil)
	p := shapeOf(100, 0, func(i int) float64 { return float64(i) + n.ar(0) })
	if p.beatsLine() {
		t.Errorf("%+v", p)
	}
}

func TestNoiseIsNoShape(t *testing.T) {
	beaten := 0
	for seed := range uint64(200) {
		n := newNoise(seed, nil)
		if shapeOf(120, 0, func(int) float64 { return 10 + n.ar(0.6) }).beatsLine() {
			beaten++
		}
	}
	if beaten > 10 {
		t.Errorf("%d of 200 healthy windows show a shape", beaten)
	}
}

func TestShapeLooksOnlyTheWayItIsAsked(t *testing.T) {
	down := func(i int) float64 { return 40 - 8*stepSlow(50, 2)(i) }
	if p := shapeOf(100, 1, down); p.from == 100 {
		t.Errorf("a step down was taken for one up: %+v", p)
	}
	for _, sign := range []float64{-1, 0} {
		if p := shapeOf(100, sign, down); p.from != 100 || p.amount >= 0 {
			t.Errorf("sign %v: %+v", sign, p)
		}
	}
}

func TestShapeOfEqualValuesIsFlat(t *testing.T) {
	p := shapeOf(50, 0, func(int) float64 { return 7 })
	if p.beatsLine() || p.at(0) != 7 || p.at(98) != 7 {
		t.Errorf("%+v", p)
	}
}

// The squares that the running sums give must be those of the residuals.
func TestSquaresLeftAreThoseOfTheResiduals(t *testing.T) {
	for seed := range uint64(30) {
		n := newNoise(seed, nil)
		var y []float64
		p := shapeOf(60, 0, func(i int) float64 {
			y = append(y, 100+n.ar(0.3)+3*stepSlow(20, 2)(i))
			return y[i]
		})
		sum := 0.0
		for i, v := range y {
			e := v - p.at(float64(2*i))
			sum += e * e
		}
		near(t, "sum of squares", p.squares, sum, 1e-6*sum)
	}
}
