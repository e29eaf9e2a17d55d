package app

import (
	"os"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/rules"
)

// RuleSources reads the text of rule files, or of the embedded pack where none is
// named, for those who load it more than once.
func RuleSources(files []string) ([]rules.Source, error) {
	var out []rules.Source
	if len(files) == 0 {
		for _, f := range configs.Rules() {
			out = append(out, rules.Source{Name: f.Name, Data: f.Data})
		}
		return out, nil
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, rules.Source{Name: name, Data: data})
	}
	return out, nil
}
