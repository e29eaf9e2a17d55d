package scenario_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/internal/strictyaml"
	"github.com/stategauge/stategauge/simulator/scenario"
)

// corpus calls visit with each file of a folder of testdata and with its golden
// neighbour, which -update writes anew with what visit returns.
func corpus(t *testing.T, folder, ending string, visit func(t *testing.T, name string, data []byte) string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := visit(t, filepath.Base(file), data)
			golden := strings.TrimSuffix(file, ".yml") + ending
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestBadFilesAreRefusedWithEveryFaultAndItsLine(t *testing.T) {
	corpus(t, "bad", ".txt", func(t *testing.T, name string, data []byte) string {
		sc, err := scenario.Load("scenarios/"+name, data)
		if err == nil {
			t.Fatalf("loaded as %+v", sc.Name)
		}
		if !errors.Is(err, strictyaml.ErrInvalid) {
			t.Errorf("%v is not ErrInvalid", err)
		}
		return err.Error() + "\n"
	})
}

func TestGoodFilesLoadWithTheirDefaults(t *testing.T) {
	corpus(t, "good", ".json", func(t *testing.T, name string, data []byte) string {
		sc, err := scenario.Load(name, data)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetIndent("", "  ")
		if err := e.Encode(sc); err != nil {
			t.Fatal(err)
		}
		return out.String()
	})
}

func TestAScenarioIsCalledAsItsFileWithoutFolderAndEnding(t *testing.T) {
	for file, want := range map[string]string{
		"steady.yml": "steady", "/a/b/my-own.yaml": "my-own", `c:\x\y.yml`: "y", "plain": "plain", "": "",
	} {
		sc, err := scenario.Load(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		if sc.Name != want || sc.Query.Name != want {
			t.Errorf("%q is called %q and its query %q", file, sc.Name, sc.Query.Name)
		}
	}
}

func TestAScenarioMadeInCodeGetsTheSameDefaultsAndChecks(t *testing.T) {
	made := &scenario.Scenario{Name: "x", Query: scenario.Query{Operators: []scenario.Operator{{Kind: "dedupe"}}}}
	if err := made.Complete(); err != nil {
		t.Fatal(err)
	}
	loaded, err := scenario.Load("x.yml", []byte("query: {operators: [{kind: dedupe}]}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loaded, made); diff != "" {
		t.Errorf("loaded (-), made (+):\n%s", diff)
	}
	wrong := &scenario.Scenario{Name: "x", Faults: []scenario.Fault{{Kind: "disk-slow", Every: 4}}}
	if err := wrong.Complete(); err == nil || !strings.Contains(err.Error(), "every means nothing to disk-slow") {
		t.Errorf("got %v", err)
	}
}

func TestCompleteTwiceChangesNothing(t *testing.T) {
	sc, err := scenario.Load("x.yml", []byte("query: {name: y, operators: [{kind: dedupe}]}\nfaults: [{kind: disk-slow, from_batch: 9}]\nexpect: {symptom: local-disk-slow}"))
	if err != nil {
		t.Fatal(err)
	}
	before := *sc
	if err := sc.Complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&before, sc); diff != "" {
		t.Error(diff)
	}
}

func FuzzLoadNeverPanics(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yml", "testdata/bad/*.yml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sc, err := scenario.Load("fuzzed.yml", data)
		if (sc == nil) == (err == nil) {
			t.Fatalf("scenario %v, error %v", sc, err)
		}
		if err == nil && sc.Complete() != nil {
			t.Fatalf("what Load takes Complete refuses: %v", sc.Complete())
		}
	})
}
