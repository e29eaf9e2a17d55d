package rules

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// TestEveryKeyOfARuleFileIsInTheReference reads the keys from the layout itself: what
// the loader takes and the reference does not name, nobody would find.
func TestEveryKeyOfARuleFileIsInTheReference(t *testing.T) {
	doc, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := strictyaml.Keys(reflect.TypeFor[ruleFile]())
	if len(keys) < 50 {
		t.Fatalf("only %d keys: %v", len(keys), keys)
	}
	for _, key := range keys {
		named := regexp.MustCompile("`[^`\n]*\\b" + key + "\\b[^`\n]*`|\\b" + key + ":|### [a-z, ]*\\b" + key + "\\b")
		if !named.Match(doc) {
			t.Errorf("docs/rules.md does not name %s", key)
		}
	}
	for _, name := range detectorNames() {
		if !regexp.MustCompile("\n### [a-z, ]*\\b" + name + "\\b").Match(doc) {
			t.Errorf("docs/rules.md has no section on %s", name)
		}
	}
}
