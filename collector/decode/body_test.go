package decode

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// outcomes writes what each element of a body became in one letter: an event, a
// skipped line, or the first letters of a reason.
func outcomes(pool *Pool, body []byte) string {
	var out []string
	for _, r := range decodeAll(pool, body) {
		switch {
		case r.Reason != "":
			out = append(out, string(r.Reason))
		case r.Event == nil:
			out = append(out, "skip")
		default:
			out = append(out, r.Event.Kind.String())
		}
	}
	return strings.Join(out, " ")
}

const good = `{"id":"q","runId":"r","batchId":1}`

func TestBadInputIsCountedByReasonAndLosesNothingElse(t *testing.T) {
	pool := NewPool(Limits{EventBytes: 64 << 10})
	for name, c := range map[string]struct{ body, want string }{
		"nothing at all":          {"", "empty"},
		"blanks":                  {" \r\n\t", "empty"},
		"only a byte order mark":  {"\xef\xbb\xbf", "empty"},
		"a byte order mark":       {"\xef\xbb\xbf" + good, "progress"},
		"carriage returns":        {good + "\r\n" + good + "\r\n", "progress progress"},
		"gzip data":               {"\x1f\x8b\x08\x00\x00\n\n{}", "encoding"},
		"zstd data":               {"\x28\xb5\x2f\xfdabc", "encoding"},
		"lz4 data":                {"\x04\x22\x4d\x18abc", "encoding"},
		"LZ4 blocks":              {"LZ4Block\x15abc", "encoding"},
		"an opening brace":        {"{", "truncated"},
		"an opening quote":        {`"`, "truncated"},
		"half a word":             {"nul", "syntax"},
		"open brackets":           {strings.Repeat("[", 100<<10), "depth"},
		"open braces":             {strings.Repeat(`{"a":`, 20<<10), "depth"},
		"NUL bytes":               {"\x00\x00\n" + good, "syntax progress"},
		"a large event":           {`{"a":"` + strings.Repeat("x", 70<<10) + `"}` + "\n" + good, "too_large progress"},
		"a large event in a line": {`[{"a":"` + strings.Repeat("x", 70<<10) + `"},` + good + "]", "too_large progress"},
		"a large open event":      {`{"a":"` + strings.Repeat("x", 70<<10) + "\n" + good, "too_large progress"},
		"binary lines":            {"\xff\xfe\n\x80\x81\n" + good, "syntax syntax progress"},
		"good, bad, good":         {good + "\n{\n" + good, "progress syntax progress"},
		"a number before text":    {"2027 INFO x\n" + good, "shape progress"},
		"a number before JSON":    {"12 " + good, "shape progress"},
		"a quoted line":           {`"text" ` + good, "shape progress"},
		"an unknown listener":     {`{"Event":"com.example.Listener$X","a":1}` + good, "skip progress"},
		"a listener line cut":     {`{"Event":"SparkListenerTaskEnd","a":"` + "\n" + good, "skip progress"},
		"nested arrays":           {"[[" + good + "]," + good + "]", "shape progress"},
		"brackets in strings":     {`{"a":"}]","b":` + "]}\n" + good, "syntax progress"},
		"a closed broken object":  {`{"a":{"b":1]},` + good, "syntax progress"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomes(pool, []byte(c.body)); got != c.want {
				t.Errorf("%.60q became %q, want %q", c.body, got, c.want)
			}
		})
	}
}

func TestBodyStopsWhenToldTo(t *testing.T) {
	pool := NewPool(Limits{})
	for stop := 1; stop <= 3; stop++ {
		seen := 0
		pool.Get().Body([]byte(good+"\nbad\n"+good+"\n"), func(i int, ev *event.Event, _ *collector.Reject) bool {
			if i != seen {
				t.Errorf("index %d, want %d", i, seen)
			}
			seen++
			pool.Release(ev)
			return seen < stop
		})
		if seen != stop {
			t.Errorf("saw %d elements, want %d", seen, stop)
		}
	}
}

func TestRejectsNameByteAndLine(t *testing.T) {
	body := good + "\n\n" + `{"id":"q",` + "\n" + `"batchId":x}` + "\n" + good + "\n" + `{"a":1}`
	var rejects []*collector.Reject
	pool := NewPool(Limits{})
	pool.Get().Body([]byte(body), func(_ int, ev *event.Event, rej *collector.Reject) bool {
		if rej != nil {
			rejects = append(rejects, rej)
		}
		pool.Release(ev)
		return true
	})
	if len(rejects) != 2 {
		t.Fatalf("%d rejects, want 2", len(rejects))
	}
	for i, want := range []string{
		`byte 57 (line 4): expected a value, found "x"`,
		`byte 95 (line 6): JSON, but no event of a streaming query`,
	} {
		if got := rejects[i].Err.Error(); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
		var e *SyntaxError
		if !errors.As(rejects[i].Err, &e) || e.Offset > len(body) {
			t.Errorf("reject %d has no place: %v", i, rejects[i].Err)
		}
	}
	if rejects[0].Index != 1 || rejects[1].Index != 3 {
		t.Errorf("indexes %d and %d, want 1 and 3", rejects[0].Index, rejects[1].Index)
	}
}

// hostile are the patterns of bodies that a careless splitter needs quadratic
// time for. BenchmarkHostileBodies shows how long they take.
var hostile = map[string]string{
	"garbage":            "\xde\xad\xbe\xef",
	"garbage lines":      "x\n",
	"quotes":             `"`,
	"quotes in lines":    "\"\n",
	"braces":             "{",
	"braces in lines":    "{\n",
	"brackets":           "[",
	"closing brackets":   "]",
	"closing braces":     "}",
	"broken objects":     "{x},",
	"broken lines":       "{x\n",
	"open members":       "{\"a\":\n",
	"open members, text": "{\"a\":\"",
	"open lists":         "{\"a\":[\n{},\n",
	"objects":            "{}",
	"objects in lines":   "{\"a\":1}\n",
	"objects, spaces":    "{x}                                                                 ",
	"backslashes":        "\\",
	"run ids":            "\"runId\":",
	"listener lines":     "{\"Event\":\"SparkListenerX\"\n",
	"words":              "null ",
	"numbers":            "1",
	"digits and dots":    "1.",
	"high bytes":         "\"\xe2\x82",
	"escapes":            "\"\\ud83d",
	"pretty":             "{\n \"a\": {\n",
	"commas":             ",",
	"blanks":             " ",
	"newlines":           "\n",
}

func TestHostileBodiesComeToAnEnd(t *testing.T) {
	const size = 128 << 10
	pool := NewPool(Limits{RejectsInRow: size})
	for name, pattern := range hostile {
		for _, prefix := range []string{"", "["} {
			body := append([]byte(prefix), bytes.Repeat([]byte(pattern), size/len(pattern))...)
			n := 0
			d := pool.Get()
			d.Body(body, func(_ int, ev *event.Event, _ *collector.Reject) bool {
				n++
				pool.Release(ev)
				return true
			})
			pool.Put(d)
			if n == 0 {
				t.Errorf("%s after %q: nothing came of it", name, prefix)
			}
		}
	}
}

func TestBrokenEventsBetweenGoodOnesCostOnlyThemselves(t *testing.T) {
	pool := NewPool(Limits{})
	whole := newSynth().progress(1)
	for n := 3; n < len(whole)-1; n += 61 {
		cut := whole[:n]
		got := outcomes(pool, []byte(good+"\n"+cut+"\n"+good+"\n"+good))
		if !strings.HasPrefix(got, "progress ") || strings.Count(got, "progress") != 3 {
			t.Errorf("cut at %d (%q): %s", n, cut[max(0, n-20):], got)
		}
	}
}

func TestArraysAndLinesGiveTheSameEvents(t *testing.T) {
	pool := NewPool(Limits{})
	var events []string
	for batch := range 5 {
		events = append(events, small(1).progress(batch))
	}
	want := decodeAll(pool, []byte(strings.Join(events, "\n")))
	for name, body := range map[string]string{
		"array":        "[" + strings.Join(events, ",") + "]",
		"pretty array": "[\n  " + strings.Join(events, ",\n  ") + "\n]\n",
		"concatenated": strings.Join(events, ""),
		"two arrays":   "[" + events[0] + "][" + strings.Join(events[1:], " , ") + "]",
	} {
		if got := decodeAll(pool, []byte(body)); !equal(got, want) {
			t.Errorf("%s: other events than one per line", name)
		}
	}
}

func TestLineNumbersStayRightOverManyRejects(t *testing.T) {
	var body strings.Builder
	for i := range 500 {
		fmt.Fprintf(&body, "%s\nbad line %d\n", good, i)
	}
	line := 2
	for _, r := range decodeAll(NewPool(Limits{}), []byte(body.String())) {
		if r.Reason == "" {
			continue
		}
		if !strings.Contains(r.Error, fmt.Sprintf("(line %d)", line)) {
			t.Fatalf("%s, want line %d", r.Error, line)
		}
		line += 2
	}
}
