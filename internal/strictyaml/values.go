package strictyaml

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time written as "90s", "1h30m", "2d" or "1w": days
// have 24 hours. Fields of type time.Duration are read the same way.
type Duration time.Duration

// DecodeScalar reads a duration.
func (d *Duration) DecodeScalar(text string) error {
	v, err := ParseDuration(text)
	*d = Duration(v)
	return err
}

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// String returns d as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

var longUnit = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

// maxDays keeps a duration inside what nanoseconds in 64 bits can say.
const maxDays = 36_500

// ParseDuration reads "1w2d3h4m5s6ms", units in that order, or "0". Negative
// durations are refused: none of our settings has a use for one.
func ParseDuration(text string) (time.Duration, error) {
	m := longUnit.FindStringSubmatch(text)
	bad := fmt.Errorf("%q is no duration; write it as 30s, 15m, 1h30m or 2d", cut(text))
	if m == nil || text == "" || strings.HasPrefix(text, "-") {
		return 0, bad
	}
	days := 7*whole(m[1]) + whole(m[2])
	var rest time.Duration
	if m[3] != "" || days == 0 && m[1]+m[2] == "" {
		var err error
		if rest, err = time.ParseDuration(m[3]); err != nil || rest < 0 {
			return 0, bad
		}
	}
	if days > maxDays || rest > maxDays*24*time.Hour {
		return 0, fmt.Errorf("%q is longer than %d days", cut(text), maxDays)
	}
	return time.Duration(days)*24*time.Hour + rest, nil
}

// whole reads a run of digits; one too long to read is as good as too many days.
func whole(digits string) int {
	if digits == "" {
		return 0
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > maxDays {
		return maxDays + 1
	}
	return n
}

// Bytes is a size written as "512", "64KiB", "16MiB", "1GiB" or "10MB".
type Bytes int64

var byteUnits = map[string]float64{
	"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

var byteSize = regexp.MustCompile(`^(\d+(?:\.\d+)?) ?([A-Za-z]*)$`)

// DecodeScalar reads a size.
func (b *Bytes) DecodeScalar(text string) error {
	bad := fmt.Errorf("%q is no size; write it as 512, 64KiB, 16MiB or 1GiB", cut(text))
	m := byteSize.FindStringSubmatch(text)
	if m == nil {
		return bad
	}
	unit, ok := byteUnits[m[2]]
	n, err := strconv.ParseFloat(m[1], 64)
	if !ok || err != nil {
		return bad
	}
	if n *= unit; n >= math.MaxInt64 {
		return fmt.Errorf("%q is too large a size", cut(text))
	}
	*b = Bytes(n)
	return nil
}

// Percent is a share written as "25%"; its value is 0.25. A bare number is
// refused, since 0.25 and 25 would both be meant.
type Percent float64

// DecodeScalar reads a percentage.
func (p *Percent) DecodeScalar(text string) error {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return fmt.Errorf("%q is no percentage; write it as 25%%", cut(text))
	}
	*p = Percent(n / 100)
	return nil
}

// String returns the percentage as it is written.
func (p Percent) String() string { return strconv.FormatFloat(float64(p)*100, 'g', 6, 64) + "%" }

// cut shortens text for a message.
func cut(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
