package spark

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDoublesAsJavaPrintsThem(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 1: "1.0", 0.5: "0.5", 1e7: "1.0E7", 9999999: "9999999.0", 12345678.9: "1.23456789E7", 5.4e-4: "5.4E-4",
		0.001: "0.001", 0.00099: "9.9E-4", 1e100: "1.0E100", -2.5e-10: "-2.5E-10", 17.685342388228637: "17.685342388228637",
		math.MaxFloat64: "1.7976931348623157E308", -3: "-3.0",
	} {
		if got := string(appendJavaDouble(nil, f)); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		f := math.Exp(rng.NormFloat64() * 12)
		if got, err := strconv.ParseFloat(string(appendJavaDouble(nil, f)), 64); err != nil || got != f {
			t.Fatalf("%v is read back as %v, %v", f, got, err)
		}
	}
}

func TestRatesOfNewVersionsHaveOneDecimal(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0.0", 0.04: "0.0", 0.05: "0.1", 0.25: "0.3", 0.35: "0.4", 9.95: "10.0", 99.96: "100.0", 12345678: "12345678.0",
		351.9: "351.9", 544.8601525608427: "544.9", -0.04: "0.0", -0.96: "-1.0", -9.99: "-10.0", 1e22: "10000000000000000000000.0", 0.1: "0.1",
	} {
		if got := string(appendTenths([]byte("x"), f)); got != "x"+want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		f := math.Exp(rng.NormFloat64() * 6)
		text := string(appendTenths(nil, f))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(got-f) > 0.05000001+f*1e-15 || strings.Index(text, ".") != len(text)-2 {
			t.Fatalf("%v is %s", f, text)
		}
	}
}

func TestTimesAreThoseOfTheCalendar(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	times := []int64{0, -1, 951782399999, 951782400000, 4107542400000, 253402300799999, -62135596800000}
	for range 20000 {
		times = append(times, rng.Int64N(253402300799999+62135596800000)-62135596800000)
	}
	for _, ms := range times {
		at := time.UnixMilli(ms).UTC()
		if got, want := string(AppendTime(nil, ms)), at.Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Fatalf("%d is %s, want %s", ms, got, want)
		}
	}
	if got := string(AppendInstant(nil, 1_000)); got != "1970-01-01T00:00:01Z" {
		t.Errorf("a whole second is %s", got)
	}
	if got := string(AppendInstant(nil, 1_001)); got != "1970-01-01T00:00:01.001Z" {
		t.Errorf("a fraction is %s", got)
	}
}
