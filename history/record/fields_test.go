package record

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stategauge/stategauge/event"
)

// bitwise compares updates as the form of a record promises: every number to the
// last bit, but one NaN is like another, and an empty list is none.
var bitwise = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.Comparer(alike),
	cmp.FilterValues(func(a, b event.Vector) bool { return slices.EqualFunc(a[:], b[:], alike) }, cmp.Comparer(func(event.Vector, event.Vector) bool { return true })),
}

func alike(a, b float64) bool { return same(a, b) || a != a && b != b }

// last is the greatest value of each enumeration, by type.
var last = map[reflect.Type]uint8{
	reflect.TypeFor[event.Kind]():           uint8(event.KindTick),
	reflect.TypeFor[event.Outcome]():        uint8(lastOutcome),
	reflect.TypeFor[event.State]():          uint8(event.StateRetired),
	reflect.TypeFor[event.TriggerKind]():    uint8(event.TriggerContinuous),
	reflect.TypeFor[event.MissedReason]():   uint8(event.MissedSender),
	reflect.TypeFor[event.IntervalOrigin](): uint8(event.IntervalListener),
	reflect.TypeFor[event.Provider]():       uint8(event.ProviderUnknown),
	reflect.TypeFor[event.Missing]():        math.MaxUint8, // a set of flags
}

// filler gives every field of a value something, whatever fields there are.
type filler struct {
	rng  *rand.Rand
	full bool // no pointer nil, no list empty
}

func (f *filler) update() *event.Update {
	u := &event.Update{}
	f.fill(reflect.ValueOf(u).Elem())
	return u
}

func (f *filler) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Slice:
		f.list(v)
	case reflect.Map:
		f.settings(v)
	case reflect.Pointer:
		if f.full || f.rng.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	default:
		f.leaf(v)
	}
}

func (f *filler) list(v reflect.Value) {
	n := f.rng.IntN(4)
	if f.full {
		n = 2
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		f.fill(v.Index(i))
	}
}

func (f *filler) settings(v reflect.Value) {
	if !f.full && f.rng.IntN(2) == 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range 1 + f.rng.IntN(3) {
		v.SetMapIndex(reflect.ValueOf(f.string()), reflect.ValueOf(f.string()))
	}
}

func (f *filler) leaf(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.full || f.rng.IntN(2) == 0)
	case reflect.String:
		v.SetString(f.string())
	case reflect.Float64:
		v.SetFloat(f.float())
	case reflect.Int, reflect.Int64:
		v.SetInt(f.int())
	case reflect.Int32:
		v.SetInt(int64(int32(f.int())))
	case reflect.Uint16:
		v.SetUint(uint64(1 + f.rng.IntN(event.NumMetrics-1))) // a metric of the catalog, or a version
	case reflect.Uint8:
		most, known := last[v.Type()]
		if !known {
			panic(fmt.Sprintf("%v is new: does a record carry it?", v.Type()))
		}
		v.SetUint(uint64(1 + f.rng.IntN(int(most))))
	default:
		panic(fmt.Sprintf("a field of %v is new: does a record carry it?", v.Type()))
	}
}

func (f *filler) string() string {
	switch f.rng.IntN(5) {
	case 0:
		if !f.full {
			return ""
		}
		fallthrough
	case 1:
		return fmt.Sprintf("%08x-%04x-4abc-9def-%012x", f.rng.Uint32(), f.rng.IntN(1<<16), f.rng.Int64N(1<<48))
	case 2:
		return fmt.Sprintf("%08X-0000-4ABC-9DEF-%012X", f.rng.Uint32(), f.rng.Int64N(1<<48)) // no usual form
	case 3:
		return "\x00\xff not text" + fmt.Sprint(f.rng.IntN(100))
	}
	return "word " + fmt.Sprint(f.rng.IntN(40))
}

func (f *filler) int() int64 {
	switch f.rng.IntN(6) {
	case 0:
		return event.Absent
	case 1:
		return math.MaxInt64 - f.rng.Int64N(3)
	case 2:
		return math.MinInt64 + 1 + f.rng.Int64N(3)
	case 3:
		return 1_930_000_000_000 + f.rng.Int64N(1e9)
	case 4:
		return -f.rng.Int64N(1e6)
	}
	return 1 + f.rng.Int64N(500)
}

var oddFloats = []float64{
	0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64,
	exact, exact - 1, exact + 2, -exact, -1, 0.1, -0.1, 1e-6, 1e-7, 1e15, 1e16 + 2, 123456.789012, math.Pi, 1 << 62, 1 << 63,
}

func (f *filler) float() float64 {
	switch f.rng.IntN(5) {
	case 0:
		return oddFloats[f.rng.IntN(len(oddFloats))]
	case 1:
		return f.rng.NormFloat64()
	case 2:
		return float64(f.rng.IntN(100_000)) / 10
	}
	return float64(f.rng.Int64N(1 << f.rng.IntN(60)))
}

// carried writes u and reads it back into memory that holds something else.
func carried(t testing.TB, u *event.Update, d *Dictionary, into *event.Update) {
	t.Helper()
	b := Append([]byte("kept"), u, d)
	if string(b[:4]) != "kept" {
		t.Fatal("what was there before the record is gone")
	}
	if err := Decode(b[4:], d, into); err != nil {
		t.Fatalf("decode: %v\n% x", err, b[4:])
	}
	if diff := cmp.Diff(u, into, bitwise); diff != "" {
		t.Fatalf("the record does not give back what went in (-in +out):\n%s", diff)
	}
}

// Whoever adds a field to an event, a batch or one of their parts meets this test:
// fields are filled as they are found, and a field that is not carried comes back
// with what the memory held before.
func TestEveryFieldOfAnUpdateComesBack(t *testing.T) {
	d := NewDictionary(0)
	seeds := uint64(400)
	if raced {
		seeds = 40
	}
	for seed := range seeds {
		f := filler{rng: rand.New(rand.NewPCG(1, seed)), full: seed%2 == 0}
		dirty := filler{rng: rand.New(rand.NewPCG(2, seed)), full: seed%3 == 0}
		carried(t, f.update(), d, dirty.update())
	}
}

// The update belongs to others, who may read it at the same time.
func TestEncodingChangesNothing(t *testing.T) {
	d := NewDictionary(0)
	for seed := range uint64(20) {
		f := filler{rng: rand.New(rand.NewPCG(7, seed)), full: seed%2 == 0}
		u := f.update()
		before := leaves(u)
		Append(nil, u, d)
		if diff := cmp.Diff(before, leaves(u)); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	}
}

// Fields that follow from each other are written as what they differ by, so each
// is also changed alone.
func TestEveryFieldCountsByItself(t *testing.T) {
	d := NewDictionary(0)
	f := filler{rng: rand.New(rand.NewPCG(3, 3)), full: true}
	n := 0
	var change func(u *event.Update, v reflect.Value, path string)
	change = func(u *event.Update, v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				change(u, v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.Array, reflect.Slice:
			for i := range v.Len() {
				change(u, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
			}
		case reflect.Pointer:
			change(u, v.Elem(), path)
		case reflect.Map:
		default:
			n++
			was := reflect.ValueOf(v.Interface())
			f.leaf(v)
			carried(t, u, d, &event.Update{})
			v.Set(was)
		}
	}
	u := f.update()
	change(u, reflect.ValueOf(u).Elem(), "Update")
	if n < 3*event.NumMetrics {
		t.Errorf("only %d fields were found", n)
	}
}

func TestMissingPartsComeBackAsMissing(t *testing.T) {
	d := NewDictionary(0)
	f := filler{rng: rand.New(rand.NewPCG(4, 4)), full: true}
	for name, u := range map[string]*event.Update{
		"no event":              {},
		"an event of nothing":   {Event: &event.Event{}},
		"an empty batch":        {Event: &event.Event{Batch: &event.Batch{}}},
		"an empty envelope":     {Event: &event.Event{Envelope: &event.Envelope{}}},
		"settings, but none":    {Event: &event.Event{Envelope: &event.Envelope{Conf: map[string]string{}}}},
		"executors that lack":   {Event: &event.Event{Envelope: &event.Envelope{Executors: &event.Executors{Count: event.Absent}}}},
		"a failure without say": {Event: &event.Event{Failure: &event.Failure{}}},
	} {
		t.Run(name, func(t *testing.T) {
			into := f.update()
			carried(t, u, d, into)
			if e := u.Event; e != nil && e.Envelope != nil && (e.Envelope.Conf == nil) != (into.Event.Envelope.Conf == nil) {
				t.Error("settings that were not sent and settings without any are told apart by nil")
			}
		})
	}
}

// Values that a newer program may add must not be indexed by; values that this one
// has must all pass, also those that are added to the event package.
func TestEveryKnownValueOfAnEnumerationPasses(t *testing.T) {
	d := NewDictionary(0)
	for i := range 256 {
		v := uint8(i)
		for what, c := range map[string]struct {
			name string
			u    event.Update
		}{
			"kind":            {event.Kind(v).String(), event.Update{Event: &event.Event{Kind: event.Kind(v)}}},
			"outcome":         {event.Outcome(v).String(), event.Update{Outcome: event.Outcome(v)}},
			"state":           {event.State(v).String(), event.Update{State: event.State(v)}},
			"former state":    {event.State(v).String(), event.Update{Was: event.State(v)}},
			"trigger":         {event.TriggerKind(v).String(), event.Update{Trigger: event.TriggerKind(v)}},
			"batch's trigger": {event.TriggerKind(v).String(), event.Update{Event: &event.Event{Batch: &event.Batch{Trigger: event.TriggerKind(v)}}}},
			"reason":          {event.MissedReason(v).String(), event.Update{Missed: 1, MissedReason: event.MissedReason(v)}},
			"interval from":   {event.IntervalOrigin(v).String(), event.Update{IntervalFrom: event.IntervalOrigin(v)}},
			"provider":        {event.Provider(v).String(), event.Update{Event: &event.Event{Batch: &event.Batch{Operators: []event.Operator{{Provider: event.Provider(v)}}}}}},
		} {
			err := Decode(Append(nil, &c.u, d), d, &event.Update{})
			known := v == 0 || c.name != "unknown" || what == "provider" && v == uint8(event.ProviderUnknown)
			if known && err != nil {
				t.Errorf("%s %d (%s): %v", what, v, c.name, err)
			}
			if !known && err == nil {
				t.Errorf("%s %d is not known and passed", what, v)
			}
		}
	}
}

func TestNumbersComeBackToTheLastBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	values := append([]float64(nil), oddFloats...)
	for range 20_000 {
		values = append(values, math.Float64frombits(rng.Uint64()), float64(rng.IntN(1e9))/1000, -float64(rng.IntN(1e6))/10)
	}
	for _, v := range values {
		ref := int64(rng.Uint64() >> rng.IntN(64))
		w := codec{writing: true}
		w.number(&v)
		w.figure(&v, ref)
		r := codec{buf: w.buf}
		var a, b float64
		r.number(&a)
		r.figure(&b, ref)
		both := same(a, v) && same(b, v) || v != v && a != a && b != b
		if r.err != nil || !both || len(r.buf) > 0 {
			t.Fatalf("number %v (%x) came back as %v and, from %d, as %v, error %v", v, math.Float64bits(v), a, ref, b, r.err)
		}
	}
}

func TestRatesComeBackToTheLastBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	shorter := 0
	for i := range 20_000 {
		rows, ms, usual := float64(rng.IntN(1e7)), 1+rng.Int64N(1e6), rng.Int64N(1e6)
		v := perSecond(rows, ms, i%2 == 0)
		if i%10 == 9 {
			v, rows = rng.NormFloat64(), math.NaN()
		}
		w := codec{writing: true}
		found := w.rate(&v, rows, usual)
		r := codec{buf: w.buf}
		var back float64
		again := r.rate(&back, rows, usual)
		if r.err != nil || !same(back, v) || again != found || len(r.buf) > 0 {
			t.Fatalf("rate %v of %v rows in %d ms came back as %v of %d and not %d ms, error %v", v, rows, ms, back, again, found, r.err)
		}
		if len(w.buf) < 8 {
			shorter++
		}
	}
	if shorter < 17_000 {
		t.Errorf("only %d of 18,000 rates were written as milliseconds", shorter)
	}
}
