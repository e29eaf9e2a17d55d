package replay

import (
	"math"
	"testing"
)

func TestFiguresReadTheWayPeopleWriteThem(t *testing.T) {
	nan := math.NaN()
	tests := []struct{ got, want string }{
		{whole(0), "0"},
		{whole(999), "999"},
		{whole(1000), "1,000"},
		{whole(1234567.4), "1,234,567"},
		{whole(-1234), "-1,234"},
		{whole(nan), "-"},
		{count(12.25), "12"},
		{count(2.25), "2.2"},
		{count(99_999), "99,999"},
		{count(123_456), "123 k"},
		{count(12_840_233), "12.8 M"},
		{count(math.Inf(1)), "+Inf T"},
		{size(0), "0 B"},
		{size(1023), "1023 B"},
		{size(1536), "1.5 KiB"},
		{size(2871044096), "2.7 GiB"},
		{size(nan), "-"},
		{seconds(0), "0"},
		{seconds(0.0012), "1.2 ms"},
		{seconds(0.85), "850 ms"},
		{seconds(1.25), "1.2 s"},
		{seconds(59.96), "1 m 0 s"},
		{seconds(200), "3 m 20 s"},
		{seconds(7500), "2 h 5 m"},
		{seconds(800_000), "9 d 6 h"},
		{seconds(-2), "-2.0 s"},
		{seconds(nan), "-"},
		{percent(0.123), "12 %"},
		{percent(0.012), "1.2 %"},
		{percent(0.0001), "< 0.1 %"},
		{percent(0), "0.0 %"},
		{percent(nan), "-"},
		{clip("abcdef", 5), "ab..."},
		{clip("abcde", 5), "abcde"},
		{figure(nil, whole), "-"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestQuantilesStayTrueWhenTheSampleIsThinned(t *testing.T) {
	var s sample
	const n = 10 * sampleLimit
	for i := range n {
		s.add(float64(i))
	}
	if len(s.values) > sampleLimit || s.n != n {
		t.Fatalf("%d values kept of %d", len(s.values), s.n)
	}
	for _, q := range []float64{0.05, 0.5, 0.95} {
		if got := s.quantile(q) / n; math.Abs(got-q) > 0.001 {
			t.Errorf("quantile %v reads %v", q, got)
		}
	}
	if s.max != n-1 || s.first != 0 || s.last != n-1 || s.mean() != (n-1)/2.0 {
		t.Errorf("max %v, first %v, last %v, mean %v", s.max, s.first, s.last, s.mean())
	}
}

func TestASampleWithoutValuesIsAbsent(t *testing.T) {
	var s sample
	s.add(math.NaN())
	if !math.IsNaN(s.mean()) || !math.IsNaN(s.quantile(0.5)) || !math.IsNaN(s.third(true)) || s.spread(1) != nil {
		t.Errorf("%+v", s)
	}
}
