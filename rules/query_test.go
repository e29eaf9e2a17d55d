package rules

import "testing"

// judgedAfter plays batches to a pack of one rule and returns how many batches lie
// between its last two judgements.
func judgedAfter(t *testing.T, rule string, everyMs int64) int {
	t.Helper()
	const took = "signals: {took: {of: query, value: durationMs.triggerExecution}}\ngroups:\n  - name: g\n    rules:\n"
	s := newStream(New(loaded(t, took+rule), Options{}))
	s.everyMs = everyMs
	var times []int
	for i := range 200 {
		s.play(figures{duration: float64(500 + i%7), rows: 100})
		for _, q := range s.e.queries {
			for _, one := range q.rules[0] {
				if one.waited == 0 {
					times = append(times, i)
				}
			}
		}
	}
	if len(times) < 3 {
		t.Fatalf("judged after batches %v only", times)
	}
	return times[len(times)-1] - times[len(times)-2]
}

func TestAQuietRuleIsJudgedAsOftenAsItsWindowTurns(t *testing.T) {
	const (
		ofHours   = "      - {alert: A, signal: took, rising: {over: 60 batches and 1h}}\n"
		ofBatches = "      - {alert: A, signal: took, rising: {over: 60 batches}}\n"
		ofRhythm  = "      - {alert: A, signal: took, spiking: {over: 60 batches and 1h}}\n"
		ofEach    = "      - {alert: A, signal: took, above: {limit: 1000, batches: 3 of 3}}\n"
	)
	for _, tc := range []struct {
		about, rule string
		everyMs     int64
		want        int
	}{
		{"hours, batches of a second: a few strides", ofHours, 1000, hoursPatience * quietStride},
		{"hours, batches of ten seconds: five minutes", ofHours, 10_000, 30},
		{"hours, batches of a minute: five minutes", ofHours, minuteMs, 5},
		{"hours, batches of an hour: each", ofHours, hourMs, 1},
		{"batches alone, of a second: a stride", ofBatches, 1000, quietStride},
		{"batches alone, of ten seconds: a stride", ofBatches, 10_000, quietStride},
		{"batches alone, of a minute: five minutes", ofBatches, minuteMs, 5},
		{"a rhythm, batches of ten seconds: strides of its own, two while nothing spikes", ofRhythm, 10_000, 32},
		{"a limit that each batch is held against", ofEach, 1000, 1},
	} {
		t.Run(tc.about, func(t *testing.T) {
			if got := judgedAfter(t, tc.rule, tc.everyMs); got != tc.want {
				t.Errorf("judged after %d batches, want %d", got, tc.want)
			}
		})
	}
}
