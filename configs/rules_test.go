package configs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheEmbeddedRulesAreTheFiles(t *testing.T) {
	names, err := filepath.Glob("rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := Rules()
	if len(files) != len(names) || len(files) == 0 {
		t.Fatalf("%d files are embedded, %d are there", len(files), len(names))
	}
	for i, f := range files {
		want, err := os.ReadFile(names[i])
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != filepath.Base(names[i]) || !bytes.Equal(f.Data, want) {
			t.Errorf("%s: the binary holds other rules than the file", names[i])
		}
		f.Data[0] ^= 0xff
		if bytes.Equal(Rules()[i].Data, f.Data) {
			t.Error("a caller can change the embedded rules")
		}
	}
}
