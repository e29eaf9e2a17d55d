package scenario_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stategauge/stategauge/configs"
	"github.com/stategauge/stategauge/simulator/scenario"
	"github.com/stategauge/stategauge/simulator/spark"
)

// shipped loads the scenarios that come with the project, in order of their names.
func shipped(t *testing.T) (all []*scenario.Scenario, text map[string]string) {
	t.Helper()
	files, err := fs.Glob(configs.Scenarios(), "*.yml")
	if err != nil {
		t.Fatal(err)
	}
	text = map[string]string{}
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
		all = append(all, sc)
		text[sc.Name] = string(data)
	}
	return all, text
}

func TestEveryShippedScenarioSaysTheTruthAboutItself(t *testing.T) {
	all, text := shipped(t)
	for _, sc := range all {
		if sc.Healthy == (len(sc.Expect) > 0) {
			t.Errorf("%s is neither healthy nor expects anything", sc.Name)
		}
		if sc.Description == "" || !strings.HasPrefix(text[sc.Name], "# ") {
			t.Errorf("%s does not say what happens", sc.Name)
		}
		if len(sc.Expect) > 0 && (sc.Expect[0].Optional || !strings.HasPrefix(sc.Name, sc.Expect[0].Symptom)) {
			t.Errorf("%s first expects %s, after which it should be named", sc.Name, sc.Expect[0].Symptom)
		}
		for _, e := range sc.Expect {
			if e.Cause == "" {
				t.Errorf("%s names no cause of %s", sc.Name, e.Symptom)
			}
		}
		if lines := regexp.MustCompile(`(?m)^ +(- )?symptom: [a-z-]+$`).FindAllString(text[sc.Name], -1); len(lines) != len(sc.Expect) {
			t.Errorf("%s has %d expectations and %d lines that say so plainly", sc.Name, len(sc.Expect), len(lines))
		}
	}
}

func TestEverySymptomHasAScenarioOfItsOwn(t *testing.T) {
	all, _ := shipped(t)
	for _, symptom := range scenario.Symptoms() {
		if !slices.ContainsFunc(all, func(sc *scenario.Scenario) bool { return len(sc.Expect) > 0 && sc.Expect[0].Symptom == symptom }) {
			t.Errorf("no scenario is about %s", symptom)
		}
	}
}

func TestRowsThatEventsAloneCannotDecideAreShownWithAndWithoutEnvelope(t *testing.T) {
	all, _ := shipped(t)
	for _, symptom := range []string{
		"state-reload", "memory-unbounded", "memory-cap-too-small", "posture", "stalled", "sender-lost", "missed-events",
	} {
		seen := map[bool]bool{}
		for _, sc := range all {
			if len(sc.Expect) > 0 && sc.Expect[0].Symptom == symptom {
				seen[sc.Envelope] = true
			}
		}
		if !seen[true] || !seen[false] {
			t.Errorf("%s: envelope %v, bare %v", symptom, seen[true], seen[false])
		}
	}
}

func TestHealthyScenariosCoverVersionsOperatorsTriggersAndRhythms(t *testing.T) {
	all, _ := shipped(t)
	seen := map[string]bool{}
	for _, sc := range all {
		if !sc.Healthy {
			continue
		}
		seen[sc.Name], seen["spark "+sc.SparkVersion] = true, true
		for _, o := range sc.Query.Operators {
			seen[o.Kind] = true
		}
	}
	want := strings.Fields(`steady daily-cycle bursts idle-spells redeploys snapshot-rhythm warm-up noisy-store catching-up
		aggregation dedupe dedupe_within_watermark join flat_map_groups transform_with_state session_window`)
	for _, v := range spark.Versions() {
		want = append(want, "spark "+strings.TrimSuffix(v.String(), v.String()[strings.LastIndex(v.String(), "."):]))
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no healthy scenario is or has %s", w)
		}
	}
}

func TestEveryKindOfFaultNoiseSourceAndTriggerIsShown(t *testing.T) {
	all, _ := shipped(t)
	seen := map[string]bool{}
	for _, sc := range all {
		seen["noise "+sc.Cluster.Noise.Kind] = true
		for _, f := range sc.Faults {
			seen[f.Kind] = true
		}
		for _, s := range sc.Query.Sources {
			seen["source "+s.Kind] = true
		}
	}
	want := []string{"noise none", "noise lognormal", "noise ar1", "noise heavy_tail", "noise wander", "source kafka", "source files", "source rate"}
	for _, k := range scenario.FaultKinds() {
		want = append(want, k.Name)
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("no scenario shows %s", w)
		}
	}
}
