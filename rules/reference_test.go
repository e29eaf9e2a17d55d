package rules

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestEveryKeyOfARuleFileIsInTheReference reads the keys from the layout itself: what
// the loader takes and the reference does not name, nobody would find.
func TestEveryKeyOfARuleFileIsInTheReference(t *testing.T) {
	page, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	doc, keys := string(page), map[string]bool{}
	gatherKeys(reflect.TypeFor[ruleFile](), keys)
	if len(keys) < 50 {
		t.Fatalf("only %d keys: %v", len(keys), keys)
	}
	for key := range keys {
		named := regexp.MustCompile("`[^`\n]*\\b" + key + "\\b[^`\n]*`|\\b" + key + ":|### [a-z, ]*\\b" + key + "\\b")
		if !named.MatchString(doc) {
			t.Errorf("docs/rules.md does not name %s", key)
		}
	}
	for _, name := range detectorNames() {
		if !regexp.MustCompile("\n### [a-z, ]*\\b" + name + "\\b").MatchString(doc) {
			t.Errorf("docs/rules.md has no section on %s", name)
		}
	}
}

// gatherKeys collects the YAML keys of a layout.
func gatherKeys(in reflect.Type, out map[string]bool) {
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		gatherKeys(in.Elem(), out)
		return
	case reflect.Struct:
	default:
		return
	}
	for i := range in.NumField() {
		key, how, _ := strings.Cut(in.Field(i).Tag.Get("yaml"), ",")
		if key == "" && how != "inline" {
			continue
		}
		if key != "" {
			out[key] = true
		}
		gatherKeys(in.Field(i).Type, out)
	}
}
