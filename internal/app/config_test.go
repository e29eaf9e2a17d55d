package app

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stategauge/stategauge/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestGoodConfigurationsLoad(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		if _, err := LoadConfig(f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestBadConfigurationsSayWhatIsWrongAndWhere holds every message of every file
// in testdata/bad against its golden text.
func TestBadConfigurationsSayWhatIsWrongAndWhere(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	var all strings.Builder
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseConfig(filepath.Base(f), data)
		if err == nil {
			t.Errorf("%s: no error", f)
			continue
		}
		fmt.Fprintf(&all, "%v\n\n", err)
	}
	const golden = "testdata/bad/messages.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), all.String()); d != "" {
		t.Error(d)
	}
}

func TestTheDefaultsAreValid(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	o := testOptions(t)
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAFaultWithoutAFileHasNoPlace(t *testing.T) {
	c := DefaultConfig()
	c.Intake.Queries = 0
	if err := c.Validate(); err == nil || err.Error() != "queries must be more than 0" {
		t.Errorf("err = %v", err)
	}
}

func TestOptionsReportEveryFaultAtOnce(t *testing.T) {
	err := (&Options{Shards: -1}).Validate()
	for _, want := range []string{"logger must be set", "now must be set", "web must have", "shards (-1)", "track_every", "judge_every", "stop_deadline"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

func TestSecretsAreNeverWrittenOut(t *testing.T) {
	s := Secret("hush")
	if got := fmt.Sprintf("%s %v", s, s); strings.Contains(got, "hush") {
		t.Errorf("got %s", got)
	}
	if Secret("").String() != "" {
		t.Error("an empty secret looks set")
	}
}

func TestASecretFileLosesItsLineEnd(t *testing.T) {
	f := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(f, []byte("hush\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := secret("", f); err != nil || got != "hush" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOverridesMatchNameOrID(t *testing.T) {
	o := &overrides{[]QueryOverride{
		{Match: "orders_*", Trigger: "available_now", Labels: map[string]string{"owner": "a"}},
		{Match: "orders_7", Interval: 60_000_000_000, Labels: map[string]string{"owner": "b", "tier": "1"}, Mute: Time(time.Unix(100, 0))},
		{Match: "id-*", Trigger: "default"},
	}}
	kind, ms := o.trigger(event.QueryRef{ID: "x", Name: "orders_1"})
	if kind != event.TriggerAvailableNow || ms == ms {
		t.Errorf("orders_1: %v %g", kind, ms)
	}
	kind, ms = o.trigger(event.QueryRef{ID: "x", Name: "orders_7"})
	if kind != event.TriggerInterval || ms != 60_000 {
		t.Errorf("orders_7: %v %g", kind, ms)
	}
	if kind, _ = o.trigger(event.QueryRef{ID: "id-3"}); kind != event.TriggerDefault {
		t.Errorf("id-3: %v", kind)
	}
	if d := cmp.Diff(map[string]string{"owner": "b", "tier": "1"}, o.labels(event.QueryRef{Name: "orders_7"})); d != "" {
		t.Error(d)
	}
	if !o.muted(event.QueryRef{Name: "orders_7"}, time.Unix(99, 0)) || o.muted(event.QueryRef{Name: "orders_7"}, time.Unix(100, 0)) {
		t.Error("muting does not end when it says")
	}
}
