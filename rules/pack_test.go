package rules

import (
	"os"
	"testing"
)

// defaultPack loads the embedded pack by its file: rules must not import configs.
func defaultPack(t testing.TB) *Pack {
	t.Helper()
	data, err := os.ReadFile("../configs/rules/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(Source{Name: "default.yaml", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheDefaultPackIsClean(t *testing.T) {
	if n := defaultPack(t).Len(); n != 2 {
		t.Errorf("got %d rules, want 2", n)
	}
}
