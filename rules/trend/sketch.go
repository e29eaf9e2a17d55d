package trend

// sketch is fit with a line through the medians of the outer thirds (Tukey's resistant
// line, 1977) in place of Theil and Sen's: a tenth of the cost, and a third less sure of
// its slope. It says whether a fit is worth its cost.
func (s *Scratch) sketch(x, y []float64) Fit {
	line := s.resistant(x, y)
	s.setOutliersAside(x, y, line)
	if len(s.keptX) < len(x) {
		line = s.resistant(s.keptX, s.keptY)
	}
	return s.weigh(x, line)
}

// resistant draws a line through the medians of the first and the last third; x rises.
func (s *Scratch) resistant(x, y []float64) Line {
	n := len(x)
	third := n / 3
	if third == 0 {
		return s.line(x, y)
	}
	mid := third / 2
	apart := middle(x[n-1-mid], x[n-third+mid]) - middle(x[mid], x[third-1-mid])
	slope := (s.median(y[n-third:]) - s.median(y[:third])) / apart
	return Line{Slope: slope, Intercept: s.intercept(x, y, slope), Low: slope, High: slope}
}

// sketchShare of what a rule asks for must show in the sketch before the fit is made.
const sketchShare = 0.6

// near reports whether f comes so close to passing that a better fit might.
func (o *RisingOptions) near(f *Fit) bool {
	move := o.sign() * f.Rise
	return o.sign()*f.Z > sketchShare*o.Z && move > 0 && move >= sketchShare*o.By*f.Start && move >= sketchShare*o.AtLeast
}
