package compose

import (
	"encoding"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/event"
	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/rules"
)

func TestExampleConfigurationIsValid(t *testing.T) {
	if _, err := app.LoadConfig(filepath.Join(root, "configs", "stategauge.yml")); err != nil {
		t.Error(err)
	}
}

func TestEveryConfigurationKeyIsDocumentedWithItsDefault(t *testing.T) {
	doc := readFile(t, "docs", "operations.md")
	c := app.DefaultConfig()
	for _, k := range keys("", reflect.ValueOf(c)) {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(k.name) + "` \\| ([^|]*) \\|").FindStringSubmatch(doc)
		switch {
		case row == nil && !strings.Contains(doc, "`"+k.name[strings.LastIndex(k.name, ".")+1:]+"`"):
			t.Errorf("docs/operations.md does not explain %s", k.name)
		case row != nil && !k.is.IsZero() && !reads(row[1], k.is):
			t.Errorf("docs/operations.md: %s is %q by default, the code says %v", k.name, row[1], k.is)
		}
	}
}

type configKey struct {
	name string
	is   reflect.Value // the default; the zero Value's for keys of sections that are off
}

// keys lists what a configuration file may say, sections dissolved into their keys.
func keys(prefix string, v reflect.Value) (out []configKey) {
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Tag.Get("yaml")
		f := v.Field(i)
		switch {
		case f.Kind() == reflect.Struct && !isScalar(f):
			out = append(out, keys(name+".", f)...)
		case f.Kind() == reflect.Pointer && f.Type().Elem().Kind() == reflect.Struct:
			out = append(out, keys(name+".", reflect.New(f.Type().Elem()).Elem())...)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			out = append(out, keys(name+".", reflect.New(f.Type().Elem()).Elem())...)
		default:
			out = append(out, configKey{name, f})
		}
	}
	return out
}

// scalar is what a value that a file writes as one word implements.
type scalar interface{ DecodeScalar(text string) error }

func isScalar(v reflect.Value) bool {
	switch reflect.New(v.Type()).Interface().(type) {
	case scalar, encoding.TextUnmarshaler:
		return true
	}
	return false
}

// reads reports whether text, read as a configuration file would be, is v.
func reads(text string, v reflect.Value) bool {
	read := reflect.New(v.Type())
	if s, ok := read.Interface().(scalar); ok {
		return s.DecodeScalar(text) == nil && reflect.DeepEqual(read.Elem().Interface(), v.Interface())
	}
	return text == fmt.Sprint(v.Interface())
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func yamlBlocks(t *testing.T, path ...string) (out []string) {
	t.Helper()
	for _, m := range yamlBlock.FindAllStringSubmatch(readFile(t, path...), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Fatalf("%v shows no YAML", path)
	}
	return out
}

func TestExamplesInTheDocumentationAreValid(t *testing.T) {
	for _, text := range yamlBlocks(t, "README.md") {
		if _, err := app.ParseConfig("README.md", []byte(text)); err != nil {
			t.Error(err)
		}
	}
	anyRules := replay.CaseOptions{
		Rules: func([]string) (*rules.Pack, error) { return app.LoadRules(nil) },
		Scenario: func(name string) (string, []byte, error) {
			data, err := fs.ReadFile(configs.Scenarios(), name+".yml")
			return name, data, err
		},
	}
	for _, text := range yamlBlocks(t, "docs", "rules.md") {
		if strings.HasPrefix(text, "rule_files:") {
			if err := replay.CheckCases("docs/rules.md", []byte(text), anyRules); err != nil {
				t.Error(err)
			}
			continue
		}
		if err := rules.Check("docs/rules.md", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesOfExpressionsAreDocumented(t *testing.T) {
	spark := map[string]bool{}
	for _, m := range event.Catalog() {
		spark[m.JSON] = true
	}
	doc := readFile(t, "docs", "rules.md")
	for _, name := range rules.Names(rules.OfOperator) {
		if !spark[name] && !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("docs/rules.md does not explain %s", name)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)\)`)

func TestLinksInTheDocumentationLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(f), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", filepath.Base(f), err)
			}
		}
	}
}
