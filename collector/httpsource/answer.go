package httpsource

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxErrorBytes bounds the text of one error in an answer.
const maxErrorBytes = 500

// answer is what a request gets.
type answer struct {
	code                 int
	text                 string // for answers that say nothing about elements
	accepted, duplicates int
	rejected             []rejected
	unlisted             int
}

type rejected struct {
	Index int    `json:"index"`
	Error string `json:"error"`
}

// counts is the body of 200 and 400.
type counts struct {
	Accepted   int        `json:"accepted"`
	Duplicates int        `json:"duplicates"`
	Rejected   []rejected `json:"rejected"`
	// Unlisted is how many more were rejected than are listed.
	Unlisted int `json:"unlisted,omitempty"`
}

func fault(code int, text string) *answer { return &answer{code: code, text: text} }

// write sends the answer. A client that is gone does not get it, and repeats the
// request if it cares.
func (a *answer) write(w http.ResponseWriter, o *Options) {
	h := w.Header()
	switch a.code {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", http.MethodPost)
	case http.StatusUnsupportedMediaType:
		h.Set("Accept-Encoding", "gzip, zstd, identity")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(int(o.RetryAfter.Seconds())))
	case http.StatusRequestTimeout:
		h.Set("Connection", "close")
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	body := a.body()
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.code)
	_, _ = w.Write(body)
}

func (a *answer) body() []byte {
	c := counts{Accepted: a.accepted, Duplicates: a.duplicates, Rejected: a.rejected, Unlisted: a.unlisted}
	if c.Rejected == nil {
		c.Rejected = []rejected{}
	}
	for i := range c.Rejected {
		c.Rejected[i].Error = clip(c.Rejected[i].Error)
	}
	var v any = c
	if a.text != "" {
		v = struct {
			Error string `json:"error"`
		}{a.text}
	}
	b, err := json.Marshal(v)
	if err != nil {
		// Strings and numbers always marshal.
		return []byte(`{"error":"internal"}`)
	}
	return append(b, '\n')
}

// clip shortens text on a character's border.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxErrorBytes {
		return s
	}
	end := maxErrorBytes
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
