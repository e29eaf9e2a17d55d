package spark

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stategauge/stategauge/event"
)

// replaySender writes captured envelopes again, each sender by its own Sender.
type replaySender struct {
	*Sender
	executors Executors
}

var kinds = map[string]event.Kind{
	"started": event.KindStarted, "progress": event.KindProgress, "idle": event.KindIdle,
	"terminated": event.KindTerminated, "heartbeat": event.KindHeartbeat,
}

func newReplaySender(t testing.TB, o object) *replaySender {
	app := parsed(t, o["app"])
	v, err := ParseVersion(app.text(t, "sparkVersion"))
	if err != nil {
		t.Fatal(err)
	}
	a := App{ID: app.text(t, "id"), Name: app.text(t, "name"), Version: v}
	return &replaySender{Sender: NewSender(o.text(t, "sender"), a, 0)}
}

func (r *replaySender) rewrite(t testing.TB, o object) string {
	t.Helper()
	r.seq, r.dropped = o.whole(t, "seq", 0)-1, o.whole(t, "dropped", 0)
	x := r.executors
	if o["executors"] != nil {
		d := parsed(t, o["executors"])
		x = Executors{
			d.whole(t, "count", 0), d.whole(t, "cores", 0), d.whole(t, "gcTimeMs", 0),
			d.whole(t, "memoryBytes", 0), d.whole(t, "overheadBytes", -1), d.whole(t, "losses", 0),
		}
	}
	kind := kinds[o.text(t, "type")]
	inner := parsed(t, o["event"])
	if kind == event.KindHeartbeat {
		r.beatMs = o.time(t, "at")
		var active []Active
		for _, a := range inner.list(t, "active") {
			active = append(active, Active{a.text(t, "id"), a.text(t, "runId"), string(a["triggerActive"]) == "true"})
		}
		return string(r.AppendHeartbeat(nil, active, &x))
	}
	r.executors = x
	e := Envelope{Kind: kind, AtMs: o.time(t, "at"), QueryID: inner.text(t, "id"), Executors: x, Event: o["event"], Conf: pairs(t, o["conf"])}
	if kind == event.KindTerminated {
		e.Event = AppendListenerTerminated(nil, &Terminated{
			e.QueryID, inner.text(t, "runId"), inner.text(t, "exception"), inner.text(t, "errorClassOnException"),
		})
	}
	return string(r.Append(nil, &e))
}

// pairs reads an object of strings in its order.
func pairs(t testing.TB, raw json.RawMessage) (out []KV) {
	t.Helper()
	if raw == nil {
		return nil
	}
	values := parsed(t, raw)
	for _, m := range regexp.MustCompile(`"(spark[^"]+)":`).FindAllSubmatch(raw, -1) {
		out = append(out, KV{string(m[1]), values.text(t, string(m[1]))})
	}
	return out
}

func TestEveryCapturedEnvelopeIsWrittenAgainToTheByte(t *testing.T) {
	for _, s := range capturedStreams(t, true) {
		t.Run(s.name, func(t *testing.T) {
			senders := map[string]*replaySender{}
			for _, line := range s.lines {
				o := parsed(t, line)
				id := o.text(t, "sender")
				if senders[id] == nil {
					senders[id] = newReplaySender(t, o)
				}
				if got, want := senders[id].rewrite(t, o), shortened(t, o, line); got != want {
					t.Fatalf("wrote\n%s\ncaptured\n%s", got, want)
				}
			}
		})
	}
}

// shortened cuts an exception to what the listener had kept: names of folders
// were replaced by longer ones after the capture.
func shortened(t testing.TB, o object, line []byte) string {
	t.Helper()
	text := parsed(t, o["event"])
	if text["exception"] == nil {
		return string(line)
	}
	rest := text.text(t, "exception")
	rest = rest[len(cut(rest, maxException)):]
	return strings.Replace(string(line), rest+`","errorClass`, `","errorClass`, 1)
}

// TestSettingsToldAreThoseOfTheCapturedRuns feeds what the runs were given.
func TestSettingsToldAreThoseOfTheCapturedRuns(t *testing.T) {
	compared := 0
	for _, s := range capturedStreams(t, true) {
		for _, line := range s.lines {
			o := parsed(t, line)
			if o["conf"] == nil {
				continue
			}
			told := pairs(t, o["conf"])
			given := map[string]string{}
			for _, kv := range told {
				// What a session answers by itself need not be given.
				if kv.Key != stateStore+"minDeltasForSnapshot" && kv.Key != streaming+"minBatchesToRetain" {
					given[kv.Key] = kv.Value
				}
			}
			c, faults := ParseConf(given, s.version)
			if faults != nil {
				t.Fatal(faults)
			}
			compared++
			if got := c.ListenerConf(s.version); fmt.Sprint(got) != fmt.Sprint(told) {
				t.Errorf("%s: told %v, captured %v", s.name, got, told)
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d were compared", compared)
	}
}

func newTestSender() *Sender {
	return NewSender(UUID(1, 2), App{ID: "app-1", Name: "shop\t", Version: supported[3], Cluster: "east"}, 1_000)
}

func TestContextGoesOutWhenItIsNewsOnly(t *testing.T) {
	s := newTestSender()
	x := Executors{Count: 2, Cores: 4, OverheadBytes: -1}
	conf := []KV{{"spark.locality.wait", "0s"}}
	step := func(kind event.Kind, query string) string {
		return string(s.Append(nil, &Envelope{Kind: kind, QueryID: query, Conf: conf, Executors: x, Event: []byte(`{}`)}))
	}
	check := func(what, line string, conf, executors bool) {
		t.Helper()
		if strings.Contains(line, `"conf":{"spark.locality.wait":"0s"}`) != conf || strings.Contains(line, `"executors":{"count"`) != executors {
			t.Errorf("%s: conf %v and executors %v expected in %s", what, conf, executors, line)
		}
		if !json.Valid([]byte(line)) {
			t.Errorf("%s: no JSON: %s", what, line)
		}
	}
	check("a start", step(event.KindStarted, "a"), true, true)
	check("a progress", step(event.KindProgress, "a"), false, false)
	check("the progress of an unknown query", step(event.KindProgress, "b"), true, true)
	check("the idle event of an unknown query", step(event.KindIdle, "c"), false, false)
	x.GCTimeMs = 99
	check("more garbage collection", step(event.KindProgress, "a"), false, false)
	x.Losses = 1
	if beat := string(s.AppendHeartbeat(nil, nil, &x)); !strings.Contains(beat, `"active":[]`) {
		t.Errorf("nothing is active in %s", beat)
	}
	check("after a loss", step(event.KindIdle, "a"), false, true)
	check("an end", step(event.KindTerminated, "a"), false, false)
	check("a start after the end", step(event.KindStarted, "a"), true, true)
}

func TestHeartbeatsComeEveryHalfMinute(t *testing.T) {
	s := newTestSender()
	if got := s.NextHeartbeat(); got != 31_000 {
		t.Errorf("the first is due at %d", got)
	}
	s.Drop(3)
	line := string(s.AppendHeartbeat(nil, []Active{{"q", "r", true}, {"q2", "r2", false}}, &Executors{Count: 1, Cores: 2, OverheadBytes: 5}))
	want := `{"v":1,"sender":"00000000-0000-4001-8000-000000000002","seq":1,"dropped":3,"at":"1970-01-01T00:00:31Z",` +
		`"app":{"id":"app-1","name":"shop\u0009","sparkVersion":"4.1.4","cluster":"east"},` +
		`"executors":{"count":1,"cores":2,"gcTimeMs":0,"memoryBytes":0,"overheadBytes":5,"losses":0},"type":"heartbeat",` +
		`"event":{"active":[{"id":"q","runId":"r","triggerActive":true},{"id":"q2","runId":"r2","triggerActive":false}]}}`
	if line != want {
		t.Errorf("wrote\n%s\nwant\n%s", line, want)
	}
	if got := s.NextHeartbeat(); got != 61_000 {
		t.Errorf("the second is due at %d", got)
	}
	s.SkipHeartbeats(60_999)
	if got := s.NextHeartbeat(); got != 61_000 {
		t.Errorf("nothing is due to be skipped, but the next is %d", got)
	}
	s.SkipHeartbeats(121_000)
	if got := s.NextHeartbeat(); got != 151_000 {
		t.Errorf("after a pause the next is due at %d", got)
	}
}

func TestTextsSurviveTheListenersNotation(t *testing.T) {
	for _, text := range []string{"", "plain", "tab\tline\nquote\"\\", "snow ☃ and 🜁", "ends\u2028here\u2029", "\x00\x1f", "bad \xff"} {
		var got string
		if err := json.Unmarshal(appendText(nil, text), &got); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if want := strings.ToValidUTF8(text, "\ufffd"); got != want {
			t.Errorf("%q came back as %q", want, got)
		}
		if line := appendText(nil, text); strings.ContainsAny(string(line), "\n\u2028\u2029") {
			t.Errorf("%q does not stand on one line", line)
		}
	}
}

func TestLongExceptionsAreCut(t *testing.T) {
	long := strings.Repeat("é", maxException-1) + "🜁 and more"
	got := parsed(t, AppendListenerTerminated(nil, &Terminated{Exception: long})).text(t, "exception")
	if n := len(utf16.Encode([]rune(got))); n != maxException-1 {
		t.Errorf("%d units are left", n)
	}
	if got := cut("short", 5); got != "short" {
		t.Errorf("%q was cut", got)
	}
}

func TestUUIDsAreRandomOnes(t *testing.T) {
	pattern := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for i := range uint64(64) {
		for _, id := range []string{UUID(1<<i, 0), UUID(0, 1<<i), UUID(^uint64(0), 1<<i)} {
			if !pattern.MatchString(id) {
				t.Errorf("%s is no random UUID", id)
			}
			seen[id] = true
		}
	}
	if len(seen) < 170 {
		t.Errorf("only %d different ones", len(seen))
	}
}
