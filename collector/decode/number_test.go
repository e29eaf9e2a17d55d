package decode

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stategauge/stategauge/event"
)

// padded puts a number among bytes that end it, with and without room for the
// eight-byte steps behind it.
func padded(s string) [][]byte {
	return [][]byte{[]byte(s), []byte(s + ","), []byte(s + ",12345678901234567890,"), []byte(s + "}                      ")}
}

func TestNumbersAreTheNearestFloat64(t *testing.T) {
	numbers := []string{
		"0", "-0", "1", "-1", "9", "10", "12345678", "123456789", "1234567890123456", "12345678901234567", "123456789012345678",
		"9007199254740991", "9007199254740993", "-9007199254740993", "18446744073709551615", "9223372036854775807",
		"0.1", "0.25", "-0.001", "1.0", "10391.749999999998", "1823.7", "69230769.23076923", "0.30000000000000004",
		"1e0", "1E5", "1e-5", "1.5e+3", "6.923076923076923E7", "1e22", "1e23", "9007199254740993e-1", "1e-22", "1e-23",
		"123456789012345678901234567890", "0.000000000000000000000000000001", "4.9e-324", "2.2250738585072014e-308", "1.7976931348623157e308",
		"1e400", "-1e400", "1e-400", "1e99999999999999999999", "0e5", "0.0",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		numbers = append(numbers,
			strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10),
			strconv.FormatFloat(math.Float64frombits(rng.Uint64()&^(1<<62)), 'g', -1, 64),
			strconv.FormatFloat(rng.NormFloat64()*1e4, 'f', rng.IntN(18), 64),
			fmt.Sprintf("%d.%de%d", rng.IntN(1e9), rng.IntN(1e9), rng.IntN(60)-30))
	}
	for _, s := range numbers {
		want, err := strconv.ParseFloat(s, 64)
		if err != nil && !math.IsInf(want, 0) {
			t.Fatalf("%s: %v", s, err)
		}
		for _, b := range padded(s) {
			got, end := parseFloat(b, 0)
			if end != len(s) || math.Float64bits(got) != math.Float64bits(want) {
				t.Errorf("parseFloat(%s) = %v (end %d of %d), want %v", b, got, end, len(s), want)
			}
		}
	}
}

func TestWhatIsNoNumberIsNone(t *testing.T) {
	for _, s := range []string{"", "-", "+1", ".5", "1.", "-.5", "1.e5", "1e", "1e+", "e5", "01", "-01", "00", "x", "NaN", "0x10", "1_000"} {
		for _, b := range padded(s) {
			if _, end := parseFloat(b, 0); end != 0 && (json.Valid(b[:end]) != true || end == len(s)) {
				t.Errorf("parseFloat(%q) ends at %d", b, end)
			}
			if _, end := parseInt(b, 0); end != 0 && end == len(s) {
				t.Errorf("parseInt(%q) ends at %d", b, end)
			}
		}
	}
}

func TestWholeNumbersAreExactOrAbsent(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "-0": 0, "7": 7, "-7": -7, "12345678": 12345678, "123456789012345678": 123456789012345678,
		"9007199254740993": 9007199254740993, "9223372036854775807": math.MaxInt64, "-9223372036854775807": -math.MaxInt64,
		"9223372036854775808": event.Absent, "1e3": 1000, "1.5e3": 1500, "12.0": 12, "12.5": event.Absent,
		"1e30": event.Absent, "1e999": event.Absent, "5000000000": 5_000_000_000, "1.0E7": 10_000_000,
	} {
		for _, b := range padded(s) {
			if got, end := parseInt(b, 0); got != want || end != len(s) {
				t.Errorf("parseInt(%s) = %d (end %d), want %d", b, got, end, want)
			}
		}
	}
}

func TestDigitsOfEveryLengthAreCounted(t *testing.T) {
	digits := "9876543210123456789098765"
	for n := range len(digits) {
		for _, tail := range []string{"", ",", "/", ":", "\"", "\x00", "\xff", "a234567890123456", "                "} {
			b := []byte("x" + digits[:n] + tail)
			u, end := parseDigits(b, 1)
			if end-1 != n {
				t.Errorf("%q: %d digits, want %d", b, end-1, n)
			}
			want, _ := strconv.ParseUint(digits[:n], 10, 64)
			if n > 0 && n <= exactDigits && u != want {
				t.Errorf("%q: %d, want %d", b, u, want)
			}
		}
	}
}

func TestNotFiniteIsAbsent(t *testing.T) {
	for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
		if got := finite(f); got == got {
			t.Errorf("finite(%v) = %v", f, got)
		}
	}
	if finite(1.5) != 1.5 || finite(math.MaxFloat64) != math.MaxFloat64 {
		t.Error("finite numbers must stay as they are")
	}
}
