package httpsource

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestAnswers posts the bodies under testdata/answers and pins how they are
// answered. In a body, PROGRESS(n) stands for a whole progress of batch n, and
// REPEAT(n,text) for n times the text. `gzip`, `zstd`, `cut=n` and `nul` change
// the body after that.
func TestAnswers(t *testing.T) {
	datadriven.Walk(t, "testdata/answers", func(t *testing.T, path string) {
		r := newRig(t, nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "post" {
				t.Fatalf("unknown command %q", d.Cmd)
			}
			body, encoding := bodyOf(t, d)
			w := r.post(body, "Content-Encoding", encoding)
			return summary(t, w)
		})
		r.idle(t)
	})
}

// summary leaves the decoder's words out, which are its own business, but not
// that there are some.
func summary(t *testing.T, w *httptest.ResponseRecorder) string {
	var got counts
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("answer %s: %v", w.Body, err)
	}
	index := []int{}
	for _, r := range got.Rejected {
		if r.Error == "" {
			t.Errorf("reject %d without a word", r.Index)
		}
		index = append(index, r.Index)
	}
	return fmt.Sprintf("%d: %d accepted, %d duplicates, rejected %v\n", w.Code, got.Accepted, got.Duplicates, index)
}

func bodyOf(t *testing.T, d *datadriven.TestData) (body, encoding string) {
	body = expand(t, d.Input)
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "gzip":
			body, encoding = gzipOf(body), a.Key
		case "zstd":
			body, encoding = zstdOf(body), a.Key
		case "cut":
			var n int
			a.Scan(t, 0, &n)
			body = body[:len(body)-n]
		case "nul":
			body = strings.ReplaceAll(body, "NUL", "\x00")
		default:
			t.Fatalf("unknown argument %q", a.Key)
		}
	}
	return body, encoding
}

func expand(t *testing.T, s string) string {
	for {
		from := strings.Index(s, "PROGRESS(")
		if from < 0 {
			break
		}
		to := from + strings.IndexByte(s[from:], ')')
		var n int
		if _, err := fmt.Sscanf(s[from:to+1], "PROGRESS(%d)", &n); err != nil {
			t.Fatal(err)
		}
		s = s[:from] + progress(n) + s[to+1:]
	}
	for {
		from := strings.Index(s, "REPEAT(")
		if from < 0 {
			return s
		}
		to := from + strings.IndexByte(s[from:], ')')
		var n int
		var text string
		if _, err := fmt.Sscanf(s[from:to], "REPEAT(%d,%s", &n, &text); err != nil {
			t.Fatal(err)
		}
		s = s[:from] + strings.Repeat(text, n) + s[to+1:]
	}
}
