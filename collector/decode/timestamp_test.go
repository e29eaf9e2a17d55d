package decode

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stategauge/stategauge/event"
)

func TestTimesAgreeWithTheStandardLibrary(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	first := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	last := time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
	for range 5000 {
		at := time.UnixMilli(first + rng.Int64N(last-first)).UTC()
		zone := time.FixedZone("", (rng.IntN(57)-28)*1800)
		for _, layout := range []string{"2006-01-02T15:04:05.000Z07:00", "2006-01-02T15:04:05.000Z0700", "2006-01-02 15:04:05.000000Z07:00"} {
			s := at.In(zone).Format(layout)
			if s[4] != '-' || at.In(zone).Year() < 1 {
				continue // the offset led out of the four-digit years
			}
			if got := parseTime([]byte(s)); got != at.UnixMilli() {
				t.Fatalf("parseTime(%s) = %d, want %d", s, got, at.UnixMilli())
			}
		}
		s := at.Format("2006-01-02T15:04:05.000Z")
		if got, ok := parseISO([]byte(s)); !ok || got != at.UnixMilli() {
			t.Fatalf("parseISO(%s) = %d, %v, want %d", s, got, ok, at.UnixMilli())
		}
	}
}

func TestEveryDayOfFourCenturiesHasItsNumber(t *testing.T) {
	want := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 366 * 402 {
		y, m, d := want.Date()
		if got := daysSinceEpoch(int64(y), int64(m), int64(d)); got != want.Unix()/86400 {
			t.Fatalf("%s is day %d, want %d", want.Format(time.DateOnly), got, want.Unix()/86400)
		}
		if next := want.AddDate(0, 0, 1); next.Month() != m && int64(d) != monthDays(int64(y), int64(m)) {
			t.Fatalf("%d-%d has %d days, want %d", y, m, monthDays(int64(y), int64(m)), d)
		}
		want = want.AddDate(0, 0, 1)
	}
}

func TestWhatIsNoTimeIsAbsent(t *testing.T) {
	for _, s := range []string{
		"", "null", "T", "2027-05-06", "2027-05-06T", "2027-05-06T07:08", "2027-05-06T07:08:09.", "2027-05-06T07:08:09.Z",
		"2027-00-06T07:08:09Z", "2027-13-06T07:08:09Z", "2027-02-29T07:08:09Z", "2027-04-31T07:08:09Z", "2027-05-06T24:08:09Z",
		"2027-05-06T07:60:09Z", "2027-05-06T07:08:61Z", "2027-05-06X07:08:09Z", "2027/05/06T07:08:09Z", "20x7-05-06T07:08:09.000Z",
		"2027-05-06T07:08:09+", "2027-05-06T07:08:09+1", "2027-05-06T07:08:09+01:0", "2027-05-06T07:08:09+0x:00", "2027-05-06T07:08:09ZZ",
		"12x", "1.5", "-", "2027-05-06T07:08:09.0x0Z", "1900-02-29T00:00:00.000Z",
	} {
		if got := parseTime([]byte(s)); got != event.Absent {
			t.Errorf("parseTime(%q) = %d", s, got)
		}
	}
}
