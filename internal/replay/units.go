package replay

import (
	"fmt"
	"math"
	"strconv"
)

// none stands for a figure that is not known.
const none = "-"

// whole formats a count with separators: 12,345.
func whole(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	digits := strconv.FormatFloat(math.Abs(math.Round(v)), 'f', 0, 64)
	out := make([]byte, 0, len(digits)+len(digits)/3+1)
	if v <= -0.5 {
		out = append(out, '-')
	}
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// count formats a large count in three digits: 12.8 M.
func count(v float64) string {
	if math.IsNaN(v) || math.Abs(v) < 100_000 {
		if v != 0 && math.Abs(v) < 10 && v != math.Trunc(v) {
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return whole(v)
	}
	return scaled(v, 1000, "", " k", " M", " G", " T")
}

// size formats an amount of bytes: 1.2 GiB.
func size(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return none
	}
	return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB")
}

func scaled(v, step float64, units ...string) string {
	i := 0
	for math.Abs(v) >= step && i < len(units)-1 {
		v /= step
		i++
	}
	if i > 0 && math.Abs(v) < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64) + units[i]
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + units[i]
}

// seconds formats a span of time: 850 ms, 1.2 s, 3 m 20 s, 2 h 5 m, 9 d 4 h.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return none
	case s < 0:
		return "-" + seconds(-s)
	case s == 0:
		return "0"
	case s < 0.0095:
		return strconv.FormatFloat(s*1000, 'g', 2, 64) + " ms"
	case s < 0.9995:
		return strconv.FormatFloat(s*1000, 'f', 0, 64) + " ms"
	case s < 59.95:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	n := int64(math.Round(s))
	switch {
	case n < 3600:
		return fmt.Sprintf("%d m %d s", n/60, n%60)
	case n < 86400:
		return fmt.Sprintf("%d h %d m", n/3600, n%3600/60)
	}
	return fmt.Sprintf("%d d %d h", n/86400, n%86400/3600)
}

// percent formats a share: 12 %.
func percent(share float64) string {
	switch {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return none
	case share > 0 && share < 0.001:
		return "< 0.1 %"
	case math.Abs(share) < 0.0995:
		return strconv.FormatFloat(share*100, 'f', 1, 64) + " %"
	}
	return strconv.FormatFloat(share*100, 'f', 0, 64) + " %"
}

// figure formats a number that may be left out.
func figure(v *float64, format func(float64) string) string {
	if v == nil {
		return none
	}
	return format(*v)
}
