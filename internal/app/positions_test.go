package app

import (
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

func TestWhereThePastOfAPartitionBegins(t *testing.T) {
	const none = event.Absent
	for _, c := range []struct {
		what                string
		group, stored, back int64
		offset, live        int64
	}{
		{"nobody was here", none, none, none, none, none},
		{"nobody was here, and the topic has a past", none, none, 40, none, none},
		{"the group was here, and the brokers tell no times", 100, none, none, none, none},
		{"the group was here", 100, none, 40, 40, 100},
		{"the group is behind what rules look at", 30, none, 40, none, none},
		{"history is where the group is", 100, 100, 40, 100, 100},
		{"history is ahead of the group", 100, 120, 40, 120, 120},
		{"history alone was here", none, 120, 40, 120, 120},
		{"another went on after history", 200, 120, 150, 150, 200},
		{"another went on, and history is young", 200, 120, 40, 40, 200},
		{"another went on, and the brokers tell no times", 200, 120, none, 120, 200},
	} {
		got := startOf(&collector.Assignment{Topic: "t", Committed: c.group}, c.stored, c.back)
		if want := (collector.Start{Offset: c.offset, Live: c.live}); got != want {
			t.Errorf("%s: %+v, want %+v", c.what, got, want)
		}
	}
}
