package scenario_test

import (
	"io/fs"
	"testing"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/simulator/scenario"
)

func shipped(t *testing.T) map[string]*scenario.Scenario {
	t.Helper()
	files, err := fs.Glob(configs.Scenarios(), "*.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*scenario.Scenario{}
	for _, name := range files {
		data, err := fs.ReadFile(configs.Scenarios(), name)
		if err != nil {
			t.Fatal(err)
		}
		sc, err := scenario.Load(name, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all[sc.Name] = sc
	}
	return all
}

func TestEveryShippedScenarioLoads(t *testing.T) {
	if n := len(shipped(t)); n < 60 {
		t.Errorf("%d scenarios", n)
	}
}
