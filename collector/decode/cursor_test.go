package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
)

// passes reports whether the cursor takes doc as one JSON value.
func passes(doc []byte, l *Limits) (ok bool, f fault) {
	c := cursor{lim: l}
	c.reset(doc, 0, len(doc))
	c.skip()
	if !c.failed() && c.peek() != 0 {
		c.fail("expected the end")
	}
	return !c.failed() && c.i == len(doc), c.fault
}

// randomJSON writes a value with blanks here and there.
func randomJSON(rng *rand.Rand, w *strings.Builder, depth int) {
	blank := func() { w.WriteString([]string{"", "", "", " ", "\n", "\t", " \r\n "}[rng.IntN(7)]) }
	blank()
	defer blank()
	kind := rng.IntN(8)
	if depth > 4 {
		kind = 2 + rng.IntN(6)
	}
	switch kind {
	case 0:
		w.WriteByte('{')
		for i := range rng.IntN(4) {
			if i > 0 {
				w.WriteByte(',')
			}
			blank()
			fmt.Fprintf(w, `"k%d"`, rng.IntN(10))
			blank()
			w.WriteByte(':')
			randomJSON(rng, w, depth+1)
		}
		w.WriteByte('}')
	case 1:
		w.WriteByte('[')
		for i := range rng.IntN(4) {
			if i > 0 {
				w.WriteByte(',')
			}
			randomJSON(rng, w, depth+1)
		}
		w.WriteByte(']')
	case 2:
		w.WriteString([]string{"null", "true", "false"}[rng.IntN(3)])
	case 3, 4:
		w.WriteString([]string{`""`, `"plain text of some length"`, `"a\nb\u00e9\\"`, `"grüße"`, `"\ud83d\ude00\/"`}[rng.IntN(5)])
	default:
		w.WriteString([]string{"0", "-1", "12345678901", "0.5", "-3e10", "1.25E-3", "99999999999999999999"}[rng.IntN(7)])
	}
}

func TestSyntaxAgreesWithEncodingJSON(t *testing.T) {
	l := Limits{}.withDefaults()
	rng := rand.New(rand.NewPCG(12, 13))
	good, bad := 0, 0
	for range 4000 {
		var w strings.Builder
		randomJSON(rng, &w, 0)
		doc := []byte(w.String())
		if ok, f := passes(doc, &l); !ok {
			t.Fatalf("%q was refused at %d: %s", doc, f.off, f.want)
		}
		for range 8 {
			mutant := bytes.Clone(doc)
			at := rng.IntN(len(mutant))
			switch rng.IntN(3) {
			case 0:
				mutant = append(mutant[:at], mutant[at+1:]...)
			case 1:
				mutant[at] = "{}[]\",:\\0-e. nx"[rng.IntN(15)]
			default:
				mutant = append(mutant[:at], append([]byte{"{}[]\",:\\0-e. nx"[rng.IntN(15)]}, mutant[at:]...)...)
			}
			want := json.Valid(mutant)
			if got, f := passes(mutant, &l); got != want {
				t.Fatalf("%q: taken %v, encoding/json %v (%s)", mutant, got, want, f.want)
			}
			if want {
				good++
			} else {
				bad++
			}
		}
	}
	if good < 1000 || bad < 1000 {
		t.Errorf("%d good and %d bad mutants are too few", good, bad)
	}
}

func TestSpecialBytesAreFoundAtEveryPlace(t *testing.T) {
	for at := range 40 {
		for ch := range 256 {
			b := []byte(`"` + strings.Repeat("a", 48) + `"`)
			b[at+1] = byte(ch)
			c := cursor{lim: &Limits{}}
			c.reset(b, 0, len(b))
			lo, hi, plain := c.scanString()
			text := b[1 : len(b)-1]
			switch {
			case ch == '"':
				if c.failed() || lo != 1 || hi != at+1 || !plain {
					t.Fatalf("quote at %d: %d to %d", at, lo, hi)
				}
			case ch == '\\' || ch == '\n' || ch == '\r':
				if !c.failed() {
					t.Fatalf("byte %#x at %d was taken", ch, at)
				}
			default:
				wantPlain := ch >= ' ' && ch < 0x80
				if c.failed() || hi != len(b)-1 || plain != wantPlain {
					t.Fatalf("byte %#x at %d of %q: end %d, plain %v", ch, at, text, hi, plain)
				}
			}
		}
	}
}

func TestTheFirstFaultStaysAndEndsEveryLoop(t *testing.T) {
	l := Limits{}.withDefaults()
	c := cursor{lim: &l}
	doc := []byte(`{"a":x,"b":[1,2]}`)
	c.reset(doc, 0, len(doc))
	c.skip()
	first := c.fault
	c.fail("something else")
	c.refuse(collector.ReasonDepth, "something else")
	if c.fault != first || first.off != 5 || first.reason != collector.ReasonSyntax {
		t.Errorf("fault %+v became %+v", first, c.fault)
	}
	if _, more := c.member(true); more || c.element(true) || c.i != len(doc) {
		t.Error("a failed cursor went on")
	}
}

func TestBracketsAreBalancedOutsideStringsOnly(t *testing.T) {
	for in, want := range map[string]int{
		`{}`: 2, `[]x`: 2, `{"a":[1,{"b":"}]"}]} tail`: 20, `"text" tail`: 6, `"a\"b"`: 6, `{"a":"\\"}`: 10,
		`{"a":"\\\""}`: 12, `{`: -1, `{"a`: -1, `{"a` + "\n" + `":1}`: -1, `}`: -1, ``: -1, `{"a":"\`: -1,
	} {
		end, ok := balanced([]byte(in), 0)
		if !ok {
			if end > len(in) {
				t.Errorf("balanced(%q) looked beyond the end", in)
			}
			end = -1
		}
		if end != want {
			t.Errorf("balanced(%q) = %d, want %d", in, end, want)
		}
	}
}

func TestTheKindFollowsFromTheKeys(t *testing.T) {
	const id, rid = `"id":"q"`, `"runId":"r"`
	for body, want := range map[string]string{
		`{` + id + `,` + rid + `,"timestamp":"x"}`:                                             "idle",
		`{` + id + `,` + rid + `}`:                                                             "idle",
		`{` + id + `,` + rid + `,"name":null}`:                                                 "started",
		`{` + id + `,` + rid + `,"exception":null}`:                                            "terminated",
		`{` + id + `,"exception":null}`:                                                        "terminated",
		`{` + id + `,` + rid + `,"name":"n","exception":"e"}`:                                  "terminated",
		`{` + id + `,` + rid + `,"name":"n","batchId":1}`:                                      "progress",
		`{` + id + `,` + rid + `,"exception":null,"batchId":1}`:                                "terminated",
		`{"exception":null,"progress":{` + id + `}}`:                                           "progress",
		`{` + id + `,"durationMs":{}}`:                                                         "progress",
		`{` + id + `,"sources":[]}`:                                                            "progress",
		`{` + id + `,"stateOperators":[]}`:                                                     "progress",
		`{` + id + `,"name":"n"}`:                                                              "shape",
		`{` + rid + `,"name":"n"}`:                                                             "shape",
		`{"type":"started",` + id + `}`:                                                        "started",
		`{"type":"terminated","event":{` + id + `,` + rid + `}}`:                               "terminated",
		`{"Event":"QueryStartedEvent",` + id + `}`:                                             "started",
		`{"Event":"a.StreamingQueryListener$QueryIdleEvent",` + id + `}`:                       "idle",
		`{"Event":"a.StreamingQueryListener$QueryStarted",` + id + `}`:                         "legacy",
		`{"Event":"a.StreamingQueryListener$QueryTerminatedEvent","queryStatus":{"id":1}}`:     "legacy",
		`{"Event":"a.StreamingQueryListener$QueryProgressEvent",` + id + `,` + rid + `}`:       "shape",
		`{"Event":"a.StreamingQueryListener$QueryProgressEvent","progress":null,` + id + `}`:   "shape",
		`{"Event":"a.StreamingQueryListener$QueryProgressEvent","progress":{"batchId":1}}`:     "identity",
		`{"Event":"a.StreamingQueryListener$QueryTerminatedEvent",` + rid + `}`:                "identity",
		`{"Event":"org.apache.spark.scheduler.SparkListenerJobEnd",` + id + `,` + rid + `}`:    "skip",
		`{` + id + `,` + rid + `,"name":"n","Event":"SparkListenerX"}`:                         "skip",
		`{"progress":{` + id + `,"batchId":1},"queryInfo":{}}`:                                 "progress",
		`{"event":{"Event":"a.StreamingQueryListener$QueryIdleEvent",` + id + `,` + rid + `}}`: "idle",
	} {
		if got := outcomes(NewPool(Limits{}), []byte(body)); got != want {
			t.Errorf("%s became %q, want %q", body, got, want)
		}
	}
}
