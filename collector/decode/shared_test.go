package decode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealEventsAreTaken reads real events that people posted, where a directory
// of them is given: every file that is JSON throughout must give the events, the
// skipped lines and the rejects that it is known to hold.
func TestRealEventsAreTaken(t *testing.T) {
	root := os.Getenv("STATEGAUGE_SHARED")
	if root == "" {
		t.Skip("STATEGAUGE_SHARED is not set")
	}
	type counts struct{ events, skipped, rejected int }
	want := map[string]counts{ // all other files: one event
		"001": {9, 0, 0}, "002": {4, 66, 0}, "003": {0, 1, 3}, "004": {0, 1, 3}, "005": {0, 1, 4}, "006": {3, 0, 0},
		"007": {3, 33, 0}, "016": {1, 0, 0}, "019": {0, 0, 1}, "045": {4, 0, 0}, "068": {0, 0, 1}, "e_": {4, 0, 0},
	}
	plain, shaped := NewPool(Limits{TemplateBytes: -1}), NewPool(Limits{})
	files := 0
	for _, pattern := range []string{"samples/*json", "spark/examples/*json"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files++
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				requireSame(t, plain, shaped, body)
			}
			var got counts
			for _, r := range decodeAll(plain, body) {
				switch {
				case r.Reason != "":
					got.rejected++
				case r.Event == nil:
					got.skipped++
				default:
					got.events++
				}
			}
			expect := counts{1, 0, 0}
			for prefix, c := range want {
				if strings.HasPrefix(filepath.Base(name), prefix) {
					expect = c
				}
			}
			if got != expect {
				t.Errorf("%s: %+v, want %+v", filepath.Base(name), got, expect)
			}
		}
	}
	if files == 0 {
		t.Errorf("no events under %s", root)
	}
}
