package scenario

import (
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Load decodes one file, fills in defaults and checks everything that can be
// known before it is played. name is how messages call the file; the scenario is
// called by its last part, without .yml. The error is a strictyaml.Faults with
// all faults in file order.
func Load(name string, data []byte) (*Scenario, error) {
	sc := &Scenario{Name: nameOf(name)}
	pos, err := strictyaml.DecodeAt(name, data, sc)
	if err != nil {
		return nil, err
	}
	sc.fill(pos)
	if err := check(sc, pos); err != nil {
		return nil, err
	}
	return sc, nil
}

// Complete fills in the defaults of a scenario that was made in code and checks
// it as Load does. Fields that are zero count as absent.
func (s *Scenario) Complete() error {
	pos, err := strictyaml.DecodeAt(s.Name, nil, &struct{}{})
	if err != nil {
		return err
	}
	s.fill(pos)
	return check(s, pos)
}

// nameOf cuts folders and the ending off a file's name.
func nameOf(file string) string {
	file = file[strings.LastIndexAny(file, `/\`)+1:]
	for _, ending := range []string{".yml", ".yaml"} {
		if cut, ok := strings.CutSuffix(file, ending); ok {
			return cut
		}
	}
	return file
}

// UnmarshalYAML takes one expectation as well as a list of them.
func (e *Expectations) UnmarshalYAML(unmarshal func(any) error) error {
	var shape any
	if err := unmarshal(&shape); err != nil {
		return err
	}
	if _, list := shape.([]any); list {
		var all []Expectation
		err := unmarshal(&all)
		*e = all
		return err
	}
	var one Expectation
	err := unmarshal(&one)
	*e = Expectations{one}
	return err
}
