package salvage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
)

const whole = `{"id":"q1","runId":"r1","name":null,"timestamp":"2031-02-03T04:05:06.000Z","batchId":4,"numInputRows":9,` +
	`"durationMs":{"addBatch":5,"triggerExecution":8},"stateOperators":[],"sources":[],"sink":{"description":"s"}}`

// pieces reads a text and copies what it yields.
func pieces(text string, lim Limits) (out []Piece, skipped int) {
	skipped = Text([]byte(text), lim, func(p Piece) {
		p.JSON = bytes.Clone(p.JSON)
		out = append(out, p)
	})
	return out, skipped
}

func TestWellFormedJSONComesOutUnchanged(t *testing.T) {
	got, skipped := pieces(whole+"\n", DefaultLimits())
	if len(got) != 1 || string(got[0].JSON) != whole || skipped != 0 {
		t.Errorf("got %+v, skipped %d", got, skipped)
	}
}

func TestOneRepairIsCountedOnce(t *testing.T) {
	tests := map[string]struct{ old, now string }{
		"comma too many in an object": {`"triggerExecution":8}`, `"triggerExecution":8,}`},
		"comma too many in a list":    {`"sources":[]`, `"sources":[{"description":"x"},]`},
		"comma missing at a line end": {`"batchId":4,`, "\"batchId\":4\n"},
		"opening quote missing":       {`"durationMs"`, `durationMs"`},
		"closing brace missing":       {`{"description":"s"}}`, `{"description":"s"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := pieces(strings.Replace(whole, tt.old, tt.now, 1)+"\n", DefaultLimits())
			if len(got) != 1 || got[0].JSON == nil || got[0].Repaired != 1 {
				t.Fatalf("got %+v, want one event with one repair", got)
			}
			if !json.Valid(got[0].JSON) {
				t.Errorf("not well-formed: %s", got[0].JSON)
			}
		})
	}
}

func TestFaultsWithTwoMeaningsAreNotRepaired(t *testing.T) {
	tests := map[string]struct{ old, now string }{
		"two commas":                            {`"batchId":4,`, `"batchId":4,,`},
		"comma missing in the line":             {`"batchId":4,`, `"batchId":4 `},
		"colon missing":                         {`"batchId":4`, `"batchId"4`},
		"value missing":                         {`"batchId":4`, `"batchId":`},
		"closing quote of a key missing":        {`"batchId":4`, `"batchId:4`},
		"word for a value":                      {`"batchId":4`, `"batchId":four`},
		"number with a leading zero":            {`"batchId":4`, `"batchId":04`},
		"number without digits after the point": {`"batchId":4`, `"batchId":4.`},
		"brackets crossed":                      {`"sources":[]`, `"sources":[}`},
		"closing brace missing before the sink": {`,"sink":{"description":"s"}}`, ``},
		"comma announces more at the end":       {`{"description":"s"}}`, `{"description":"s"},`},
		"unquoted key":                          {`"batchId"`, `batchId`},
		"key in braces":                         {`"batchId":4`, `{}:4`},
		"positional value behind a named one":   {`"batchId":4`, `"batchId":4,"observedMetrics":Row(a=1, 2)`},
		"named value behind a positional one":   {`"batchId":4`, `"batchId":4,"observedMetrics":Row(1, a=2)`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := pieces(strings.Replace(whole, tt.old, tt.now, 1)+"\n", DefaultLimits())
			rejects := 0
			for _, p := range got {
				if p.JSON != nil {
					t.Errorf("an event was made of it: %s", p.JSON)
				}
				rejects++
			}
			if rejects == 0 {
				t.Error("no reject")
			}
		})
	}
}

func TestDotsInsideStringsLeaveNothingOut(t *testing.T) {
	text := strings.Replace(whole, `"s"`, `"FileSink[/a/.../b]..."`, 1)
	got, _ := pieces(text+"\n", DefaultLimits())
	if len(got) != 1 || string(got[0].JSON) != text {
		t.Errorf("got %+v", got)
	}
}

func TestEventInsideABrokenWrapperIsTaken(t *testing.T) {
	got, _ := pieces(`{"progress":`+whole+"\nthe end\n", DefaultLimits())
	if len(got) != 1 || string(got[0].JSON) != whole {
		t.Errorf("got %+v", got)
	}
}

func TestWholeEventsBeforeABrokenOneAreTaken(t *testing.T) {
	got, _ := pieces(`{"recent":[`+whole+",\n"+whole+",\n{\"id\":\"q1\",\"durationMs\":{\"addBatch\":1,\n", DefaultLimits())
	if len(got) != 3 || got[0].JSON == nil || got[1].JSON == nil || got[2].Reason != collector.ReasonTruncated {
		t.Errorf("got %+v", got)
	}
}

func TestLinesOfAPieceAreNotSkippedOnes(t *testing.T) {
	_, skipped := pieces("one\n\n"+whole+"\ntwo {\nthree\n{ \"a\" : 1,\n \"b\" : 2 }\n", DefaultLimits())
	if skipped != 5 {
		t.Errorf("skipped %d, want the five lines that hold neither event nor blank", skipped)
	}
}

func TestTextLimitRefusesOneObjectOnly(t *testing.T) {
	lim := DefaultLimits()
	lim.TextBytes = 2048
	long := strings.Replace(whole, `"sources":[]`, `"sources":[`+strings.Repeat(`{"description":"x"},`, 200)+`]`, 1)
	got, _ := pieces(long+"\n"+whole+"\n", lim)
	if len(got) != 2 || got[0].Reason != collector.ReasonTooLarge || string(got[1].JSON) != whole {
		t.Errorf("got %+v", got)
	}
}

func TestNestedTextsHaveALimit(t *testing.T) {
	text := whole
	wrap := func() {
		b, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	for range DefaultLimits().Nested {
		wrap()
	}
	if got, _ := pieces(text+"\n", DefaultLimits()); len(got) != 1 || string(got[0].JSON) != whole {
		t.Fatalf("at the limit: got %+v", got)
	}
	wrap()
	for _, p := range func() []Piece { got, _ := pieces(text+"\n", DefaultLimits()); return got }() {
		if p.JSON != nil {
			t.Errorf("beyond the limit: %s", p.JSON)
		}
	}
}

func TestCarriageReturnsChangeNothing(t *testing.T) {
	for _, file := range append(corpus(t, "good"), corpus(t, "bad")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plain, _, _ := render(t, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		returns, _, _ := render(t, bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n")))
		if plain != returns {
			t.Errorf("%s reads differently with carriage returns", file)
		}
	}
}

// A text cut at any byte yields no event that the whole text does not hold, and
// never more than one reject at its end.
func TestATextCutAnywhereInventsNothing(t *testing.T) {
	text, err := os.ReadFile("testdata/good/log_prefix.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	Text(text, DefaultLimits(), func(p Piece) { known[string(p.JSON)] = true })
	for n := 0; n < len(text); n += 3 {
		rejects := 0
		Text(text[:n], DefaultLimits(), func(p Piece) {
			if p.JSON == nil {
				rejects++
			} else if !known[string(p.JSON)] && p.Repaired == 0 {
				t.Fatalf("cut at %d: invented %s", n, p.JSON)
			}
		})
		if rejects > 1 {
			t.Fatalf("cut at %d: %d rejects", n, rejects)
		}
	}
}

// hostile texts would take hours if any part of reading were not linear.
func hostile(n int) map[string]string {
	return map[string]string{
		"braces":               strings.Repeat("{", n),
		"quotes":               strings.Repeat(`"`, n),
		"braces and quotes":    strings.Repeat(`{"`, n/2),
		"escaped starts":       strings.Repeat(`{\"`, n/3),
		"nested objects":       strings.Repeat(`{"id":`, n/6),
		"nested lists":         `{"id":` + strings.Repeat("[", n),
		"open string":          `{"id":"` + strings.Repeat("a", n),
		"control characters":   `{"id":"` + strings.Repeat("\x01", n),
		"backslashes":          `{"id":"` + strings.Repeat(`\`, n),
		"open strings by line": strings.Repeat(`{"durationMs":"`+strings.Repeat("x", 50)+"\n", n/66),
		"open objects by line": strings.Repeat("{\n", n/2),
		"keys by line":         strings.Repeat("\"durationMs\" : {\n", n/17),
		"members by line":      `{"id":1` + strings.Repeat(",\n\"durationMs\":1", n/16),
		"cut numbers":          `{"durationMs":1` + strings.Repeat(strings.Repeat("1", 60)+"\n", n/61),
		"strings side by side": `{"durationMs":` + strings.Repeat(`"a" `, n/4),
		"marks":                "# {\n" + strings.Repeat("# # # \n", n/7),
		"calls":                `{"durationMs":` + strings.Repeat("f(", n/2),
		"dots":                 `{"durationMs":` + strings.Repeat("... ", n/4),
		"log lines between":    strings.Repeat("{\"durationMs\":1,\n31/02/03 04:05:06 INFO x\n", n/44),
		"blank lines":          "{\n" + strings.Repeat("\n", n),
		"braces with blanks":   strings.Repeat("{    ", n/5),
		"texts in texts":       `{"a":"` + strings.Repeat(`{\"runId\":`, n/12) + `"}`,
	}
}

func TestHostileTextIsReadInLinearTimeAndBoundedMemory(t *testing.T) {
	lim := DefaultLimits()
	lim.TextBytes = 256 << 10
	for name, text := range hostile(1 << 19) {
		t.Run(name, func(t *testing.T) {
			s := NewScanner(lim, func(Piece) {})
			for line := range strings.SplitSeq(text, "\n") {
				s.Line([]byte(line))
			}
			s.Close()
			if n := cap(s.p.out); n > 4*lim.TextBytes+len(text) {
				t.Errorf("%d bytes kept", n)
			}
			if len(s.held) > maxHeld || len(s.p.stack) > lim.Depth {
				t.Errorf("%d lines held, %d levels", len(s.held), len(s.p.stack))
			}
		})
	}
}

func FuzzText(f *testing.F) {
	for _, file := range append(corpus(f, "good"), corpus(f, "bad")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range hostile(256) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		lines := bytes.Count(text, newline) + 1
		rejects := 0
		skipped := Text(text, DefaultLimits(), func(p Piece) {
			if p.Line < 1 || p.EndLine < p.Line || p.EndLine > lines {
				t.Errorf("lines %d-%d of %d", p.Line, p.EndLine, lines)
			}
			switch {
			case p.JSON == nil && (p.Reason == "" || p.Err == nil):
				t.Error("a reject without reason")
			case p.JSON != nil && !json.Valid(p.JSON):
				t.Errorf("not well-formed: %q", p.JSON)
			case p.JSON == nil:
				rejects++
			}
		})
		if skipped < 0 || skipped > lines {
			t.Errorf("skipped %d of %d lines", skipped, lines)
		}
	})
}

// Peer is what a tailer does that knows pretty JSON only: hand every block to
// encoding/json.
func BenchmarkSalvageVersusEncodingJSON(b *testing.B) {
	text, err := os.ReadFile("testdata/good/concatenated_pretty.txt")
	if err != nil {
		b.Fatal(err)
	}
	ours, peer := int64(0), int64(0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		ours += elapsed(func() {
			n := 0
			if Text(text, DefaultLimits(), func(Piece) { n++ }); n != 3 {
				b.Fatal("events lost")
			}
		})
		peer += elapsed(func() {
			dec := json.NewDecoder(bytes.NewReader(text))
			for dec.More() {
				var v map[string]any
				if err := dec.Decode(&v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.ReportMetric(float64(peer)/float64(ours), "x_peer")
}

func ExampleText() {
	log := "10:00 INFO Streaming query made progress: {\n  'id': 'q', 'runId': 'r', 'batchId': 1, 'numInputRows': 0\n}\n"
	Text([]byte(log), DefaultLimits(), func(p Piece) { fmt.Println(p.Line, string(p.JSON)) })
	// Output: 1 {"id":"q","runId":"r","batchId":1,"numInputRows":0}
}
