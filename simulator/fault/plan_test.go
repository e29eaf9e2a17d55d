package fault

import (
	"slices"
	"testing"

	"github.com/stategauge/stategauge/simulator/scenario"
)

func TestEveryKindThatFilesCanNameIsPlanned(t *testing.T) {
	var named []string
	for _, k := range scenario.FaultKinds() {
		named = append(named, k.Name)
	}
	slices.Sort(named)
	if got := Kinds(); !slices.Equal(got, named) {
		t.Errorf("planned %v\nnamed %v", got, named)
	}
}
