package strictyaml

import (
	"reflect"
	"slices"
	"testing"
)

func TestKeysAreThoseOfEveryDepthEachOnce(t *testing.T) {
	type leaf struct {
		Deep  int `yaml:"deep"`
		Again int `yaml:"again"`
		None  int
		Left  int `yaml:"-"`
	}
	type common struct {
		Inlined string `yaml:"inlined"`
	}
	type layout struct {
		Again  string          `yaml:"again"`
		List   []leaf          `yaml:"list"`
		Map    map[string]leaf `yaml:"map,omitempty"`
		Maybe  *leaf           `yaml:"maybe"`
		Common common          `yaml:",inline"`
	}
	got := Keys(reflect.TypeFor[layout]())
	if want := []string{"again", "deep", "inlined", "list", "map", "maybe"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
