package exporter

import (
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"

	"github.com/stategauge/stategauge/event"
)

// asText takes what text 0.0.4 does not have out of an OpenMetrics page. The
// library's own parser of OpenMetrics is too slow for a fuzz target.
func asText(om string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(om, "\n") {
		name, _, _ := strings.Cut(line, "{")
		if strings.HasPrefix(line, "#") || strings.HasSuffix(name, "_created") {
			if name, ok := strings.CutPrefix(line, "# TYPE "); ok && strings.HasSuffix(line, " counter") {
				out.WriteString("# TYPE " + strings.TrimSuffix(name, " counter") + "_total counter\n")
			} else if ok {
				out.WriteString(line + "\n")
			}
			continue
		}
		if strings.Contains(name, "_bucket") {
			line, _, _ = strings.Cut(line, ` # {batch_id="`)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// Whatever a sender puts into names and keys, the page parses in every format,
// says the same in each, and has classic names.
func FuzzHostileNames(f *testing.F) {
	f.Add("id", "name", "operator", "rocksdbNewMs", "phase", 1.5)
	f.Add("\xff\xfe", "a\"b\\c\nd", "\x00", "\x00", "unaccounted", -1.0)
	f.Add("\xed\xa0\x80", "", "", "rocksdbBatches", "other", 1e300)
	f.Add("~00000000", "le=\"1\"", "{}", "batchDurationSeconds", "addBatch", 0.0)
	f.Add("id ", "#", "\r", "queryInfo", "\u2028", 1e-300)
	f.Fuzz(func(t *testing.T, id, name, op, key, phase string, v float64) {
		if id == "" {
			return
		}
		x := New(Options{LabelBytes: 60})
		for _, suffix := range []string{"", "x"} {
			s := newStream(id + suffix)
			s.ref.Name, s.ref.Application = name, op
			x.Apply(s.executed(func(b *event.Batch) {
				o := operator(b, op)
				o.Unknown = []event.KV{{Key: key, Value: v}, {Key: key + "Ms", Value: v}, {Key: key + "_", Value: v}}
				b.UnknownPhases = []event.KV{{Key: phase, Value: v}, {Key: phase + "\xff", Value: v}}
				b.Observed = []event.Observed{{Name: key, Column: name, Value: v}}
			}))
			x.Set(x.Slot("stategauge_alerts", "Alerts.", event.Label{Name: key, Value: name}, event.Label{Name: "query_id", Value: id}), v)
		}
		want := factsOf(t, parseText(t, page(t, x, expfmt.FmtText)), false)
		for got, in := range map[string]facts{
			"protobuf":    factsOf(t, parseProto(t, page(t, x, expfmt.FmtProtoDelim)), false),
			"OpenMetrics": factsOf(t, parseText(t, asText(page(t, x, expfmt.FmtOpenMetrics_1_0_0))), false),
			"Collector":   factsOf(t, collected(t, x), false),
		} {
			if len(in) != len(want) {
				t.Errorf("%s has %d samples, text %d", got, len(in), len(want))
			}
			for k, v := range want {
				if in[k] != v {
					t.Errorf("%s: %s is %g, in text %g", got, k, in[k], v)
				}
			}
		}
	})
}
