package record

import "math"

// Codes of a rate. Spark divides rows by seconds, which it has from milliseconds,
// and newer versions round the quotient to tenths.
const (
	rateAbsent = iota
	rateUsual  // rows over the milliseconds that were to be expected
	rateTenths // the same, rounded
	rateZero
	rateOther // a number follows
	rateOver  // (code-rateOver)/2 is the milliseconds; odd: rounded
)

// maxRateMs bounds the milliseconds that are looked for behind a rate.
const maxRateMs = 1 << 40

// rate carries a rate in rows per second, most of which are rows over whole
// milliseconds to the last bit. usualMs is what these are likely to be. It returns
// the milliseconds that were found, usualMs where there are none.
func (c *codec) rate(v *float64, rows float64, usualMs int64) int64 {
	if c.writing {
		return c.putRate(*v, rows, usualMs)
	}
	switch code := c.get(); code {
	case rateAbsent:
		*v = math.NaN()
	case rateUsual, rateTenths:
		*v = perSecond(rows, usualMs, code == rateTenths)
	case rateZero:
		*v = 0
	case rateOther:
		c.number(v)
	default:
		usualMs = int64((code - rateOver) / 2)
		*v = perSecond(rows, usualMs, (code-rateOver)%2 == 1)
	}
	return usualMs
}

func (c *codec) putRate(v, rows float64, usualMs int64) int64 {
	switch {
	case v != v:
		c.put(rateAbsent)
	case math.Float64bits(v) == 0:
		c.put(rateZero)
	case same(v, perSecond(rows, usualMs, false)):
		c.put(rateUsual)
	case same(v, perSecond(rows, usualMs, true)):
		c.put(rateTenths)
	default:
		return c.putOddRate(v, rows, usualMs)
	}
	return usualMs
}

func (c *codec) putOddRate(v, rows float64, usualMs int64) int64 {
	ms := math.Round(rows / v * 1000)
	if !(ms >= 1 && ms < maxRateMs) {
		ms = 1
	}
	switch found := int64(ms); {
	case same(v, perSecond(rows, found, false)):
		c.put(rateOver + 2*uint64(found))
		return found
	case same(v, perSecond(rows, found, true)):
		c.put(rateOver + 2*uint64(found) + 1)
		return found
	}
	c.put(rateOther)
	c.putNumber(v)
	return usualMs
}

// perSecond divides as Spark does, so that the last bit is the same.
func perSecond(rows float64, ms int64, tenths bool) float64 {
	v := rows / (float64(max(ms, 1)) / 1000)
	if tenths {
		return math.Round(v*10) / 10
	}
	return v
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
