package rules

import "testing"

func TestExtentsAreReadAndShown(t *testing.T) {
	for text, want := range map[string]Extent{
		"20 batches":         {Batches: 20},
		"1 batch":            {Batches: 1},
		"30m":                {Ms: 30 * minuteMs},
		"2d":                 {Ms: 48 * hourMs},
		"20 batches and 30m": {Batches: 20, Ms: 30 * minuteMs},
		"1h30m and 5batches": {Batches: 5, Ms: 90 * minuteMs},
	} {
		var e Extent
		if err := e.DecodeScalar(text); err != nil || e != want {
			t.Errorf("%q: got %+v, %v, want %+v", text, e, err, want)
		}
		var again Extent
		if err := again.DecodeScalar(e.String()); err != nil || again != e {
			t.Errorf("%q shows as %q, which reads as %+v, %v", text, e, again, err)
		}
	}
	for _, text := range []string{
		"", "batches", "20", "-1 batches", "1.5 batches", "20 batches and", "and 30m", "20 batches, 30m", "30m and 30m", "20 bathces",
		"20 batches and 30 batches", "9999999 batches", "20 batches and 30m and 1h",
	} {
		e := Extent{Batches: 7}
		if err := e.DecodeScalar(text); err == nil {
			t.Errorf("%q reads as %+v, want an error", text, e)
		} else if e.Batches != 7 {
			t.Errorf("%q changed the extent in spite of %v", text, err)
		}
	}
}

func TestTheLargerPartOfAnExtentDecides(t *testing.T) {
	both := Extent{Batches: 20, Ms: 1000}
	for _, c := range []struct {
		e       Extent
		batches int
		ms      int64
		want    bool
	}{
		{both, 20, 1000, true},
		{both, 19, 5000, false},
		{both, 500, 999, false},
		{Extent{}, 0, 0, true},
		{Extent{Batches: 3}, 3, 0, true},
		{Extent{Ms: 5}, 0, 4, false},
	} {
		if got := c.e.Met(c.batches, c.ms); got != c.want {
			t.Errorf("%v after %d batches and %d ms: got %v", c.e, c.batches, c.ms, got)
		}
	}
}

func TestLongerExtents(t *testing.T) {
	short := Extent{Batches: 120, Ms: 2 * hourMs}
	for _, c := range []struct {
		e    Extent
		want bool
	}{
		{Extent{Batches: 240, Ms: 4 * hourMs}, true},
		{Extent{Batches: 240, Ms: 2 * hourMs}, true},
		{short, false},
		{Extent{Batches: 240}, false},
	} {
		if got := c.e.Longer(short); got != c.want {
			t.Errorf("%v longer than %v: got %v", c.e, short, got)
		}
	}
}
