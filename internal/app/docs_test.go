package app

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestEveryKeyOfTheConfigurationIsDocumented holds docs/operations.md against the
// configuration's own fields.
func TestEveryKeyOfTheConfigurationIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var missing func(v reflect.Type, prefix string)
	missing = func(v reflect.Type, prefix string) {
		for i := range v.NumField() {
			key := prefix + v.Field(i).Tag.Get("yaml")
			inner := v.Field(i).Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct && prefix == "" && inner != reflect.TypeFor[Time]() {
				missing(inner, key+".")
				continue
			}
			if !strings.Contains(string(doc), "`"+key+"`") {
				t.Errorf("%s is not in docs/operations.md", key)
			}
		}
	}
	missing(reflect.TypeFor[Config](), "")
	missing(reflect.TypeFor[QueryOverride](), "")
}
