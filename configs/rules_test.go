package configs

import (
	"bytes"
	"os"
	"testing"
)

func TestTheEmbeddedRulesAreTheFile(t *testing.T) {
	want, err := os.ReadFile("rules/" + DefaultRulesName)
	if err != nil {
		t.Fatal(err)
	}
	got := DefaultRules()
	if !bytes.Equal(got, want) {
		t.Error("the binary holds other rules than the file")
	}
	got[0] = 'x'
	if bytes.Equal(DefaultRules(), got) {
		t.Error("a caller can change the embedded rules")
	}
}
