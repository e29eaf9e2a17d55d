package strictyaml

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

var durationType = reflect.TypeFor[time.Duration]()

// scalar decodes text, numbers and booleans.
func (d *decoder) scalar(n *yaml.Node, target reflect.Value) {
	want := wanted(target)
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "want %s, got %s", want, kindName(n))
		return
	}
	if target.Type() == durationType {
		d.scalarHook(n, func(s string) error {
			v, err := ParseDuration(s)
			target.SetInt(int64(v))
			return err
		})
		return
	}
	if !set(n, target) {
		d.fault(n, "want %s, got %s", want, describe(n))
	}
}

// set stores a scalar and reports whether it fits.
func set(n *yaml.Node, target reflect.Value) bool {
	switch {
	case target.Kind() == reflect.String:
		target.SetString(n.Value)
		return true
	case target.Kind() == reflect.Bool:
		if n.ShortTag() != "!!bool" {
			return false
		}
		target.SetBool(strings.EqualFold(n.Value, "true"))
		return true
	case target.CanInt():
		v, err := strconv.ParseInt(digits(n), 0, target.Type().Bits())
		target.SetInt(v)
		return err == nil
	case target.CanUint():
		v, err := strconv.ParseUint(digits(n), 0, target.Type().Bits())
		target.SetUint(v)
		return err == nil
	case target.CanFloat():
		v, err := strconv.ParseFloat(digits(n), target.Type().Bits())
		target.SetFloat(v)
		return err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return false
}

// digits returns the text of a number, and of anything else a text that is none:
// a quoted number is text.
func digits(n *yaml.Node) string {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" {
		return "-"
	}
	return strings.ReplaceAll(n.Value, "_", "")
}

func wanted(target reflect.Value) string {
	switch {
	case target.Kind() == reflect.Bool:
		return "true or false"
	case target.CanUint():
		return fmt.Sprintf("a whole number from 0 to %d", uint64(math.MaxUint64)>>(64-target.Type().Bits()))
	case target.CanInt():
		return "a whole number"
	case target.CanFloat():
		return "a number"
	case target.Kind() == reflect.String:
		return "text"
	}
	return "nothing here"
}

// describe names what stands in the file.
func describe(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return cut(n.Value)
	case "!!bool":
		return strings.ToLower(n.Value)
	}
	return fmt.Sprintf("%q", cut(n.Value))
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return describe(n)
	}
	return "an alias"
}
