package salvage

import (
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
)

func TestLinesDealtWithElsewhereKeepTheNumbersRight(t *testing.T) {
	var got []Piece
	s := NewScanner(DefaultLimits(), func(p Piece) { got = append(got, p) })
	s.SkipLine()
	s.SkipLine()
	if !s.Idle() {
		t.Error("not idle before any text")
	}
	s.Line([]byte(`{"id":"q",`))
	if s.Idle() {
		t.Error("idle inside an object")
	}
	s.Line([]byte(`"runId":"r","timestamp":"t"}`))
	s.SkipLine()
	s.Line([]byte("x"))
	if len(got) != 1 || got[0].Line != 3 || got[0].EndLine != 4 || !s.Idle() || s.Skipped() != 1 {
		t.Errorf("%+v, skipped %d", got, s.Skipped())
	}
}

func TestLinesHeldForAWrappedStringAreReadAgainAtTheEnd(t *testing.T) {
	broken := `{"id":"q","runId":"r","durationMs":{"addBatch":1},"sink":{"description":"cut`
	got, skipped := pieces(broken+"\nplain\nmore\n", DefaultLimits())
	if len(got) != 1 || got[0].Reason != collector.ReasonTruncated || got[0].EndLine != 1 || skipped != 2 {
		t.Errorf("%+v, skipped %d", got, skipped)
	}
	// A string that goes on for more lines than any wrap is given up, and what was
	// held for it is read.
	long := strings.Repeat("plain text without any quote, wide enough to be wrapped\n", 3*maxHeld)
	got, skipped = pieces(broken+"\n"+long+whole+"\n", DefaultLimits())
	if len(got) != 2 || string(got[1].JSON) != whole || skipped != 3*maxHeld {
		t.Errorf("%+v, skipped %d", got, skipped)
	}
}

func TestAnEventHeldForAWrappedStringIsNotLost(t *testing.T) {
	broken := `{"id":"q","runId":"r","durationMs":{"addBatch":1},"sink":{"description":"cut`
	quoteless := strings.ReplaceAll(whole, `"`, `'`)
	quoteless = strings.ReplaceAll(quoteless, "null", "None")
	for _, text := range []string{broken + "\n" + quoteless + "\n", broken + "\nx\n" + quoteless + "\ny\n"} {
		got, _ := pieces(text, DefaultLimits())
		if len(got) != 2 || string(got[1].JSON) != whole {
			t.Errorf("%q:\n%+v", text, got)
		}
	}
}

func TestAProgressBetweenTheLinesOfAnotherEndsIt(t *testing.T) {
	head := "31/02/03 04:05:06 INFO M: Streaming query made progress: {\n"
	body := strings.TrimPrefix(strings.ReplaceAll(whole, `,"`, ",\n\""), "{")
	lines := strings.SplitAfter(body, "\n")
	got, _ := pieces(head+strings.Join(lines[:4], "")+head+body+"\n", DefaultLimits())
	if len(got) != 2 || got[0].Reason != collector.ReasonTruncated || string(got[1].JSON) != whole {
		t.Errorf("%+v", got)
	}
}

func TestTooManyLogLinesInsideAnEventEndIt(t *testing.T) {
	noise := strings.Repeat("31/02/03 04:05:06 INFO X: y\n", maxBetween+1)
	got, skipped := pieces("{\"id\":\"q\",\"runId\":\"r\",\n\"durationMs\":{},\n"+noise+"\"timestamp\":\"t\"}\n", DefaultLimits())
	if len(got) != 1 || got[0].JSON != nil || skipped < maxBetween {
		t.Errorf("%+v, skipped %d", got, skipped)
	}
}

func TestAnEventInsideACallIsFoundWhereItStands(t *testing.T) {
	got, _ := pieces(`{"wrapped":f(`+whole+`)}`+"\n", DefaultLimits())
	if len(got) != 1 || string(got[0].JSON) != whole {
		t.Errorf("%+v", got)
	}
}

func TestQuotedTextsEndWithTheirQuote(t *testing.T) {
	field := strings.ReplaceAll(whole, `"`, `""`)
	for name, text := range map[string]string{
		"doubled": `1,"` + field + `",2,"` + field + `"`,
		"escaped": `a="` + strings.ReplaceAll(whole, `"`, `\"`) + `" b="` + strings.ReplaceAll(whole, `"`, `\"`) + `"`,
		"string":  `'` + strings.ReplaceAll("{\\n"+whole[1:], "'", `\'`) + `' '` + "{\\n" + whole[1:] + `'`,
	} {
		got, skipped := pieces(text+"\n", DefaultLimits())
		if len(got) != 2 || string(got[0].JSON) != whole || string(got[1].JSON) != whole || skipped != 0 {
			t.Errorf("%s: %+v, skipped %d", name, got, skipped)
		}
	}
}

func TestQuotedTextsThatHoldNoEventAreSkipped(t *testing.T) {
	got, skipped := pieces("x=\"{\\\"runId\\\": 1\" y\n1,\"{\"\"runId\"\": 2\n'{\\n it\\'s \t runId'\n", DefaultLimits())
	if len(got) != 0 || skipped != 3 {
		t.Errorf("%+v, skipped %d", got, skipped)
	}
}

func TestRuntimeLogsWithoutStreamAreJSONOfTheirOwn(t *testing.T) {
	got, _ := pieces(`{"log":"x","progress":`+whole+"}\n", DefaultLimits())
	if len(got) != 1 || got[0].JSON == nil {
		t.Errorf("%+v", got)
	}
}
