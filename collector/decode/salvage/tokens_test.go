package salvage

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// value puts a value into an event and returns what it becomes; empty where the
// event is refused.
func value(text string) string {
	out := ""
	Text([]byte(`{"id":"q","runId":"r","timestamp":"t","x":`+text+"}\n"), DefaultLimits(), func(p Piece) {
		if p.JSON != nil {
			_, out, _ = strings.Cut(strings.TrimSuffix(string(p.JSON), "}"), `"x":`)
		}
	})
	return out
}

func TestValuesBecomeJSON(t *testing.T) {
	tests := map[string]string{
		`1`: `1`, `-0.5`: `-0.5`, `1e9`: `1e9`, `1.5E-7`: `1.5E-7`, `0`: `0`, `12L`: `12`, `3l`: `3`,
		`NaN`: `"NaN"`, `nan`: `"NaN"`, `-nan`: `"NaN"`, `inf`: `"Infinity"`, `-inf`: `"-Infinity"`, `+inf`: `"Infinity"`,
		`-Infinity`: `"-Infinity"`, `Infinity`: `"Infinity"`,
		`True`: `true`, `false`: `false`, `None`: `null`, `null`: `null`, `undefined`: `null`,
		`'a'`: `"a"`, `u'a'`: `"a"`, `b'a'`: `"a"`, `r"a"`: `"a"`, `U"a"`: `"a"`,
		`'say "x"'`: `"say \"x\""`, `"it's"`: `"it's"`, `'it\'s'`: `"it's"`,
		`'\x41\u00e9\n\t\\'`: `"\u0041\u00e9\n\t\\"`, `'\U0001F600'`: `"😀"`, `'\U00000022'`: `"�"`, `'\U0000D800'`: `"�"`, `'\UFFFFFFFF'`: `"�"`,
		`'\d\x4'`: `"\\d\\x4"`, `"\u12"`: `"\\u12"`, "'\x01\t\x1f'": `"\u0001\t\u001f"`, `'\xAf'`: `"\u00Af"`,
		`(1, 2)`: `[1,2]`, `()`: `[]`, `(1,)`: `[1]`, `[1, [2], {}]`: `[1,[2],{}]`,
		`UUID('x')`: `"x"`, `f()`: `null`, `f(1, 2)`: `[1,2]`, `a.b.C('y')`: `"y"`, `Row(a=1, b='z')`: `{"a":1,"b":"z"}`, `Row()`: `null`,
		`Row(a=Row(b=1))`: `{"a":{"b":1}}`, `f({"a": 1})`: `{"a":1}`,
		`'a' 'b'`: `"ab"`, `'a' 'b' "c"`: `"abc"`, `1 /* one */`: `1`, `[1, 2,]`: `[1,2]`,
	}
	for text, want := range tests {
		got := value(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("%s: %s is no JSON", text, got)
		}
	}
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	for _, text := range []string{
		``, `+1`, `01`, `1.`, `.5`, `1e`, `1e+`, `-`, `--1`, `1L2`, `L`, `0x1`, `nanan`, `+nul`, `foo`, `'a`, `"a`, `[1 2]`, `(1]`, `[1,,2]`,
		`{1:2}`, `{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `Row(1, a=2)`, `Row(a=1, 2)`, `Row(a=)`, `Row(a==1)`, `'a' 1`, `1 'a'`, `a.b`, `<object>`, `@`, `[...`,
	} {
		if got := value(text); got != "" {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestLinesAreToldByTheirBeginning(t *testing.T) {
	tests := map[string]kind{
		"": blankLine, " \t": blankLine, "\u00a0 ": blankLine, `"id" : 1`: plainLine, "2031": plainLine,
		"31/02/03 04:05:06 INFO X: y": logLine, "2031-02-03 04:05:06,789 WARN y": logLine, "  [2031-02-03T04:05:06.7] ERROR y": logLine,
		"2031-02-03 04:05:06 nothing": plainLine, "203-02-03 04:05:06 INFO": plainLine, "2031-02-03 INFO": plainLine,
		"31/02/03 04:05:06 INFO X: map {": eventLine, "Streaming query made progress: {  ": eventLine,
	}
	for line, want := range tests {
		if got := lineKind([]byte(line)); got != want {
			t.Errorf("%q is of kind %d, want %d", line, got, want)
		}
	}
}

func TestCarrierPrefixes(t *testing.T) {
	tests := map[string]string{
		"2031-02-03T04:05:06.7Z stdout F  {": " {", "2031-02-03T04:05:06.7Z stderr P {": "{", "2031-02-03T04:05:06Z {": "{",
		"driver-1  | {": "{", "spark.driver_0 |{": "", "  | {": "  | {", "{": "{", "2031-02-03 04:05:06 {": "2031-02-03 04:05:06 {",
	}
	for line, want := range tests {
		if got := line[carrierPrefix([]byte(line)):]; got != want {
			t.Errorf("%q leaves %q, want %q", line, got, want)
		}
	}
}

func TestShapesOfLinePrefixes(t *testing.T) {
	tests := []struct {
		name, first, second, third, rest string
	}{
		{"log head", "[09:10:11] x.py:9 - {", `[09:10:12] x.py:10 -   "a"`, `[09:10:13] x.py:105 -   "b"`, `"b"`},
		{"line number", " 9  {", ` 10    "a"`, `111    "b"`, `"b"`},
		{"file and line", "a.log:9:{", `a.log:10:  "a"`, `a.log:11:}`, "}"},
		{"another file", "a.log:9:{", `a.log:10:  "a"`, `b.log:11:}`, ""},
		{"no prefix", "{", `  "a"`, `  "b"`, ""},
		{"blanks only", "    {", `      "a"`, `      "b"`, ""},
		{"second line is text", "1: {", "2: not", "3: }", ""},
		{"brace in the prefix", "9 {x} {", `9 {x}   "a"`, `10 {x} }`, "}"},
	}
	for _, tt := range tests {
		s := learn([]byte(tt.first), []byte(tt.second))
		n := 0
		if len(s) > 0 {
			n = s.match([]byte(tt.third))
		}
		rest := ""
		if n > 0 {
			rest = strings.TrimSpace(tt.third[n:])
		}
		if rest != tt.rest {
			t.Errorf("%s: %q leaves %q, want %q", tt.name, tt.third, rest, tt.rest)
		}
	}
}

func TestPartsAreDescribedByTheirKeys(t *testing.T) {
	tests := map[string]string{
		`{"numCommittedKeys":1}`:                                 "an executor's commit statistics of one state store",
		`{"rtmMetrics":{}}`:                                      "the rtmMetrics of a progress",
		`{"operatorName":"x","numRowsTotal":1}`:                  "one state operator of a progress",
		`{"rocksdbGetCount":1}`:                                  "the custom metrics of one state operator",
		`{"SnapshotLastUploaded.partition_1_default":1}`:         "the custom metrics of one state operator",
		`{"triggerExecution":1,"addBatch":1}`:                    "the durationMs of a progress",
		`{"description":"x","endOffset":1}`:                      "a source of a progress",
		`{"batchId":1,"durationMs":{},"stateOperators":[]}`:      "a part of a progress",
		`{"inputRowsPerSecond":1}`:                               "a part of a progress",
		`{"sources":[{"metrics":{"numFilesOutstanding":"1"}}]}`:  "a source of a progress",
		`{"text":"nothing","level":"info","time":1}`:             "",
		`{"Event":"SparkListenerJobEnd","triggerExecution":"1"}`: "",
	}
	for text, want := range tests {
		got, _ := pieces(text+"\n", DefaultLimits())
		said := ""
		if len(got) == 1 && got[0].Err != nil {
			said = strings.TrimPrefix(got[0].Err.Error(), "no event, but ")
		}
		if said != want || len(got) > 1 {
			t.Errorf("%s: %q, want %q", text, said, want)
		}
	}
}
