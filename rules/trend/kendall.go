package trend

import "math"

// Kendall is the outcome of a Mann-Kendall test.
type Kendall struct {
	N    int
	S    int64   // concordant less discordant pairs
	VarS float64 // variance of S for independent points, ties allowed for
	Tau  float64 // S over the number of pairs, -1 to 1
	Z    float64 // standard normal where there is no trend; 0 for fewer than 3 points or equal values
}

// MannKendall tests y, in order, for a monotonic trend (Mann 1945, Kendall 1975;
// tie-corrected variance as in Gilbert, Statistical Methods for Environmental
// Pollution Monitoring, 1987, chapter 16).
//
// It takes O(n log n) and allocates two slices of n. The values must be finite.
//
// Pitfall: it takes the points for independent. With a lag-1 correlation of .6
// some 11 % of trendless windows of 120 pass a test meant to let 1 % through, with .95
// some 36 %. Multiply VarS by an AR1VarianceFactor before the verdict, as
// Window.Rising does.
func MannKendall(y []float64) Kendall {
	s := new(Scratch)
	return s.mannKendall(y)
}

// mannKendall counts the discordant pairs by merge sort.
func (s *Scratch) mannKendall(y []float64) Kendall {
	n := len(y)
	s.sorted = append(s.sorted[:0], y...)
	down := int64(s.countInversions(s.sorted))
	tiedPairs, tieTerm := ties(s.sorted)
	pairs := int64(n) * int64(n-1) / 2
	return kendallOf(n, pairs-tiedPairs-2*down, tieTerm)
}

func kendallOf(n int, s, tieTerm int64) Kendall {
	k := Kendall{N: n, S: s}
	if n < 3 {
		return k
	}
	f := float64(n)
	k.VarS = varianceOfS(n, tieTerm)
	k.Tau = float64(s) / (f * (f - 1) / 2)
	k.Z = standardize(s, k.VarS)
	return k
}

// varianceOfS is the variance of S for n independent points with such ties.
func varianceOfS(n int, tieTerm int64) float64 {
	f := float64(n)
	return (f*(f-1)*(2*f+5) - float64(tieTerm)) / 18
}

// standardize returns S in standard deviations, with the continuity correction
// of one step towards 0.
func standardize(s int64, variance float64) float64 {
	if s == 0 || variance <= 0 {
		return 0
	}
	if s > 0 {
		return float64(s-1) / math.Sqrt(variance)
	}
	return float64(s+1) / math.Sqrt(variance)
}

// ties returns the number of equal pairs in the sorted values and the sum of
// t(t-1)(2t+5) over groups of t equal ones.
func ties(sorted []float64) (pairs, term int64) {
	for i := 0; i < len(sorted); {
		j := i + 1
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		t := int64(j - i)
		pairs += t * (t - 1) / 2
		term += tieWeight(t)
		i = j
	}
	return pairs, term
}

// tieWeight is what a group of t equal values takes from 18 times the variance.
func tieWeight(t int64) int64 { return t * (t - 1) * (2*t + 5) }

// pairSum is S of a ring's points, kept exact as points come and go. A nil
// pairSum keeps nothing.
type pairSum struct {
	s       int64
	tieTerm int64
}

// add counts v, which is about to become the newest point of r.
func (k *pairSum) add(r *ring, v float64) {
	if k == nil {
		return
	}
	less, equal := r.compare(v)
	k.s += int64(2*less + equal - r.n)
	k.tieTerm += tieWeight(int64(equal)+1) - tieWeight(int64(equal))
}

// remove uncounts v, which was the oldest point of r until now.
func (k *pairSum) remove(r *ring, v float64) {
	if k == nil {
		return
	}
	less, equal := r.compare(v)
	k.s += int64(2*less + equal - r.n)
	k.tieTerm -= tieWeight(int64(equal)+1) - tieWeight(int64(equal))
}

// recount starts afresh from the points of r, after blocks were folded.
func (k *pairSum) recount(r *ring) {
	if k == nil {
		return
	}
	*k = pairSum{}
	n := r.n
	for r.n = 0; r.n < n; r.n++ {
		k.add(r, r.vals[r.at(r.n)])
	}
}

// compare counts the kept values below v and those equal to it.
func (r *ring) compare(v float64) (less, equal int) {
	a, b := r.segments()
	la, ea := compareAll(a, v)
	lb, eb := compareAll(b, v)
	return la + lb, ea + eb
}

// compareAll is free of branches on purpose: the outcome of each comparison is a
// coin toss, and a mispredicted branch costs ten times the comparison.
func compareAll(vals []float64, v float64) (less, equal int) {
	for _, u := range vals {
		var l, e int
		if u < v {
			l = 1
		}
		if u == v {
			e = 1
		}
		less += l
		equal += e
	}
	return less, equal
}
