package trend

import (
	"encoding/binary"
	"math"
	"testing"
)

// fuzzedSeries reads a series from bytes: one byte says what comes, so that short
// inputs already hold everything that must not be trusted.
func fuzzedSeries(data []byte) (y []float64) {
	special := [...]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e100, -1e100, math.MaxFloat64, 5e-324, 1e308}
	for len(data) > 0 && len(y) < 400 {
		kind := data[0]
		data = data[1:]
		switch {
		case kind < 16:
			y = append(y, special[int(kind)%len(special)])
		case kind < 32 && len(data) >= 8:
			y = append(y, math.Float64frombits(binary.LittleEndian.Uint64(data)))
			data = data[8:]
		case kind < 40 && len(y) > 0: // the same for long
			for range 30 {
				y = append(y, y[len(y)-1])
			}
		default:
			y = append(y, float64(kind))
		}
	}
	return y
}

func FuzzStatisticsOnAnySeries(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{100, 33, 33, 33, 33})
	f.Add([]byte("\x05!\x06!\x05!\x06!"))
	f.Add([]byte("0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	f.Add([]byte("(((((((((\xff(((((((((\xff(((((((((\xff(((((((((\xff(((((((((\xff(((((((((\xff((((((((\xff"))
	f.Add([]byte("!!\x08!\x09!!"))
	f.Fuzz(func(t *testing.T, data []byte) {
		y := fuzzedSeries(data)
		s := new(Scratch)
		x := ramp(len(y))
		reversed := make([]float64, len(y))
		for i, v := range y {
			reversed[len(y)-1-i] = v
		}
		fuzzCompare(t, s, y)
		fuzzLocate(t, s, x, y)
		fuzzForecast(t, s, x, y)
		fuzzAssociation(t, s, y, reversed, x)
		fuzzRhythm(t, s, y)
	})
}

func finite(t *testing.T, what string, values ...float64) {
	t.Helper()
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("%s is %v", what, values)
			return
		}
	}
}

func fuzzCompare(t *testing.T, s *Scratch, y []float64) {
	b := s.Baseline(y, 0)
	finite(t, "baseline", b.Level, b.Spread)
	c := NewCUSUM(CUSUMOptions{Side: BothWays})
	c.Freeze(b)
	for i, v := range y {
		c.Push(int64(i), v)
	}
	finite(t, "sum", c.Alarm().Sum)
	before, recent := SplitRecent(y, 20, 10)
	r := s.RankSum(before, recent, RankSumOptions{})
	finite(t, "rank sum", r.Z, r.RawZ, r.Effect, r.R1, r.VarianceFactor, r.Shift)
}

func fuzzLocate(t *testing.T, s *Scratch, x, y []float64) {
	c := s.Locate(x, y)
	finite(t, "change", c.Before, c.After, c.Slope, c.Gain)
	if c.Enough && (c.Index < 0 || c.Index >= len(y) || c.Low > c.Index || c.High < c.Index || c.Gain > 1) {
		t.Errorf("%+v of %d points", c, len(y))
	}
}

func fuzzForecast(t *testing.T, s *Scratch, x, y []float64) {
	r := s.TimeToLimit(x, y, 1000, LimitOptions{MinPoints: 10, Z: 1})
	finite(t, "forecast", r.Now, r.Slope, r.Z, r.Horizon)
	if r.Reach == Ahead && !(r.ETA >= 0 && r.ETA <= r.Horizon && r.Low <= r.ETA && r.High >= r.ETA) {
		t.Errorf("%+v", r)
	}
}

func fuzzAssociation(t *testing.T, s *Scratch, y, b, x []float64) {
	a := s.PartialRank(y, b, x, x, PartialOptions{MinPoints: 1})
	for _, r := range []float64{a.Driver, a.Rival, a.RawDriver, a.RawRival, a.DriverTime, a.RivalTime, a.FigureTime, a.DriverRival} {
		if !(math.Abs(r) <= 1) {
			t.Errorf("%+v", a)
		}
	}
	if e := s.Elasticity(y, b); !math.IsNaN(e.Value) && !(e.Low <= e.Value && e.Value <= e.High) {
		t.Errorf("%+v", e)
	}
}

func fuzzRhythm(t *testing.T, s *Scratch, y []float64) {
	batch, at := evenly(len(y), 1000)
	r := s.Periodicity(batch, at, y, SpikeOptions{})
	if !(r.RBatches >= 0 && r.RBatches <= 1+1e-9) || !(math.Abs(r.ACF) <= 3) || r.Spikes > len(y) {
		t.Errorf("%+v", r)
	}
	if r.Axis != Irregular && !(r.Batches > 0) && !(r.Ms > 0) {
		t.Errorf("%+v", r)
	}
}

func FuzzColumnsOnAnyStream(f *testing.F) {
	f.Add([]byte{}, uint8(0), uint16(0))
	f.Add([]byte("abcdefghijklmnopqrstuvwxyz"), uint8(3), uint16(100))
	f.Add([]byte("\x00\x01\x02\x03\x04\xff\xfe\xfd\xfc"), uint8(255), uint16(65535))
	f.Fuzz(func(t *testing.T, data []byte, size uint8, span uint16) {
		c := NewColumns(2, ColumnsOptions{Fine: int(size), Coarse: int(size) / 2, Longest: Span{Batches: int(span)}})
		number := c.Watch(0, Span{Batches: int(span) / 3})
		batch, at := int64(0), int64(0)
		var series Series
		for round := range 3 {
			for i, d := range data {
				batch += int64(d % 4)
				at += int64(d)*1000 - 60_000
				values := [...]float32{float32(d), float32(math.NaN()), float32(math.Inf(int(d)%2*2 - 1)), -float32(d) * 1e30}
				c.Push(batch, at, []float32{values[d%4], values[(int(d)/4+i)%4]})
			}
			checkColumns(t, c)
			o := RisingOptions{MinPoints: 10, Z: 0.5, GateZ: 0.1, AdjustForLoad: true}
			got, want := c.RisingWatched(number, 1, o), c.Rising(0, 1, Span{Batches: int(span) / 3}, o)
			if got != want && c.fine.n < c.o.Fine {
				t.Fatalf("round %d: %+v and %+v", round, got, want)
			}
			c.Level(0, 1, Span{Batches: 5}, Span{Batches: int(span) / 2}, LevelOptions{AdjustForLoad: true})
			c.Series(0, Span{Batches: int(span)}, &series)
		}
	})
}
