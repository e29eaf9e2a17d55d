package rules

import (
	"os"
	"testing"
)

// defaultPack is a pack of the two trends that the engine's own tests judge.
func defaultPack(t testing.TB) *Pack {
	t.Helper()
	data, err := os.ReadFile("testdata/trends.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Load(Source{Name: "trends.yaml", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThePackOfTrendsIsClean(t *testing.T) {
	if n := defaultPack(t).Len(); n != 2 {
		t.Errorf("got %d rules, want 2", n)
	}
}
