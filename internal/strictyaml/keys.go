package strictyaml

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Keys returns every key that a layout has at any depth, sorted, each once: what a
// reference of the format has to name. Layouts must not contain themselves.
func Keys(layout reflect.Type) []string {
	found := map[string]bool{}
	gather(layout, found)
	return slices.Sorted(maps.Keys(found))
}

func gather(in reflect.Type, found map[string]bool) {
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		gather(in.Elem(), found)
		return
	case reflect.Struct:
	default:
		return
	}
	for i := range in.NumField() {
		key, how, _ := strings.Cut(in.Field(i).Tag.Get("yaml"), ",")
		switch {
		case key == "-", key == "" && how != "inline":
			continue
		case key != "":
			found[key] = true
		}
		gather(in.Field(i).Type, found)
	}
}
