package exporter

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"github.com/stategauge/stategauge/event"
)

// labels is a list of label pairs in every form that a page needs. Series share
// it, so a query that changes its name changes all its series at once. Its
// content is guarded by Exporter.mu.
type labels struct {
	pairs []event.Label
	text  []byte // name="value",name="value", escaped; behind other labels with a comma in front
	proto []byte // LabelPair messages with the tag that they have in Metric
}

// render sets the pairs of l and their forms. lead is "," where l stands behind
// other labels.
func (l *labels) render(lead string, pairs []event.Label) {
	l.pairs = pairs
	l.text, l.proto = l.text[:0], l.proto[:0]
	for i, p := range pairs {
		if i > 0 {
			lead = ","
		}
		l.text = append(l.text, lead...)
		l.text = append(l.text, p.Name...)
		l.text = append(l.text, '=', '"')
		l.text = appendEscaped(l.text, p.Value, true)
		l.text = append(l.text, '"')
		l.proto = appendLabelPair(l.proto, tagMetricLabel, p)
	}
	l.text, l.proto = slices.Clip(l.text), slices.Clip(l.proto)
}

// extra returns labels that stand behind those of a query or operator.
func extra(pairs ...event.Label) *labels {
	l := &labels{}
	l.render(",", pairs)
	return l
}

// dtoPairs returns the pairs of both label sets as client_golang keeps them,
// sorted by name.
func dtoPairs(a, b *labels) []*dto.LabelPair {
	all := slices.Clone(a.pairs)
	if b != nil {
		all = append(all, b.pairs...)
	}
	slices.SortFunc(all, func(x, y event.Label) int { return cmp.Compare(x.Name, y.Name) })
	out := make([]*dto.LabelPair, len(all))
	for i := range all {
		out[i] = &dto.LabelPair{Name: &all[i].Name, Value: &all[i].Value}
	}
	return out
}

// appendEscaped appends s as text pages write it: backslash and line feed
// escaped, and the double quote where quotes is set.
func appendEscaped(b []byte, s string, quotes bool) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '"' && quotes:
			b = append(b, '\\', '"')
		default:
			b = append(b, c)
		}
	}
	return b
}

// cleanValue makes a label value of s: bytes that are no UTF-8, and NUL, at which
// scrapers stop reading, become the replacement mark. A value longer than limit
// bytes is cut and ends in a hash of the whole, so that two long values which
// begin alike stay two.
func cleanValue(s string, limit int) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	mark := hashMark(s)
	n := limit - len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

// cleanID is cleanValue for a query id, which has to stay unique: an id that had
// to be repaired gets the mark too.
func cleanID(id event.QueryID, limit int) string {
	s := cleanValue(string(id), limit)
	if s == string(id) || len(id) > limit {
		return s
	}
	return cleanValue(s, limit-markBytes) + hashMark(string(id))
}

// markBytes is the length of a hash mark.
const markBytes = len("~01234567")

// hashMark returns a short mark that depends on all of s.
func hashMark(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return fmt.Sprintf("~%08x", h.Sum32())
}

// reservedLabels are names that a carrier's extra labels must not take: ours, and
// those that Prometheus sets itself.
var reservedLabels = []string{
	"query_id", "query_name", "application", "spark_cluster", "operator", "operator_index", "source_index",
	"phase", "kind", "state", "origin", "reason", "result", "op", "quantile", "observation", "column", "le",
	"spark_version", "provider", "changelog", "bounded_memory", "trigger",
	"cluster", "job", "instance",
}

// usableLabel reports whether a carrier may add a label of this name.
func usableLabel(name string) bool {
	return classicName(name) && !strings.Contains(name, ":") && !strings.HasPrefix(name, "__") && !slices.Contains(reservedLabels, name)
}

// classicName reports whether s is a metric name by the rules before UTF-8 names.
func classicName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || c >= '0' && c <= '9' && i > 0) {
			return false
		}
	}
	return s != ""
}
