package strictyaml

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// settings has a field of every sort that the project's files use.
type settings struct {
	Name     string             `yaml:"name"`
	Threads  int                `yaml:"threads"`
	Port     uint16             `yaml:"port"`
	Ratio    float64            `yaml:"ratio"`
	Enabled  bool               `yaml:"enabled"`
	Wait     time.Duration      `yaml:"wait"`
	Hold     Duration           `yaml:"hold"`
	Limit    Bytes              `yaml:"limit"`
	Share    Percent            `yaml:"share"`
	Tags     []string           `yaml:"tags"`
	Labels   map[string]string  `yaml:"labels"`
	Limits   map[string]Percent `yaml:"limits"`
	Targets  []target           `yaml:"targets"`
	Fallback *target            `yaml:"fallback"`
	Level    level              `yaml:"level"`
	Window   window             `yaml:"window"`
	Free     any                `yaml:"free"`
	Secret   string             `yaml:"-"`
	common   int                // shows that unexported fields have no key
	Extra    `yaml:",inline"`
}

// Extra is embedded inline.
type Extra struct {
	Comment string `yaml:"comment"`
}

type target struct {
	URL     address `yaml:"url"`
	Timeout Duration
}

// level compiles from text.
type level int

func (l *level) UnmarshalText(text []byte) error {
	i := slices.Index([]string{"low", "high"}, string(text))
	if i < 0 {
		return fmt.Errorf("level %q is not known%s", text, DidYouMean(string(text), []string{"low", "high"}))
	}
	*l = level(i)
	return nil
}

// address has the hook of older libraries, as the Prometheus types do.
type address struct{ *url.URL }

func (a *address) UnmarshalYAML(unmarshal func(any) error) error {
	var s string
	if err := unmarshal(&s); err != nil {
		return err
	}
	u, err := url.Parse(s)
	a.URL = u
	if err == nil && u.Scheme == "" {
		err = errors.New("an address needs a scheme")
	}
	return err
}

// window checks itself after decoding, as the Prometheus types do.
type window struct {
	From int `yaml:"from"`
	To   int `yaml:"to"`
}

func (w *window) UnmarshalYAML(unmarshal func(any) error) error {
	type plain window
	if err := unmarshal((*plain)(w)); err != nil {
		return err
	}
	if w.To < w.From {
		return fmt.Errorf("the window ends (%d) before it begins (%d)", w.To, w.From)
	}
	return nil
}

// TestFilesDecodeOrNameEveryFault runs testdata: a file in, the faults or the
// decoded value out.
func TestFilesDecodeOrNameEveryFault(t *testing.T) {
	datadriven.RunTest(t, "testdata/decode", func(t *testing.T, d *datadriven.TestData) string {
		s := settings{Name: "unset", Threads: 4}
		err := Decode("c.yaml", []byte(d.Input), &s)
		if err != nil {
			return err.Error() + "\n"
		}
		return show(&s)
	})
}

// show prints the fields that differ from the start.
func show(s *settings) string {
	var b strings.Builder
	line := func(name string, v any, zero bool) {
		if !zero {
			fmt.Fprintf(&b, "%s: %v\n", name, v)
		}
	}
	line("name", s.Name, s.Name == "unset")
	line("threads", s.Threads, s.Threads == 4)
	line("port", s.Port, s.Port == 0)
	line("ratio", s.Ratio, s.Ratio == 0)
	line("enabled", s.Enabled, !s.Enabled)
	line("wait", s.Wait, s.Wait == 0)
	line("hold", s.Hold, s.Hold == 0)
	line("limit", int64(s.Limit), s.Limit == 0)
	line("share", s.Share, s.Share == 0)
	line("tags", fmt.Sprintf("%q", s.Tags), s.Tags == nil)
	line("labels", s.Labels, s.Labels == nil)
	line("limits", s.Limits, s.Limits == nil)
	for i, t := range s.Targets {
		line(fmt.Sprint("target ", i), fmt.Sprint(t.URL.URL, " ", t.Timeout), false)
	}
	line("fallback", "set", s.Fallback == nil)
	line("level", int(s.Level), s.Level == 0)
	line("window", s.Window, s.Window == window{})
	line("free", s.Free, s.Free == nil)
	line("comment", s.Comment, s.Comment == "")
	line("common", s.common, s.common == 0)
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func TestEveryFaultsIsAnInvalidFile(t *testing.T) {
	err := fmt.Errorf("load: %w", Decode("c.yaml", []byte("level: mid\nthreads: x\n"), &settings{}))
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("errors.Is(%v, ErrInvalid) = false", err)
	}
	var fs Faults
	if !errors.As(err, &fs) || len(fs) != 2 {
		t.Fatalf("want two faults, got %v", err)
	}
	if want := (Position{Line: 2, Column: 10}); fs[1].Position != want {
		t.Errorf("position of the second fault: got %v, want %v", fs[1].Position, want)
	}
}

func TestCausesOfFaultsAreReachable(t *testing.T) {
	cause := errors.New("cause")
	err := Join(nil, Faults{{File: "a", Err: cause}}.Err(), errors.New("loose"))
	if !errors.Is(err, cause) || !errors.Is(err, ErrInvalid) {
		t.Errorf("%v: cause or ErrInvalid is lost", err)
	}
	if got, want := err.Error(), "a: cause\nconfiguration: loose"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if Join(nil, nil) != nil {
		t.Error("joining nothing is an error")
	}
}

func TestDecodingIntoAValueIsRefused(t *testing.T) {
	if err := Decode("c.yaml", nil, settings{}); err == nil || errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want an error that is not the file's fault", err)
	}
}

func TestPositionsFollowPaths(t *testing.T) {
	text := "name: a\ntargets:\n  - url: http://x\n  - url: http://y\n    timeout: 3s\nlabels:\n  a.b: c\n"
	pos, err := DecodeAt("c.yaml", []byte(text), &settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want Position
	}{
		{Path("name"), Position{1, 7}},
		{Path("targets", 1, "timeout"), Position{5, 14}},
		{Path("targets", 0, "timeout"), Position{3, 5}}, // not set: the target itself
		{Path("targets", 7), Position{3, 3}},
		{Path("labels", "a.b"), Position{7, 8}},
		{Path("labels", "x.y"), Position{7, 3}},
		{Path("nowhere"), Position{1, 1}},
	} {
		if got := pos.Of(c.path); got != c.want {
			t.Errorf("%s: got %v, want %v", c.path, got, c.want)
		}
	}
	if pos.Has(Path("targets", 0, "timeout")) || !pos.Has(Path("targets", 1, "timeout")) {
		t.Error("Has mixes up what is set")
	}
	if got, want := pos.Faultf(Path("name"), "bad %d", 1).Error(), "c.yaml:1:7: bad 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if pos.File() != "c.yaml" {
		t.Errorf("file is %q", pos.File())
	}
}

func TestOffsetsInsideTextsPointAtTheFile(t *testing.T) {
	text := strings.Join([]string{
		"labels:",
		"  plain: a + é + bad",
		`  quoted: "a + bad"`,
		"  block: |",
		"    a +",
		"      bad",
		"  folded: >",
		"    a +",
		"    bad",
		"  wrapped: a +",
		"    bad",
	}, "\n")
	s := settings{}
	pos, err := DecodeAt("c.yaml", []byte(text), &s)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Position{}
	for key, value := range s.Labels {
		got[key] = pos.Within(Path("labels", key), strings.Index(value, "bad"))
	}
	want := map[string]Position{
		"plain": {2, 18}, "quoted": {3, 16}, "block": {6, 7}, "folded": {7, 11}, "wrapped": {10, 12},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTowersOfAliasesEndEarly(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c < 'm'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	var out map[string]any
	err := Decode("bomb.yaml", []byte(b.String()), &out)
	if err == nil || !strings.Contains(err.Error(), "more than 200000 values") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnchorInsideItselfEnds(t *testing.T) {
	var out map[string]any
	err := Decode("loop.yaml", []byte("a: &a\n  b: *a\n"), &out)
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestFilesOverTheLimitAreRefused(t *testing.T) {
	err := Decode("big.yaml", make([]byte, MaxBytes+1), &settings{})
	if err == nil || !strings.Contains(err.Error(), "big.yaml: the file has 4194305 bytes") {
		t.Errorf("got %v", err)
	}
	deep := strings.Repeat("[", MaxDepth+10) + strings.Repeat("]", MaxDepth+10)
	var out any
	if err := Decode("deep.yaml", []byte(deep), &out); err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("got %v", err)
	}
}

func TestDurations(t *testing.T) {
	good := map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "2d": 48 * time.Hour,
		"1w1d1h": 193 * time.Hour, "250ms": 250 * time.Millisecond, "0d": 0,
	}
	for text, want := range good {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-3s", "1x", "1h2d", "s", "99999999999999999999d", "40000d", "1d-3h"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestNearestWord(t *testing.T) {
	words := []string{"threshold", "for", "labels", "annotations", "keep_firing_for"}
	for _, c := range []struct{ word, want string }{
		{"treshold", "threshold"},
		{"thresholds", "threshold"},
		{"For", "for"},
		{"fro", "for"},
		{"label", "labels"},
		{"anotation", "annotations"},
		{"keepFiringFor", "keep_firing_for"},
		{"qwertyuiop", ""},
		{"", ""},
		{strings.Repeat("x", 500), ""},
	} {
		got, ok := Nearest(c.word, words)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.word, got, ok, c.want)
		}
	}
}

// FuzzDecode: no bytes panic, run long or give a fault without a message.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "name: a", "a: &a [*a]", "? [x]\n: y", "x: !!binary aGk=", "{", "--- a\n--- b", "<<: {name: b}",
		"window: {from: 3, to: 1}", "targets: [{url: ':'}]", "free: {1: 2, a: [null, ~]}", "wait: 1w2d", "\x00", "%YAML 9.9\n---\n",
		"limit: 16MiB\nshare: 25%\nlevel: high", "name: |\n  a\n  b\n", "tags: [a, b\n", "a:\t b",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s settings
		pos, err := DecodeAt("f.yaml", data, &s)
		var fs Faults
		if err != nil && (!errors.As(err, &fs) || len(fs) == 0) {
			t.Fatalf("%v is not a list of faults", err)
		}
		for _, fault := range fs {
			if fault.Err == nil || fault.Err.Error() == "" {
				t.Fatalf("a fault without a message: %#v", fault)
			}
		}
		for path := range pos.nodes {
			pos.Within(path, len(data)/2)
		}
	})
}

// BenchmarkDecode reads a file of the size of a large rule pack.
func BenchmarkDecode(b *testing.B) {
	text := []byte("targets:\n" + strings.Repeat("  - url: http://alerts.example:9093\n    timeout: 10s\n", 500))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s settings
		if err := Decode("c.yaml", text, &s); err != nil {
			b.Fatal(err)
		}
	}
}

func TestPathsNameKeysThatHoldDots(t *testing.T) {
	for _, c := range []struct {
		elems []any
		want  string
	}{
		{nil, ""},
		{[]any{"a"}, "a"},
		{[]any{"a", 3, "b"}, "a[3].b"},
		{[]any{"a", "b.c", "d"}, `a["b.c"].d`},
		{[]any{"", 0}, `[""][0]`},
		{[]any{"a", level(1)}, "a.1"},
	} {
		if got := Path(c.elems...); got != c.want {
			t.Errorf("%v: got %s, want %s", c.elems, got, c.want)
		}
	}
}

func TestOffsetsBeyondATextAreWhereItStarts(t *testing.T) {
	text := "labels:\n  a: short\n  b: |\n\n    x\n"
	pos, err := DecodeAt("c.yaml", []byte(text), &settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		offset int
		want   Position
	}{
		{"labels.a", 99, Position{2, 6}},
		{"labels.a", -1, Position{2, 6}},
		{"labels.z", 1, Position{2, 3}},
		{"labels.b", 1, Position{5, 5}},
	} {
		if got := pos.Within(c.path, c.offset); got != c.want {
			t.Errorf("%s + %d: got %v, want %v", c.path, c.offset, got, c.want)
		}
	}
}

func TestValuesShowAsTheyAreWritten(t *testing.T) {
	var (
		d Duration
		p Percent
	)
	if err := errors.Join(d.DecodeScalar("1h30m"), p.DecodeScalar("12.5%")); err != nil {
		t.Fatal(err)
	}
	if d.Std() != 90*time.Minute || d.String() != "1h30m0s" || p.String() != "12.5%" {
		t.Errorf("got %v, %s, %s", d.Std(), d, p)
	}
}

func TestLongTextsAreCutInFaults(t *testing.T) {
	err := Decode("c.yaml", []byte("level: x\nthreads: "+strings.Repeat("é", 100)+"\n"+strings.Repeat("k", 200)+": 1\n"), &settings{})
	if err == nil {
		t.Fatal("no fault")
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if len(line) > 200 || !strings.Contains(line, "...") && !strings.Contains(line, "level") {
			t.Errorf("not cut: %s", line)
		}
	}
}

func TestTheLineOfAnUnknownAnchorIsFound(t *testing.T) {
	err := Decode("c.yaml", []byte("name: a\ntags:\n  - *nobody\n"), &settings{})
	if got, want := fmt.Sprint(err), "c.yaml:3: unknown anchor 'nobody' referenced"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMapsWithOtherKeysThanTextAreRefused(t *testing.T) {
	var out map[int]string
	if err := Decode("c.yaml", []byte("1: a\n"), &out); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
	var list []chan int
	if err := Decode("c.yaml", []byte("- 1\n"), &list); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
