package decode

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// nameOf decodes a progress whose name is the raw JSON text.
func nameOf(t *testing.T, raw string) (string, collector.Reason) {
	t.Helper()
	r := decodeAll(NewPool(Limits{}), []byte(`{"id":"q","runId":"r","batchId":1,"name":"`+raw+`"}`))
	if len(r) == 0 || r[0].Event == nil {
		return "", r[0].Reason
	}
	return r[0].Event.Query.Name, ""
}

func TestStringsAreUnescapedAsEncodingJSONDoes(t *testing.T) {
	for _, raw := range []string{
		"", "plain", "a longer plain name of a query", `\"\\\/\b\f\n\r\t`, `\u0041\u00e9\u20ac`, `\ud83d\ude00`, `x\ud83d`, `\ude00y`,
		`\ud83d\u0041`, `\ud83dA`, `\ud83d\ud83d\ude00`, "grüße", "日本語", "😀", "\xff\xfeA", "a\x80b", "\xed\xa0\x80", "\xc3", "\xf0\x9f\x98",
		`eight888\n`, `\n88888888`, "seven77é", "DEL\x7f", `\uD83D\uDE00`, `mixed "quoted\u0022`,
	} {
		raw = strings.ReplaceAll(raw, `mixed "`, `mixed `)
		var want string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		if got, _ := nameOf(t, raw); got != want {
			t.Errorf("name %q became %q, want %q", raw, got, want)
		}
	}
}

func TestWhatNoLabelCanHoldIsReplaced(t *testing.T) {
	for raw, want := range map[string]string{
		"\xff\xfeA":      "\ufffd\ufffdA",
		"a\x00b":         "a\ufffdb",
		`a\u0000b`:       "a\ufffdb",
		`lone \ud800 s`:  "lone \ufffd s",
		"tab\tinside":    "tab\tinside",
		"bell\x07inside": "bell\ainside",
		`line\nquote\"`:  "line\nquote\"",
	} {
		if got, reason := nameOf(t, raw); got != want {
			t.Errorf("name %q became %q (%s), want %q", raw, got, reason, want)
		}
	}
}

func TestALineBreakInAStringIsALineCutShort(t *testing.T) {
	for _, raw := range []string{"a\nb", "a\rb", "\n"} {
		if _, reason := nameOf(t, raw); reason != collector.ReasonTruncated {
			t.Errorf("name %q: reason %q, want truncated", raw, reason)
		}
	}
}

func TestBadEscapesAreSyntaxErrors(t *testing.T) {
	for _, raw := range []string{`\q`, `\u12`, `\u12g4`, `\u 123`, `\x41`, `\'`, `\u`} {
		if _, reason := nameOf(t, raw); reason != collector.ReasonSyntax {
			t.Errorf("name %q: reason %q, want syntax", raw, reason)
		}
	}
}

func TestKeysMayBeEscaped(t *testing.T) {
	body := `{"\u0069d":"q","run\u0049d":"r","batch\u0049d":4,"stateOperators":[{"customMetrics":{"rocksdb\u0047etCount":5,"gr\u00fc\u00dfe":6}}]}`
	r := decodeAll(NewPool(Limits{}), []byte(body))
	b := r[0].Event.Batch
	if b.ID != 4 || b.Operators[0].Values[event.RocksDBGetCount] != 5 || b.Operators[0].Unknown[0].Key != "grüße" {
		t.Errorf("got %+v", b)
	}
}

func TestAnExceptionIsCutToItsFirstLine(t *testing.T) {
	long := strings.Repeat("x", 2*messageBytes)
	for in, want := range map[string]string{
		"boom":                                  "boom",
		"\n\n  boom\nat x":                      "boom",
		"a\x1b[31mb\u0085c\x7fd":                "a [31mb c d",
		"only\r\nfirst":                         "only",
		long:                                    long[:messageBytes],
		strings.Repeat("é", messageBytes):       strings.Repeat("é", messageBytes/2),
		"x" + strings.Repeat("é", messageBytes): "x" + strings.Repeat("é", messageBytes/2-1),
		"":                                      "", " \t\n": "",
	} {
		got := firstLine([]byte(in))
		if got != want {
			t.Errorf("firstLine(%.40q) = %.40q, want %.40q", in, got, want)
		}
		if len(got) > messageBytes || !utf8.ValidString(got) {
			t.Errorf("firstLine(%.40q) is %d bytes long", in, len(got))
		}
	}
}
