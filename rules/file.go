package rules

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stategauge/stategauge/internal/strictyaml"
)

// Source is one rule file: its name as messages show it and its bytes.
type Source struct {
	Name string
	Data []byte
}

// Limits of rule files.
const (
	maxSignals    = 500
	maxRules      = 500
	maxEvidence   = 12
	maxLabels     = 30
	maxLabelBytes = 1024
)

// ruleFile is the layout of a rule file.
type ruleFile struct {
	Signals map[string]signalSpec `yaml:"signals"`
	Groups  []groupSpec           `yaml:"groups"`
	Inhibit []inhibitSpec         `yaml:"inhibit"`
}

type signalSpec struct {
	Of    string `yaml:"of"`
	Value string `yaml:"value"`
	Unit  string `yaml:"unit"`
	When  string `yaml:"when"`
}

type groupSpec struct {
	Name  string     `yaml:"name"`
	Limit int        `yaml:"limit"`
	Rules []ruleSpec `yaml:"rules"`
}

type ruleSpec struct {
	Alert         string            `yaml:"alert"`
	Watch         string            `yaml:"watch"` // in place of alert: a finding that only other rules look at
	Signal        string            `yaml:"signal"`
	Detectors     detectorSpecs     `yaml:",inline"`
	When          string            `yaml:"when"`
	For           Extent            `yaml:"for"`
	KeepFiringFor Extent            `yaml:"keep_firing_for"`
	Evidence      map[string]string `yaml:"evidence"`
	AcrossRuns    bool              `yaml:"across_runs"`
	AcrossPauses  bool              `yaml:"across_pauses"`
	InWarmUp      bool              `yaml:"in_warm_up"` // judge the first batches of a run too
	Labels        map[string]string `yaml:"labels"`
	Annotations   map[string]string `yaml:"annotations"`
	Limit         int               `yaml:"limit"`
}

// units are the units a signal may have. They decide how at_least is written and
// how values are shown.
var units = []string{"seconds", "bytes", "rows", "files", "versions", "offsets", "ratio", "count", "per second"}

var (
	alertName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	signalName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	labelName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// reservedLabels are set by the engine; a rule must not.
var reservedLabels = map[string]bool{
	"alertname": true, "query_id": true, "query_name": true, "application": true,
	"spark_cluster": true, "operator": true, "operator_index": true,
}

// severities are ordered from lowest to highest.
var severities = []string{"info", "ticket", "page"}

// quantity reads a number in the signal's unit: "50ms" for seconds, "64MiB" for
// bytes, "5%" for a ratio, and a bare number for anything.
func (c *ruleCompiler) quantity(text string, keys []any) float64 {
	x, err := c.inUnit(text)
	if err != nil {
		c.faultf(keys, "%s: %v", keys[len(keys)-1], err)
	}
	return x
}

// inUnit is quantity without a report.
func (c *ruleCompiler) inUnit(text string) (float64, error) {
	if x, err := strconv.ParseFloat(text, 64); err == nil && x >= 0 && x < 1e18 {
		return x, nil
	}
	var err error
	switch c.signal.unit {
	case "seconds":
		var d strictyaml.Duration
		if err = d.DecodeScalar(text); err == nil {
			return d.Std().Seconds(), nil
		}
	case "bytes":
		var b strictyaml.Bytes
		if err = b.DecodeScalar(text); err == nil {
			return float64(b), nil
		}
	case "ratio":
		var p strictyaml.Percent
		if err = p.DecodeScalar(text); err == nil && p >= 0 {
			return float64(p), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("%q is no number of %s", text, c.signal.unit)
	}
	return 0, err
}

// oneOf reports a word that is not in the list.
func oneOf(what, word string, list []string) error {
	for _, w := range list {
		if w == word {
			return nil
		}
	}
	return fmt.Errorf("%s %q is not known%s; want %s", what, word, strictyaml.DidYouMean(word, list), strings.Join(list, ", "))
}
