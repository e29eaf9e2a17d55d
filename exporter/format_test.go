package exporter

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stategauge/stategauge/event"
)

var inf = math.Inf(1)

func TestScaledNumbersReadBackAsTheNearestDouble(t *testing.T) {
	for _, factor := range []float64{1, 1e-3, 1e-9, 1e-2, 0.25, 60} {
		s := scaleOf(factor)
		for _, raw := range []float64{
			0, math.Copysign(0, -1), 1, -1, 7, 10, 999, 1000, 1001, 1_000_000, 123_456_789, 1 << 52, 1 << 53, 999_999_999_999_999, 1e15, -1e15,
			0.1, 1.0 / 3, 1e-7, 2.5, 1e21, 1e300, 4e9, 5.6e10, -0.25,
		} {
			got, err := strconv.ParseFloat(string(s.append(nil, raw)), 64)
			if err != nil || got != s.of(raw) {
				t.Errorf("scale %g: %g is written %s, want %g", factor, raw, s.append(nil, raw), s.of(raw))
			}
			if want := raw * factor; math.Abs(s.of(raw)-want) > math.Abs(want)*1e-15 {
				t.Errorf("scale %g of %g = %g, want %g", factor, raw, s.of(raw), want)
			}
		}
	}
}

func TestMillisecondsAreWrittenAsPeopleWriteThem(t *testing.T) {
	f := func(raw float64, want string) {
		t.Helper()
		if got := string(scaleOf(1e-3).append(nil, raw)); got != want {
			t.Errorf("%g ms = %s s, want %s", raw, got, want)
		}
	}
	f(0, "0")
	f(1, "0.001")
	f(9, "0.009") // 9 * 1e-3 is not the double nearest to 0.009
	f(1500, "1.5")
	f(-1250, "-1.25")
	f(-5, "-0.005")
	f(100, "0.1")
	f(1_700_000_000_123, "1700000000.123")
	f(0.5, "0.0005")
}

func TestLabelValuesAreRepairedAndCut(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got := cleanValue(in, 40)
		if got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
		if !utf8.ValidString(got) || len(got) > 40 {
			t.Errorf("%q is not usable", got)
		}
	}
	f("", "")
	f("plain", "plain")
	f("\xff\xfeA", "\uFFFDA")
	f("nul\x00", "nul\uFFFD")
	f("line\nfeed \"quoted\" \\", "line\nfeed \"quoted\" \\")
	f("\xed\xa0\x80", "\uFFFD") // half of a surrogate pair
	f(strings.Repeat("a", 40), strings.Repeat("a", 40))
	f(strings.Repeat("a", 41), strings.Repeat("a", 31)+"~"+hashMark(strings.Repeat("a", 41))[1:])
	f(strings.Repeat("\u00fc", 30), strings.Repeat("\u00fc", 15)+hashMark(strings.Repeat("\u00fc", 30)))
}

func TestLongValuesThatBeginAlikeStayApart(t *testing.T) {
	long := strings.Repeat("x", 300)
	if cleanValue(long+"a", 100) == cleanValue(long+"b", 100) {
		t.Error("two values became one")
	}
}

func TestRepairedIDsStayApart(t *testing.T) {
	if cleanID("\xff", 50) == cleanID("\xfe", 50) {
		t.Error("two ids became one")
	}
	if got := cleanID("plain", 50); got != "plain" {
		t.Errorf("a good id became %q", got)
	}
}

func TestNamesOfUnknownKeys(t *testing.T) {
	f := func(key, want, unit string) {
		t.Helper()
		name, u, _ := unknownFamilyName(key)
		if name != "spark_streaming_"+want || u != unit {
			t.Errorf("%s becomes %s (%s), want %s (%s)", key, name, u, want, unit)
		}
	}
	f("rocksdbFooBar", "rocksdb_foo_bar", "")
	f("rocksdbFooLatencyMs", "rocksdb_foo_latency_seconds", "seconds")
	f("rocksdbFooLatency", "rocksdb_foo_latency_seconds", "seconds")
	f("rocksdbFooBytes", "rocksdb_foo_bytes", "bytes")
	f("rocksdbTTLBytes", "rocksdb_ttl_bytes", "bytes")
	f("rocksDBFoo", "rocks_db_foo", "")
	f("a.b-c  d", "a_b_c_d", "")
	f("__x__", "x", "")
	f("9lives", "9lives", "")
	f("\u00fc\xff", "unnamed", "")
	f("", "unnamed", "")
	f("Ms", "ms_seconds", "seconds")
	name, _, _ := unknownFamilyName(strings.Repeat("longKey", 100))
	if len(name) > len(prefix)+maxName || !classicName(name) {
		t.Errorf("a long key becomes %s", name)
	}
}

func TestExtraLabelsCannotTakeOurNames(t *testing.T) {
	for _, name := range []string{"query_id", "instance", "job", "le", "__name__", "a b", "", "1a", "a:b", "\u00fc"} {
		if usableLabel(name) {
			t.Errorf("%q is taken as a label", name)
		}
	}
	for _, name := range []string{"team", "Team_2", "_x"} {
		if !usableLabel(name) {
			t.Errorf("%q is refused as a label", name)
		}
	}
}

func TestVersionsAndSettingsOfQueryInfo(t *testing.T) {
	x := New(Options{})
	s := newStream("q")
	u := s.executed(func(b *event.Batch) { b.Spark = event.Version{Major: 4, Minor: 1} })
	u.Trigger = event.TriggerAvailableNow
	x.Apply(u)
	wantValue(t, x, "1", "query_info", `spark_version="4.1.0+"`, `trigger="available_now"`)
	u = s.executed(nil)
	u.Event.Envelope = &event.Envelope{App: event.App{SparkVersion: "4.0.1"}, Conf: map[string]string{confProvider: "com.example.Own"}}
	u.Event.Batch.Operators = u.Event.Batch.Operators[:0]
	x.Apply(u)
	wantValue(t, x, "1", "query_info", `spark_version="4.0.1"`, `provider="other"`)
}
