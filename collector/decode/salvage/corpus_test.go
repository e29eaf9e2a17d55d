package salvage

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// render shows everything that a text yields: each piece with its lines, then the
// count of lines skipped.
func render(t testing.TB, text []byte) (out string, events, rejects int) {
	t.Helper()
	var b strings.Builder
	skipped := Text(text, DefaultLimits(), func(p Piece) {
		if p.JSON == nil {
			rejects++
			fmt.Fprintf(&b, "reject %d-%d %s: %v\n", p.Line, p.EndLine, p.Reason, p.Err)
			return
		}
		events++
		if !json.Valid(p.JSON) {
			t.Errorf("lines %d-%d: not well-formed: %s", p.Line, p.EndLine, p.JSON)
		}
		fmt.Fprintf(&b, "event %d-%d repaired %d\n%s\n", p.Line, p.EndLine, p.Repaired, p.JSON)
	})
	fmt.Fprintf(&b, "skipped %d\n", skipped)
	return b.String(), events, rejects
}

func corpus(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", dir, err)
	}
	return files
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	want := strings.TrimSuffix(file, ".txt") + ".golden"
	if *update {
		if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestEveryCarrierYieldsItsEvents(t *testing.T) {
	for _, file := range corpus(t, "good") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, events, _ := render(t, text)
			if events == 0 && !strings.Contains(file, "unknown_") {
				t.Error("no event found")
			}
			golden(t, file, got)
		})
	}
}

func TestEveryUnusableTextIsRefusedWithItsReason(t *testing.T) {
	for _, file := range corpus(t, "bad") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, events, rejects := render(t, text)
			if events != 0 || rejects == 0 {
				t.Errorf("%d events and %d rejects, want a reject only", events, rejects)
			}
			golden(t, file, got)
		})
	}
}

// The carriers that hold the very same event must yield the very same event,
// whatever is wrapped around it.
func TestCarriersOfOneEventAgree(t *testing.T) {
	groups := map[string][]string{
		"log_prefix": {
			"line_comments", "indent_lost", "log_lines_in_between", "hard_wrapped_80", "hard_wrapped_dict_61", "notebook_pprint",
			"repaired_comma_missing", "repaired_trailing_commas", "repaired_key_quote", "repaired_last_brace", "repaired_first_brace", "python_repr",
		},
		"decorated_prefix": {
			"hash_comments", "doc_comment", "strip_margin", "quoted_mail", "compact_wrapped_in_comments", "repl_transcript", "byte_order_mark_crlf",
			"notebook_cells", "escaped_in_quotes", "container_prefix", "compose_prefix", "inline_comments", "pprint_long_string",
			"break_after_colon", "no_break_spaces", "recent_progress_list", "three_slashes", "scheduler_prefix", "line_numbers",
			"file_and_line", "added_lines", "runtime_json_log", "table_field", "python_string",
		},
	}
	for first, others := range groups {
		want := firstEvent(t, first)
		for _, name := range others {
			if diff := cmp.Diff(want, firstEvent(t, name)); diff != "" {
				t.Errorf("%s against %s:\n%s", name, first, diff)
			}
		}
	}
}

func firstEvent(t *testing.T, name string) (v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "good", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	Text(text, DefaultLimits(), func(p Piece) {
		if v != nil || p.JSON == nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(p.JSON))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return v
}
