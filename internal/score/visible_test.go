package score

import (
	"testing"

	"github.com/stategauge/stategauge/simulator/scenario"
)

func TestAFaultIsHiddenWhereNobodyCouldSeeItWhoKnewItsFirstBatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		rise   float64
		expect scenario.Expectation
		hidden bool
	}{
		{"it lies within the noise", 1.01, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 2}, true},
		{"beyond the noise and small beside the level", 1.09, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 2}, true},
		{"it is there to be seen", 1.2, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 2}, false},
		{"of any query", 1.2, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150}, false},
		{"it is another query's", 1.2, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1150, Query: 1}, true},
		{"no figure tells of it", 1, scenario.Expectation{Symptom: "failed", FromBatch: 1150}, false},
		{"too few batches to say so", 1, scenario.Expectation{Symptom: "commit-sync-rising", FromBatch: 1290}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := judged(t, streamOf(onceFrom(2, 150, c.rise), always), c.expect).Expected[0]
			if x.Hidden != c.hidden {
				t.Errorf("hidden: %v, want %v", x.Hidden, c.hidden)
			}
		})
	}
}

func TestWhatIsHiddenIsLeftOutOfWhatWasVisible(t *testing.T) {
	var row SizeRow
	row.add(&result{Expected: []outcome{{Found: true}, {}, {Hidden: true}, {Found: true, Hidden: true}, {CannotTell: true}}})
	if row.Expected != 4 || row.Found != 2 || row.Visible != 2 || row.VisibleFound != 1 {
		t.Errorf("%+v", row)
	}
}
