package fidelity

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Table writes comparisons as docs/fidelity.md shows them.
func Table(all []*Comparison) string {
	var b strings.Builder
	b.WriteString("# How true the simulator is\n\n" + about + "\n## Runs\n\n")
	fmt.Fprintf(&b, "| run | batches | keys that differ | 0 for both or for none | relations kept | %s |\n|---|---|---|---|---|%s\n",
		strings.Join(kindHeads(), " | "), strings.Repeat("---|", int(KindMoment)))
	for _, c := range all {
		c.row(&b)
	}
	b.WriteString("\n## Exceptions\n\n| figures | runs | 0 for one only, up to | medians, up to | why |\n|---|---|---|---|---|\n")
	for i := range Exceptions {
		Exceptions[i].row(&b)
	}
	b.WriteString("\n## Relations\n\nIn every batch of Spark's and of the twin's, where the version has the figures:\n\n")
	for i := range relations {
		fmt.Fprintf(&b, "- %s;\n", relations[i].what)
	}
	return strings.TrimSuffix(b.String(), ";\n") + ".\n"
}

const about = `Each run of Spark in ` + "`testdata/spark`" + ` is played once more: the simulator gets the same job, settings, rows and moments at which batches began, ended and lost executors, and works out the rest.
The table says how near its reports come to Spark's. ` + "`make fidelity`" + ` makes this page, and a test holds every run to the limits below.

- **Keys**: each batch has the keys that Spark's has, none more and none less.
- **0 for both or for none**: the share of figures and batches in which both say 0 or neither does: the rhythm of snapshots and uploads, what stands until the next one, batches without data. For each figure it may differ in one batch of
  twenty (three in a run of less than 80). Times of a few milliseconds per store are left out, since each store cuts its own to whole ones, and so is a handful of rows that come by chance.
- **Medians**: of the batches where a figure is not 0, the twin's over Spark's, as the middle half of the figures of a kind has it. Limits for each figure: rows and calls 1.35 times, bytes of rows 1.5, what the LSM tree does by itself
  (files, cache, compaction, memory) 4, times 8. The disks and processors of the captured runs are not known, so that times can only be of the same order.

The captured machine was busy, and the runs are short: this is a check of mechanisms, not of speed.
`

// kindHeads names the columns of medians.
func kindHeads() (out []string) {
	for k := range KindMoment {
		out = append(out, "medians: "+k.String())
	}
	return out
}

func (c *Comparison) row(b *strings.Builder) {
	kept := 0
	for _, s := range c.Sums {
		if s.BrokenTwin <= s.BrokenSpark {
			kept++
		}
	}
	fmt.Fprintf(b, "| %s | %d | %d | %.1f %% | %d of %d |", c.Run.Title(), c.Batches, len(c.Missing)+len(c.Extra), 100*c.Agreement(), kept, len(c.Sums))
	for k := range KindMoment {
		low, high := c.quartiles(k)
		fmt.Fprintf(b, " %.2f to %.2f |", low, high)
	}
	b.WriteString("\n")
}

// Agreement is the share of figures and batches in which both runs have 0 or
// neither has.
func (c *Comparison) Agreement() float64 {
	odd := 0
	for i := range c.Figures {
		odd += c.Figures[i].Odd
	}
	return 1 - float64(odd)/math.Max(float64(len(c.Figures)*c.Batches), 1)
}

// quartiles bound the middle half of the ratios of a kind; 1 where there are none.
func (c *Comparison) quartiles(k Kind) (low, high float64) {
	var ratios []float64
	for i := range c.Figures {
		if f := &c.Figures[i]; f.Kind == k && f.Ratio > 0 {
			ratios = append(ratios, f.Ratio)
		}
	}
	if len(ratios) == 0 {
		return 1, 1
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/4], ratios[len(ratios)*3/4]
}

func (e *Exception) row(b *strings.Builder) {
	odd, factor := "as others", "as others"
	if e.Odd > 0 {
		odd = fmt.Sprintf("%d batches", e.Odd)
	}
	if e.Factor > 0 {
		factor = fmt.Sprintf("%g times", e.Factor)
	}
	fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", strings.Join(e.Figures, "`, `"), strings.ReplaceAll(strings.Join(e.Runs, ", "), "* ", "every "), odd, factor, e.Why)
}
