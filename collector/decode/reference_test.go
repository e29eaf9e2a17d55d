package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/collector"
	"github.com/stategauge/stategauge/event"
)

// reference reads figures of a bare progress out of what encoding/json makes of
// it, by rules written down a second time. It knows JSON's own forms only.
type reference struct{ root map[string]any }

func newReference(body []byte) (reference, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return reference{}, err
	}
	return reference{root}, nil
}

// figure is a number, a number in quotes, or NaN.
func figure(v any) float64 {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		if text = v; !json.Valid([]byte(v)) || v != strings.TrimSpace(v) || v == "" || v[0] > '9' {
			return math.NaN()
		}
	default:
		return math.NaN()
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// check compares the decoded batch with the reference and returns the differences.
func (r reference) check(b *event.Batch) (diffs []string) {
	compare := func(name string, got, want float64) {
		if got != want && (got == got || want == want) {
			diffs = append(diffs, fmt.Sprintf("%s: got %v, want %v", name, got, want))
		}
	}
	durations := object(r.root["durationMs"])
	for _, m := range event.Catalog() {
		if key, ok := strings.CutPrefix(m.JSON, "durationMs."); ok {
			compare(m.JSON, b.Values[m.ID], figure(durations[key]))
		}
	}
	for _, id := range []event.MetricID{event.BatchDuration, event.InputRowsPerSecond, event.ProcessedRowsPerSecond} {
		m := event.Lookup(id)
		compare(m.JSON, b.Values[id], figure(r.root[m.JSON]))
	}
	operators, _ := r.root["stateOperators"].([]any)
	at := 0
	for _, o := range operators {
		if op := object(o); op != nil && at < len(b.Operators) {
			r.operator(op, &b.Operators[at], compare)
			at++
		}
	}
	compare("operators", float64(len(b.Operators)), float64(at))
	return diffs
}

func (r reference) operator(op map[string]any, o *event.Operator, compare func(string, float64, float64)) {
	custom := object(op["customMetrics"])
	for _, m := range event.Catalog() {
		if m.Scope != event.ScopeOperator || m.Quirks&event.QuirkMinusOne != 0 || m.ID == event.SnapshotLastUploaded {
			continue
		}
		want := figure(custom[m.JSON])
		if v, ok := op[m.JSON]; ok {
			want = figure(v)
		}
		switch m.ID { // known by two names
		case event.NumRowsDroppedByWatermark, event.NumDroppedDuplicateRows, event.RocksDBTotalBytesRead, event.RocksDBTotalBytesWritten:
			continue
		}
		compare(o.Name+"."+m.JSON, o.Values[m.ID], want)
	}
}

// requireReference decodes a body that encoding/json takes and compares.
func requireReference(t *testing.T, pool *Pool, body []byte) {
	t.Helper()
	ref, err := newReference(body)
	if err != nil {
		t.Fatalf("the reference refuses %s: %v", body, err)
	}
	r := decodeAll(pool, body)
	if len(r) != 1 || r[0].Event == nil || r[0].Event.Batch == nil {
		t.Fatalf("%s\nbecame %+v", body, r)
	}
	if diffs := ref.check(r[0].Event.Batch); diffs != nil {
		t.Fatalf("%s\ndiffers from encoding/json:\n%s", body, strings.Join(diffs, "\n"))
	}
}

func TestFiguresAgreeWithEncodingJSON(t *testing.T) {
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	s := newSynth()
	s.snapshots = true
	for batch := range 60 {
		body := []byte(s.progress(batch))
		requireReference(t, plain, body)
		requireReference(t, shaped, body)
	}
}

// mutant changes figures of a progress to other forms of JSON at random.
func mutant(rng *rand.Rand, body []byte) []byte {
	forms := []string{
		`null`, `true`, `"12"`, `"1.5e3"`, `"x"`, `""`, `[]`, `{}`, `[1,{"a":2}]`, `{"b":[null]}`, `-7`, `0`, `0.5`, `1E2`, `12345678901234567890`,
		`1e400`, `"NaN"`, `-0`, `99999999`, `999999999999999`, `1000000000000000000`, `"Infinity"`, `false`, `3.0`,
	}
	out := append([]byte(nil), body...)
	for range 1 + rng.IntN(4) {
		colon := bytes.IndexByte(out[rng.IntN(len(out)):], ':')
		if colon < 0 {
			continue
		}
		// Only figures: a digit behind a colon, up to the next delimiter.
		i := len(out) - len(out[rng.IntN(len(out)):])
		for i < len(out) && (out[i] != ':' || i+1 >= len(out) || out[i+1]-'0' > 9) {
			i++
		}
		end := i + 1
		for end < len(out) && out[end] != ',' && out[end] != '}' && out[end] != '"' {
			end++
		}
		if end >= len(out) || out[end] == '"' {
			continue
		}
		tail := append([]byte(nil), out[end:]...)
		out = append(append(out[:i+1], forms[rng.IntN(len(forms))]...), tail...)
	}
	return out
}

func TestMutatedFiguresAgreeWithEncodingJSONAndWithTheShapeCache(t *testing.T) {
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	rng := rand.New(rand.NewPCG(5, 6))
	s := newSynth()
	s.snapshots = true
	compared := 0
	for i := range 600 {
		body := mutant(rng, []byte(s.progress(i%50)))
		if !json.Valid(body) {
			continue
		}
		compared++
		requireReference(t, plain, body)
		requireSame(t, plain, shaped, body)
	}
	if compared < 400 {
		t.Errorf("only %d mutants were JSON", compared)
	}
	if st := shaped.Stats(); st.ShapeHits == 0 || st.ShapeFallbacks == 0 {
		t.Errorf("the mutants should hit and miss the cache: %+v", st)
	}
}

func TestEveryCutOfAnEventIsRefusedAsTruncated(t *testing.T) {
	pool := NewPool(Limits{})
	s := newSynth()
	s.operators, s.partitions = 1, 2
	body := []byte(s.progress(1))
	for n := 1; n < len(body); n++ {
		for _, r := range decodeAll(pool, body[:n]) {
			if r.Event != nil || (r.Reason != collector.ReasonTruncated && r.Reason != collector.ReasonSyntax) {
				t.Fatalf("cut at %d: %+v", n, r)
			}
		}
	}
}
