package decode

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// seeds adds the project's own bodies and some bytes that are none.
func seeds(f *testing.F) {
	s := newSynth()
	s.operators, s.partitions, s.snapshots = 1, 2, true
	f.Add([]byte(s.progress(3)))
	s.text = true
	f.Add([]byte(s.progress(4)))
	for _, b := range []string{"", "\xef\xbb\xbf{}", "\x1f\x8b\x08", "[[[[", `{"a":"\ud83d`, "{\n{\n{\n", `"{\"id\":1}"`, "\x00", "[{},{}", "{}}{", "1 2"} {
		f.Add([]byte(b))
	}
	files, err := filepath.Glob("testdata/bodies/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range bytes.Split(text, []byte("\n\n")) {
			_, part, _ = bytes.Cut(part, []byte("decode\n"))
			part, _, _ = bytes.Cut(part, []byte("----"))
			f.Add(part)
		}
	}
}

// requireSound checks what must hold of anything that comes out of a body.
func requireSound(t *testing.T, body []byte, r result, l Limits) {
	t.Helper()
	if r.Reason != "" {
		if r.Error == "" {
			t.Fatalf("%q: a reject that says nothing", body)
		}
		return
	}
	ev := r.Event
	if ev == nil {
		return
	}
	if ev.Kind == event.KindUnknown || (ev.Kind == event.KindProgress) != (ev.Batch != nil) {
		t.Fatalf("%q: kind %v with batch %v", body, ev.Kind, ev.Batch != nil)
	}
	if ev.Query.ID == "" && ev.Kind != event.KindHeartbeat {
		t.Fatalf("%q: an event without a query", body)
	}
	for _, s := range []string{string(ev.Query.ID), ev.Query.Name, ev.Query.Application, string(ev.Run), ev.Cluster} {
		if !utf8.ValidString(s) || len(s) > l.StringBytes || bytes.IndexByte([]byte(s), 0) >= 0 {
			t.Fatalf("%q: text %q", body, s)
		}
	}
	if b := ev.Batch; b != nil {
		requireSoundBatch(t, body, b, l)
	}
}

func requireSoundBatch(t *testing.T, body []byte, b *event.Batch, l Limits) {
	t.Helper()
	if len(b.Operators) > l.Operators || len(b.Sources) > l.Sources {
		t.Fatalf("%q: %d operators, %d sources", body, len(b.Operators), len(b.Sources))
	}
	kept := len(b.UnknownPhases) + len(b.Observed) + len(b.Percentiles)
	finiteOnly := func(v *event.Vector) {
		for id, f := range v {
			if f == f && f-f != 0 {
				t.Fatalf("%q: %s is %v", body, event.Lookup(event.MetricID(id)).JSON, f)
			}
		}
	}
	finiteOnly(&b.Values)
	for i := range b.Operators {
		kept += len(b.Operators[i].Unknown)
		finiteOnly(&b.Operators[i].Values)
	}
	if kept > l.UnknownKeys {
		t.Fatalf("%q: %d metrics outside the catalog", body, kept)
	}
	for i := range b.Sources {
		if s := &b.Sources[i]; s.Backlog < 0 && s.Backlog != event.Absent {
			t.Fatalf("%q: backlog %d", body, s.Backlog)
		}
	}
}

var fuzzLimits = Limits{EventBytes: 4096, KeysPerEvent: 64, Operators: 4, Sources: 4, Depth: 12, UnknownKeys: 8, StringBytes: 64}.withDefaults()

// FuzzBody feeds anything to a decoder with small limits: it must neither panic
// nor break a promise, and every reject must lie inside the body.
func FuzzBody(f *testing.F) {
	seeds(f)
	pool := NewPool(fuzzLimits)
	f.Fuzz(func(t *testing.T, body []byte) {
		d := pool.Get()
		defer pool.Put(d)
		next := 0
		d.Body(body, func(i int, ev *event.Event, rej *collector.Reject) bool {
			if i != next {
				t.Fatalf("%q: index %d after %d elements", body, i, next)
			}
			next++
			r := result{Event: ev}
			if rej != nil {
				r.Reason, r.Error = rej.Reason, rej.Err.Error()
				e := rej.Err.(*SyntaxError)
				if e.Offset < 0 || e.Offset > len(body) || e.Line != 1+bytes.Count(body[:e.Offset], newline) || rej.Index != i {
					t.Fatalf("%q: reject %d at byte %d, line %d", body, rej.Index, e.Offset, e.Line)
				}
			}
			requireSound(t, body, r, fuzzLimits)
			pool.Release(ev)
			return true
		})
		if next == 0 || next > len(body)+1 {
			t.Fatalf("%q: %d elements", body, next)
		}
	})
}

// FuzzDifferential compares with encoding/json: what it takes as one object we
// take as JSON too, with the same figures; what it refuses we refuse, apart from
// the extensions of the package's comment.
func FuzzDifferential(f *testing.F) {
	seeds(f)
	plain := NewPool(Limits{TemplateBytes: -1})
	f.Fuzz(func(t *testing.T, body []byte) {
		body = bytes.TrimSpace(body)
		if len(body) == 0 || body[0] != '{' || bytes.Contains(body, []byte(`"Event"`)) {
			return
		}
		r := decodeAll(plain, body)
		if !json.Valid(body) {
			if len(r) == 1 && r[0].Reason == "" && !extended(body) && len(body) > 0 {
				t.Fatalf("%q is no JSON, but was taken", body)
			}
			return
		}
		if len(r) != 1 {
			t.Fatalf("%q became %d elements", body, len(r))
		}
		if reason := r[0].Reason; (reason == collector.ReasonSyntax || reason == collector.ReasonTruncated) && !nestedJSON(body) {
			t.Fatalf("%q was refused: %s", body, r[0].Error)
		}
		if ev := r[0].Event; ev != nil && ev.Batch != nil && !nestedJSON(body) && !repeatedKeys(body) {
			ref, err := newReference(body)
			if err != nil {
				t.Fatal(err)
			}
			if diffs := ref.check(ev.Batch); diffs != nil && !bytes.Contains(body, []byte(`"progress"`)) {
				t.Fatalf("%q: %v", body, diffs)
			}
		}
	})
}

// extended reports whether a body may hold one of the extensions to JSON: bare
// words for numbers, control characters in strings, commas around values.
func extended(body []byte) bool {
	for _, ch := range body {
		if ch < ' ' && !isBlank(ch) || ch == '\t' {
			return true
		}
	}
	return bytes.Contains(body, []byte("NaN")) || bytes.Contains(body, []byte("Infinity")) || body[len(body)-1] == ',' || body[len(body)-1] == ']'
}

// nestedJSON reports whether strings of the body may be parsed as JSON, whose
// faults are the event's.
func nestedJSON(body []byte) bool {
	return bytes.Contains(body, []byte(`progress`)) || bytes.Contains(body, []byte(`event`)) || bytes.Contains(body, []byte(`\u`))
}

// repeatedKeys reports whether encoding/json, which merges repeated objects into
// one map only for the last key, could see other figures than we.
func repeatedKeys(body []byte) bool {
	for _, key := range []string{"durationMs", "stateOperators", "customMetrics"} {
		if bytes.Count(body, []byte(key)) > 1 {
			return true
		}
	}
	return false
}

// FuzzShapeCache decodes a body that taught the cache its shape and then another
// one, with the cache and without: both must agree on every element.
func FuzzShapeCache(f *testing.F) {
	s := newSynth()
	s.operators, s.partitions, s.snapshots = 1, 2, true
	first := []byte(s.progress(3))
	f.Add(first, []byte(s.progress(4)))
	s.text = true
	f.Add([]byte(s.progress(5)), []byte(s.progress(6)))
	for _, pair := range [][2]string{
		{`"numRowsTotal":1`, `"numRowsTotal":"1"`},
		{`"numRowsTotal":1`, `"numRowsTotal":01`},
		{`"x":"a","numRowsTotal":1`, `"x":"b\"","numRowsTotal":1`},
		{`"customMetrics":{"SnapshotLastUploaded.a":1,"b":2}`, `"customMetrics":{"b":2}`},
		{`"customMetrics":{"new":1}`, `"customMetrics":{"new":1e999}`},
	} {
		wrap := func(s string) []byte {
			return []byte(`{"id":"q","runId":"00000000-0000-4000-8000-000000000001","batchId":1,"stateOperators":[{` + s + `}]}`)
		}
		f.Add(wrap(pair[0]), wrap(pair[1]))
	}
	plain := NewPool(Limits{TemplateBytes: -1, UnknownKeys: 16, KeysPerEvent: 256})
	f.Fuzz(func(t *testing.T, teach, body []byte) {
		shaped := NewPool(Limits{UnknownKeys: 16, KeysPerEvent: 256})
		requireSame(t, plain, shaped, teach)
		requireSame(t, plain, shaped, body)
		requireSame(t, plain, shaped, teach)
		requireSame(t, plain, shaped, body)
	})
}
