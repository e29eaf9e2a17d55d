package rules

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"text/template"
	"time"
)

// templateFuncs are the functions of annotation templates. Each takes any number;
// absent values read "unknown".
var templateFuncs = template.FuncMap{
	"humanize":         numeric(humanize),
	"humanizeBytes":    numeric(humanizeBytes),
	"humanizeDuration": numeric(humanizeDuration),
	"percent":          numeric(percent),
	"show":             show,
	"errorMeans":       errorMeans,
	"errorFix":         errorFix,
}

// numeric makes a function of any number out of one of a float.
func numeric(f func(float64) string) func(any) (string, error) {
	return func(x any) (string, error) {
		n, err := toFloat(x)
		if err != nil {
			return "", err
		}
		return f(n), nil
	}
}

func toFloat(x any) (float64, error) {
	v := reflect.ValueOf(x)
	switch {
	case v.CanFloat():
		return v.Float(), nil
	case v.CanInt():
		return float64(v.Int()), nil
	case v.CanUint():
		return float64(v.Uint()), nil
	}
	return 0, fmt.Errorf("%v is no number", x)
}

// show prints a number in a unit: {{ show .Unit .End }}.
func show(unit string, x any) (string, error) {
	n, err := toFloat(x)
	if err != nil {
		return "", err
	}
	return quantity(n, unit), nil
}

// quantity prints a number in its unit.
func quantity(x float64, unit string) string {
	switch unit {
	case "seconds":
		return humanizeDuration(x)
	case "bytes":
		return humanizeBytes(x)
	case "ratio":
		return percent(x)
	case "count":
		return humanize(x)
	}
	return humanize(x) + " " + unit
}

// humanize prints three digits and a decimal prefix: 12.3k.
func humanize(x float64) string { return prefixed(x, 1000, []string{"", "k", "M", "G", "T", "P"}, "") }

// humanizeBytes prints a size: 4.5MiB.
func humanizeBytes(x float64) string {
	return prefixed(x, 1024, []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}, "B")
}

func prefixed(x, base float64, prefixes []string, unit string) string {
	if !finite(x) {
		return "unknown"
	}
	i := 0
	for math.Abs(x) >= base*0.9995 && i < len(prefixes)-1 { // 999,999 is 1M and not 1000k
		x /= base
		i++
	}
	return digits(x) + prefixes[i] + unit
}

// digits prints three significant ones, without an exponent.
func digits(x float64) string {
	s := strconv.FormatFloat(x, 'g', 3, 64)
	rounded, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// humanizeDuration prints seconds as 850ms, 12.3s, 4m10s or 1d2h.
func humanizeDuration(seconds float64) string {
	abs := math.Abs(seconds)
	switch {
	case !finite(seconds) || abs > 1e9:
		return "unknown"
	case abs == 0:
		return "0s"
	case abs < 1:
		return digits(seconds*1000) + "ms"
	case abs < 60:
		return digits(seconds) + "s"
	case abs < 86400:
		return shortDuration(time.Duration(seconds) * time.Second)
	}
	days := int64(seconds) / 86400
	hours := int64(seconds) % 86400 / 3600
	if hours == 0 {
		return fmt.Sprintf("%dd", days)
	}
	return fmt.Sprintf("%dd%dh", days, hours)
}

// percent prints a share: 0.25 is 25%.
func percent(x float64) string {
	if !finite(x) {
		return "unknown"
	}
	return digits(x*100) + "%"
}

// period says what a finding's period is, empty without one.
func (j *Judgement) period() string {
	switch {
	case !(j.Period > 0):
		return ""
	case j.OnClock:
		return humanizeDuration(j.Period / 1000)
	}
	return fmt.Sprintf("%g batches", math.Round(j.Period*10)/10)
}
