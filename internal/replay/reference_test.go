package replay

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

func TestEveryKeyOfATestOfRulesIsInTheReference(t *testing.T) {
	page, err := os.ReadFile("../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, found := bytes.Cut(page, []byte("\n## Testing rules\n"))
	if !found {
		t.Fatal("docs/rules.md says nothing of tests of rules")
	}
	doc, _, _ = bytes.Cut(doc, []byte("\n## "))
	for _, key := range strictyaml.Keys(reflect.TypeFor[caseFile]()) {
		if !regexp.MustCompile("`[^`\n]*\\b" + key + "\\b[^`\n]*`|\\b" + key + ":").Match(doc) {
			t.Errorf("docs/rules.md does not name %s", key)
		}
	}
}
