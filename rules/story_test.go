package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/event"
)

func TestFailuresAreNamedByWhatTheyAre(t *testing.T) {
	for _, c := range []struct{ class, message, want string }{
		{"CONCURRENT_STREAM_LOG_UPDATE", "org.apache.spark.SparkException", "CONCURRENT_STREAM_LOG_UPDATE"},
		{"", "java.lang.IllegalStateException: order without a price", classOwnCode},
		{"", "java.lang.OutOfMemoryError: Java heap space", "out of memory"},
		{"", "ExecutorLostFailure (executor 2 exited) Reason: exit code 137(SIGKILL, possible container OOM)", "out of memory"},
		{"", "ExecutorLostFailure (executor 2 exited) Reason: worker lost", "executor lost"},
		{"STREAM_FAILED", "[STREAM_FAILED] Query terminated with exception: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] no", "STREAM_FAILED"},
		{"", "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred", "CANNOT_LOAD_STATE_STORE.UNCATEGORIZED"},
		{"", "java.lang.IllegalStateException: Partition t-0's offset was changed from 9 to 0, some data may have been missed.", "KAFKA_DATA_LOSS"},
		{"", "java.io.IOException: No space left on device", "disk full"},
		{"", "com.amazonaws.AmazonS3Exception: Access Denied (Status Code: 403)", "no access"},
		{"", "java.net.SocketTimeoutException: connect timed out", "time out"},
		{"", "Job 3 cancelled because SparkContext was shut down", classCancelled},
		{"SPARK_JOB_CANCELLED", "Job 3 cancelled by somebody", classCancelled},
		{"", "ValueError: [row] 12 is no price", classOwnCode},
		{"", "", classOwnCode},
	} {
		f := failureOf(&event.Failure{Class: c.class, Message: c.message})
		if f.class != c.want {
			t.Errorf("%q %q is called %q, want %q", c.class, c.message, f.class, c.want)
		}
	}
	if f := failureOf(nil); f.class != classOwnCode {
		t.Errorf("a failure without a word is called %q", f.class)
	}
}

func TestEveryKindOfFailureSaysWhatItMeansAndWhatToDo(t *testing.T) {
	for _, k := range failureKinds {
		if k.means == "" || k.fix == "" || errorMeans(k.class) != k.means || errorFix(k.class+".SUB_CLASS") != k.fix {
			t.Errorf("%s: means %q, fix %q", k.class, errorMeans(k.class), errorFix(k.class+".SUB_CLASS"))
		}
	}
	if got := errorMeans("SOMETHING_NEW"); !strings.Contains(got, "SOMETHING_NEW") {
		t.Errorf("an unknown class means %q", got)
	}
}

func TestWhatIsUsualIsNotMovedByOneAccident(t *testing.T) {
	var r recent
	for range 200 {
		r.add(1000)
	}
	for range 8 {
		r.add(1000)
	}
	r.add(3_600_000)
	for range 8 {
		r.add(1000)
	}
	if r.p50 != 1000 || r.p90 != 1000 || r.p99 != 1000 || r.longest() != 3_600_000 {
		t.Errorf("p50 %g p90 %g p99 %g longest %g", r.p50, r.p90, r.p99, r.longest())
	}
	for _, x := range []float64{0, -5, 1e15} {
		n := r.n
		if r.add(x); r.n != n && r.n != recentKept {
			t.Errorf("%g was taken for a time", x)
		}
	}
}

func TestTheRecordIsThatOfSevenDays(t *testing.T) {
	var d days
	day0 := int64(20_000) * dayMs
	d.add(500, day0)
	d.add(900, day0+dayMs)
	d.add(100, day0+dayMs+hourMs)
	for _, c := range []struct {
		after       int64
		most, habit float64
	}{{1, 900, 500}, {6, 900, 500}, {7, 900, 0}, {8, 0, 0}} {
		most, habit := d.largest(day0 + c.after*dayMs)
		if most != c.most || habit != c.habit {
			t.Errorf("after %d days: %g and %g, want %g and %g", c.after, most, habit, c.most, c.habit)
		}
	}
	d.add(1, day0-dayMs*3) // out of order: too old for its place or not, never a panic
	d.add(1, -5)
}

// lifeRules are one rule of each detector of events.
const lifeRules = `      - {alert: Hung, silent: {with: heartbeats}}
      - {alert: Stalled, silent: {}}
      - {alert: Quiet, silent: {with: record}}
      - {alert: Failed, failed: {}}
      - {alert: Dead, failed: {after: 10m}}
      - {alert: Loop, restarting: {}}
      - {alert: Lost, sender: {}}
      - {alert: Shared, changed: {what: shared_runs}}
      - {alert: Rewound, changed: {what: rewound}}
      - {alert: Reset, changed: {what: checkpoint_reset}}
      - {alert: Partitions, changed: {what: partitions}}
      - {alert: Twice, changed: {what: instances}}
      - {alert: Missed, changed: {what: missed}}
      - {alert: Repaired, changed: {what: repaired}}
      - {alert: Reloaded, changed: {what: reloaded}}
`

// TestABacklogThatComesAtOnceIsNoSilenceAndNoLoop replays a day within a second of
// our clock: rhythms and loops are told by the sender's times.
func TestABacklogThatComesAtOnceIsNoSilenceAndNoLoop(t *testing.T) {
	w := newWorld(eventPack(t, lifeRules))
	q := w.query("a")
	e, arrived := w.e, int64(startMs+24*hourMs)
	w.e = New(nil, Options{}) // whatever the world says by itself
	for day := range int64(24) {
		w.nowMs = startMs + day*hourMs
		u := w.started(q)
		u.Origin.ReceivedMs = arrived
		w.said = e.Apply(&u, w.said)
		for range 50 {
			w.nowMs += minuteMs
			u := w.batchUpdate(q)
			u.Origin.ReceivedMs = arrived
			w.said = e.Apply(&u, w.said)
		}
	}
	for i := range int64(40) { // ten minutes of real silence, then
		w.said = e.Tick(arrived+i*worldTickMs, w.said)
	}
	if got := changed(w.said, Firing); len(got) > 0 {
		t.Errorf("got %v", lines(got))
	}
}

func TestARuleThatAReloadBringsKnowsWhatWasBefore(t *testing.T) {
	w := newWorld(eventPack(t, "      - {alert: Other, changed: {what: rewound}}\n"))
	for _, line := range []string{"a,b: start", "pass 1h", "a: fail -: java.lang.Error", "b: silent", "pass 1h"} {
		w.play(t, line)
	}
	w.said = w.e.Reload(eventPack(t, lifeRules), w.nowMs, nil)
	w.play(t, "pass 1m")
	var got []string
	for _, v := range changed(w.said, Firing) {
		got = append(got, v.Rule+" "+v.Query.Name)
	}
	if fmt.Sprint(got) != "[Failed a Dead a Quiet b]" {
		t.Errorf("got %v", got)
	}
}

func TestAGroupsAlertOutlivesAReloadAndEndsWithItsRule(t *testing.T) {
	const lost = "      - {alert: Lost, sender: {}}\n"
	w := newWorld(eventPack(t, lost))
	for _, line := range []string{"a,b: start", "pass 1h", "a,b: silent", "pass 1h"} {
		w.play(t, line)
	}
	if got := standing(w.e); len(got) != 1 {
		t.Fatalf("standing before: %v", got)
	}
	if said := w.e.Reload(eventPack(t, "      - {alert: More, failed: {}}\n"+lost), w.nowMs, nil); len(said) > 0 || len(standing(w.e)) != 1 {
		t.Errorf("a reload that keeps the rule said %v, standing %v", lines(said), standing(w.e))
	}
	checkCounts(t, w.e)
	if st := w.e.Status(true).Groups[0].Rules[1]; st.Firing != 1 || len(st.Judgements) != 1 {
		t.Errorf("the status has %d firing and %d judgements", st.Firing, len(st.Judgements))
	}
	said := w.e.Reload(eventPack(t, "      - {alert: More, failed: {}}\n"), w.nowMs, nil)
	if got := changed(said, Resolved); len(got) != 1 || len(standing(w.e)) != 0 {
		t.Errorf("a reload without the rule said %v, standing %v", lines(said), standing(w.e))
	}
	checkCounts(t, w.e)
}

func TestWhatIsKeptOfSendersStaysSmall(t *testing.T) {
	w := newWorld(eventPack(t, lifeRules))
	w.play(t, "a: start")
	for i := range 3 * maxSenders {
		env := &event.Envelope{Sender: fmt.Sprint("stranger", i)}
		if i%2 == 0 {
			env.Active = []event.ActiveQuery{{ID: "id-a"}}
		} else {
			env.Active = []event.ActiveQuery{{ID: event.QueryID(fmt.Sprint("unknown", i))}}
		}
		w.e.Apply(&event.Update{Event: &event.Event{Kind: event.KindHeartbeat, Envelope: env}, Outcome: event.OutcomeHeartbeat}, nil)
	}
	if n := len(w.e.around.senders); n > maxSenders {
		t.Errorf("%d senders are kept", n)
	}
	for i := range 50 {
		w.play(t, fmt.Sprintf("a: stop app=app%d", i))
		w.play(t, "a: start")
	}
	w.e.Tick(w.nowMs+9*dayMs, nil)
	if n, m := len(w.e.around.senders), len(w.e.around.drivers); n != 0 || m != 1 {
		t.Errorf("%d senders and %d applications are kept after days", n, m)
	}
}

// FuzzStory plays updates in any order, with any of their
// parts missing.
func FuzzStory(f *testing.F) {
	f.Add([]byte("started, a batch, an exception"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 250, 251, 252, 253, 254, 255})
	p := eventPack(f, lifeRules)
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newWorld(p)
		for i := 0; i+1 < len(script); i += 2 {
			w.anything(script[i], script[i+1])
		}
		checkCounts(t, w.e)
		for _, v := range w.said {
			if v.Alert != nil && v.Alert.State == Firing && v.Alert.Labels.Get("alertname") == "" {
				t.Fatal("an alert without a name")
			}
		}
	})
}

// anything does what two bytes say.
func (w *world) anything(what, how byte) {
	q := w.query(string(rune('a' + how%3)))
	switch what % 16 {
	case 0, 1:
		w.start(q)
	case 2:
		w.end(q, nil)
	case 3:
		w.end(q, &event.Failure{Message: "java.lang.Error"})
	case 4:
		w.nowMs += int64(how) * minuteMs
	case 5:
		w.nowMs -= int64(how) * minuteMs
	case 6:
		w.said = w.e.Tick(w.nowMs, w.said)
	case 7:
		w.retire(q, "")
	case 8:
		w.retire(q, "b")
	case 9:
		q.next -= int64(how)
		q.flags["rewound"] = 1
	case 10:
		q.figures["instances"], q.figures["partitions"] = float64(how), float64(how/2)
	case 11:
		w.send(event.Update{Event: &event.Event{Kind: event.KindHeartbeat, Envelope: &event.Envelope{
			Sender: "s", Active: []event.ActiveQuery{{ID: event.QueryID(q.id), TriggerActive: how%2 == 0}},
		}}, Outcome: event.OutcomeHeartbeat})
	case 12:
		q.flags["missed"] = float64(how)
		w.batch(q)
	case 13:
		w.said = w.e.Forget(event.QueryID(q.id), w.nowMs, w.said)
	default:
		q.took = int64(how) * 1000
		w.batch(q)
	}
}
