package exporter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A definition without a key would be lost in a restart; two with one key would be
// mixed up.
func TestEverySeriesHasAKeyOfItsOwn(t *testing.T) {
	x := New(Options{})
	unused := map[defID]bool{}
	for d := defLast; d < defLastEnd; d++ {
		unused[d] = !slices.Contains(x.plan.last[:], d)
	}
	seen := map[savedKey]defID{}
	for d := range defID(numDefs) {
		k := x.keyTable.keys[d]
		if unused[d] || x.defs[d].family == nil {
			continue
		}
		if d != 0 && k == (savedKey{}) {
			t.Errorf("definition %d (%s) has no key", d, x.defs[d].family.name)
		}
		if other, twice := seen[k]; twice {
			t.Errorf("definitions %d and %d share a key", d, other)
		}
		if seen[k] = d; x.keyTable.defs[k] != d {
			t.Errorf("the key of definition %d leads to %d", d, x.keyTable.defs[k])
		}
	}
}

// filler sets everything below a value to something that is not zero.
type filler struct{ n int64 }

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(reflect.NewAt(v.Field(i).Type(), v.Field(i).Addr().UnsafePointer()).Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.String:
		v.SetString(fmt.Sprint("s", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(f.n)
	case reflect.Int8:
		v.SetInt(1 + f.n%2)
	case reflect.Uint8:
		v.SetUint(1 + uint64(f.n%5))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.Map:
	default:
		panic(fmt.Sprint("no way to fill a ", v.Type()))
	}
}

// A field that is added and forgotten shows as one that came back empty.
func TestEveryFieldThatIsRememberedIsSaved(t *testing.T) {
	p := &New(Options{}).plan
	write := func(visit func(c *saver)) *saver {
		c := &saver{writing: true}
		visit(c)
		return &saver{buf: c.buf}
	}
	in, out := &query{}, &query{}
	f := &filler{}
	for _, v := range []any{&in.identity, &in.known, &in.infoKey, &in.state, &in.retired, &in.retiredAtMs, &in.lastMs, &in.batchMs, &in.bornMs, &in.gen, &in.begun, &in.ran, &in.run, &in.runFirst, &in.newest, &in.newestMs, &in.inferred, &in.key} {
		f.fill(reflect.ValueOf(v).Elem())
	}
	in.identity.id = "" // claimed anew
	out.visit(write(in.visit))
	all := cmp.AllowUnexported(query{}, identity{}, known{}, infoKey{}, operatorState{}, sticky{})
	if diff := cmp.Diff(in, out, all, cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.String(), "owner") || p.String() == "mu" }, cmp.Ignore())); diff != "" {
		t.Errorf("query (-saved +read)\n%s", diff)
	}
	var op, got savedOperator
	op.state = &operatorState{}
	f.fill(reflect.ValueOf(op.state).Elem())
	op.key, op.lastMs = operatorKey{7, "name"}, 99
	for i := range op.state.sticky.upload { // places beyond the catalog's rows are never used
		if i >= len(p.sticky) {
			op.state.sticky.upload[i] = 0
		}
		if i >= len(p.slow) {
			op.state.sticky.slow[i] = 0
		}
	}
	got.visit(write(func(c *saver) { op.visit(c, p) }), p)
	if diff := cmp.Diff(op, got, all, cmp.AllowUnexported(savedOperator{}, operatorKey{})); diff != "" {
		t.Errorf("operator (-saved +read)\n%s", diff)
	}
	h, same := &hist{family: New(Options{}).defs[defBatchHist].family}, &hist{}
	for i := range h.counts {
		h.observe(&observation{raw: float64(i * i * 5000), batch: int64(i), endMs: int64(i)})
	}
	h.boundsMark = h.family.boundsMark()
	same.visit(write(h.visit))
	same.family = h.family
	if diff := cmp.Diff(h, same, cmp.AllowUnexported(hist{}, exemplar{}, nativeBucket{}), cmp.Comparer(func(a, b *family) bool { return a == b })); diff != "" {
		t.Errorf("histogram (-saved +read)\n%s", diff)
	}
}

// Whoever adds a field to these types decides whether a restart has to keep it.
func TestNoFieldIsUnaccountedFor(t *testing.T) {
	for typ, fields := range map[reflect.Type]string{
		reflect.TypeFor[query](): "owner id key gone identity base state retired retiredAtMs lastMs batchMs bornMs born gen begun ran quiet past run runFirst newest newestMs known inferred " +
			"info infoKey operators sources unknown phases observed quantiles next observations mu values hists refs histRefs free count",
		reflect.TypeFor[entity]():   "labels slots lastMs op",
		reflect.TypeFor[identity](): "id name application cluster extra",
		reflect.TypeFor[hist]():     "family counts exemplars sum count zeros native boundsMark",
	} {
		var have []string
		for i := range typ.NumField() {
			have = append(have, typ.Field(i).Name)
		}
		for _, name := range have {
			if !slices.Contains(strings.Fields(fields), name) {
				t.Errorf("%s.%s: does it survive a restart, and need it?", typ.Name(), name)
			}
		}
	}
}
