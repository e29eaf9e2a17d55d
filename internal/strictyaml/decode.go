package strictyaml

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// value decodes n into target and notes where it stands.
func (d *decoder) value(n *yaml.Node, target reflect.Value, path string, depth int) {
	if !d.enter(n, depth) {
		return
	}
	d.pos.nodes[path] = place{at: Position{Line: n.Line, Column: n.Column}, style: n.Style, text: n.Value}
	if n.Kind == yaml.AliasNode {
		d.value(n.Alias, target, path, depth+1)
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return
	}
	if target.Kind() == reflect.Pointer {
		d.pointer(n, target, path, depth)
		return
	}
	if target.CanAddr() && d.hook(n, target.Addr().Interface(), path, depth) {
		return
	}
	d.plain(n, target, path, depth)
}

// enter keeps nesting and alias expansion within the limits.
func (d *decoder) enter(n *yaml.Node, depth int) bool {
	if d.full {
		return false
	}
	d.nodes++
	if d.nodes > MaxNodes {
		d.full = true
		d.fault(n, "more than %d values, aliases expanded", MaxNodes)
		return false
	}
	if depth > MaxDepth {
		d.fault(n, "nested deeper than %d levels", MaxDepth)
		return false
	}
	return true
}

func (d *decoder) pointer(n *yaml.Node, target reflect.Value, path string, depth int) {
	if target.IsNil() {
		target.Set(reflect.New(target.Type().Elem()))
	}
	d.nodes-- // the same value again, not one more
	d.value(n, target.Elem(), path, depth)
}

// hook lets the type decode itself, and reports whether it did.
func (d *decoder) hook(n *yaml.Node, target any, path string, depth int) bool {
	switch t := target.(type) {
	case ScalarDecoder:
		d.scalarHook(n, t.DecodeScalar)
	case encoding.TextUnmarshaler:
		d.scalarHook(n, func(s string) error { return t.UnmarshalText([]byte(s)) })
	case legacyUnmarshaler:
		d.legacyHook(n, t, path, depth)
	default:
		return false
	}
	return true
}

func (d *decoder) scalarHook(n *yaml.Node, decode func(string) error) {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "want one value, got %s", kindName(n))
		return
	}
	if err := decode(n.Value); err != nil {
		d.faultAt(Position{Line: n.Line, Column: n.Column}, err)
	}
}

// legacyHook runs UnmarshalYAML. Faults found inside stand already; only an error
// of its own checks is new.
func (d *decoder) legacyHook(n *yaml.Node, t legacyUnmarshaler, path string, depth int) {
	before := len(d.faults)
	err := t.UnmarshalYAML(func(into any) error {
		v := reflect.ValueOf(into)
		if v.Kind() != reflect.Pointer || v.IsNil() {
			return ErrInvalid
		}
		inner := len(d.faults)
		d.value(n, v.Elem(), path, depth+1)
		if len(d.faults) > inner {
			return ErrInvalid
		}
		return nil
	})
	if err != nil && len(d.faults) == before {
		d.faultAt(Position{Line: n.Line, Column: n.Column}, err)
	}
}

// plain decodes by the target's kind.
func (d *decoder) plain(n *yaml.Node, target reflect.Value, path string, depth int) {
	switch target.Kind() {
	case reflect.Struct:
		d.structure(n, target, path, depth)
	case reflect.Map:
		d.mapping(n, target, path, depth)
	case reflect.Slice:
		d.list(n, target, path, depth)
	case reflect.Interface:
		d.anything(n, target, path, depth)
	default:
		d.scalar(n, target)
	}
}

func (d *decoder) list(n *yaml.Node, target reflect.Value, path string, depth int) {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "want a list, got %s", kindName(n))
		return
	}
	out := reflect.MakeSlice(target.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, out.Index(i), index(path, i), depth+1)
	}
	target.Set(out)
}

// anything decodes into an `any` field: maps, lists, text and numbers.
func (d *decoder) anything(n *yaml.Node, target reflect.Value, path string, depth int) {
	var out reflect.Value
	switch n.Kind {
	case yaml.MappingNode:
		out = reflect.ValueOf(&map[string]any{})
	case yaml.SequenceNode:
		out = reflect.ValueOf(&[]any{})
	default:
		var v any
		if err := n.Decode(&v); err != nil {
			d.fault(n, "%s cannot be read", describe(n))
			return
		}
		out = reflect.ValueOf(&v)
	}
	if n.Kind != yaml.ScalarNode {
		d.plain(n, out.Elem(), path, depth)
	}
	if got := out.Elem(); got.IsValid() && got.Type().AssignableTo(target.Type()) {
		target.Set(got)
	}
}

func (d *decoder) mapping(n *yaml.Node, target reflect.Value, path string, depth int) {
	if target.Type().Key().Kind() != reflect.String {
		d.fault(n, "a map with keys of type %s cannot be decoded", target.Type().Key())
		return
	}
	out := reflect.New(target.Type()).Elem()
	out.Set(reflect.MakeMap(target.Type()))
	d.eachKey(n, func(key, val *yaml.Node) { d.mapEntry(out, key, val, path, depth) })
	if n.Kind == yaml.MappingNode {
		target.Set(out)
	}
}

func (d *decoder) structure(n *yaml.Node, target reflect.Value, path string, depth int) {
	known := fieldsOf{byKey: map[string]reflect.Value{}}
	known.collect(target)
	d.eachKey(n, func(key, val *yaml.Node) {
		field, ok := known.byKey[key.Value]
		switch {
		case ok:
			d.value(val, field, child(path, key.Value), depth+1)
		case known.rest.IsValid():
			d.mapEntry(known.rest, key, val, path, depth)
		default:
			d.fault(key, "unknown key %q%s", cut(key.Value), DidYouMean(key.Value, known.names()))
		}
	})
}

// mapEntry decodes one key into a map, making the map where there is none.
func (d *decoder) mapEntry(target reflect.Value, key, val *yaml.Node, path string, depth int) {
	if target.IsNil() {
		target.Set(reflect.MakeMap(target.Type()))
	}
	elem := reflect.New(target.Type().Elem()).Elem()
	d.value(val, elem, child(path, key.Value), depth+1)
	target.SetMapIndex(reflect.ValueOf(key.Value).Convert(target.Type().Key()), elem)
}

// eachKey visits the keys of a mapping, reporting those that cannot be used.
func (d *decoder) eachKey(n *yaml.Node, visit func(key, val *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "want keys and values, got %s", kindName(n))
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			d.fault(key, "want a name as key, got %s", kindName(key))
			continue
		}
		if key.ShortTag() == "!!merge" {
			d.fault(key, `merge key "<<" is not supported; write the keys out`)
			continue
		}
		if line, dup := seen[key.Value]; dup {
			d.fault(key, "key %q is set twice, first on line %d", cut(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		visit(key, val)
	}
}

// fieldsOf are the fields of a struct by key, those of inline structs too.
type fieldsOf struct {
	byKey map[string]reflect.Value
	rest  reflect.Value // the inline map that takes all other keys, if there is one
}

func (f *fieldsOf) collect(v reflect.Value) {
	t := v.Type()
	for i := range t.NumField() {
		field := t.Field(i)
		name, opts, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		inline := strings.Contains(opts, "inline")
		switch {
		case name == "-" || !field.IsExported():
		case inline && field.Type.Kind() == reflect.Struct:
			f.collect(v.Field(i))
		case inline && field.Type.Kind() == reflect.Map && field.Type.Key().Kind() == reflect.String:
			f.rest = v.Field(i)
		case name == "":
			f.byKey[strings.ToLower(field.Name)] = v.Field(i)
		default:
			f.byKey[name] = v.Field(i)
		}
	}
}

func (f *fieldsOf) names() []string { return slices.Sorted(maps.Keys(f.byKey)) }
