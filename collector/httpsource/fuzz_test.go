package httpsource

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzServe posts any bytes under any encoding: the source always answers with a
// code it knows and valid JSON, holds nothing afterwards and still works.
func FuzzServe(f *testing.F) {
	for _, body := range []string{
		progress(1), lines(0, 3), "[" + progress(1) + "]", "", "{", "[[[[[[", "null", `"x"`, "\x00\xff\xfe", `{"id":"a","runId":"b","exception":null}`,
		`{"v":1,"sender":"s","seq":4,"type":"heartbeat","event":{}}`, progress(1) + "}{" + progress(2),
	} {
		f.Add([]byte(body), uint8(0))
		f.Add([]byte(gzipOf(body)), uint8(1))
		f.Add([]byte(zstdOf(body)), uint8(2))
		f.Add([]byte(body), uint8(2))
	}
	encodings := []string{"", "gzip", "zstd", "br"}
	r := newRig(f, func(o *Options, _ *Parts) {
		o.BodyBytes, o.DecodedBytes, o.InFlightBytes = 1<<20, 1<<20, 64<<20
	})
	f.Fuzz(func(t *testing.T, body []byte, enc uint8) {
		w := r.post(string(body), "Content-Encoding", encodings[enc%4])
		switch w.Code {
		case 200, 400, 413, 415:
		default:
			t.Fatalf("answer %d %s", w.Code, w.Body)
		}
		var got counts
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Accepted < 0 {
			t.Fatalf("answer %s: %v", w.Body, err)
		}
		if w.Code == 200 && got.Accepted+got.Duplicates == 0 && len(got.Rejected) > 0 {
			t.Fatalf("nothing was usable, yet 200: %s", w.Body)
		}
		r.idle(t)
		if w := r.post(progress(1)); w.Code != 200 {
			t.Fatalf("afterwards a good event is answered %d", w.Code)
		}
	})
}

func TestAnswerTextIsClippedOnACharacter(t *testing.T) {
	long := clip(strings.Repeat("é", 1000))
	if len(long) > maxErrorBytes+3 || !strings.HasSuffix(long, "é...") {
		t.Errorf("clipped to %d bytes: ...%q", len(long), long[len(long)-6:])
	}
	if got := clip("a\xffb"); got != "a\uFFFDb" {
		t.Errorf("broken text becomes %q", got)
	}
}

// A request whose parameters cannot be read is still taken.
func TestOddQueryParametersCostNothing(t *testing.T) {
	r := newRig(t, nil)
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(progress(1)))
	req.URL.RawQuery = "%&;=&&a=%"
	want(t, r.send(req), 200, `{"accepted":1,"duplicates":0,"rejected":[]}`)
}
