package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"github.com/stategauge/stategauge/internal/app"
	"github.com/stategauge/stategauge/internal/replay"
	"github.com/stategauge/stategauge/internal/score"
)

// scoreCommand measures how far rules can be trusted.
type scoreCommand struct {
	*kingpin.CmdClause
	scenarios, rules []string
	recorded         []string
	seeds            int
	firstSeed        uint64
	batches          int64
	sizes            []float64
	healthy          int64
	tradeOff         int64
	delays           int
	within           time.Duration
	beside           string
	from, table      string
	cache, keep      string
	fresh, quiet     bool
	output           string
}

func newScore(root *kingpin.Application) command {
	c := &scoreCommand{CmdClause: root.Command("score", "Measure what the rules find in scenarios, and what they fire on healthy queries.")}
	c.Arg("scenario", "Names of scenarios that come with stategauge, or scenario files; all that come with it if none is given.").StringsVar(&c.scenarios)
	c.Flag("rules", "Rule file; repeatable. Without one, the built-in rules are used.").StringsVar(&c.rules)
	c.Flag("seeds", "Seeds that each scenario is played with.").Default("2").IntVar(&c.seeds)
	c.Flag("first-seed", "First of these seeds.").Default("1").Uint64Var(&c.firstSeed)
	c.Flag("batches", "Batches of each query; 0 for the scenario's own number.").Default("0").Int64Var(&c.batches)
	c.Flag("size", "Size of the faults; repeatable. Without one, 1.2, 1.5 and 3.").Float64ListVar(&c.sizes)
	c.Flag("healthy", "Healthy batches to make and judge at triggers of a minute and of 15 minutes, and six times as many at 10 seconds; 0 for none.").Default("60000").Int64Var(&c.healthy)
	c.Flag("within", "Time for healthy batches; what was not reached by then is left out, and the report says so. 0 for no limit.").DurationVar(&c.within)
	c.Flag("beside", "Report (JSON) of the seeds that rules were tuned on, to be shown beside.").StringVar(&c.beside)
	c.Flag("from", "Report (JSON) that was made before, to be shown instead of a new one.").StringVar(&c.from)
	c.Flag("error-table", "Markdown page in which what was measured of each symptom is put between its two marks.").StringVar(&c.table)
	c.Flag("recorded", "File or folder with events of healthy queries, to make healthy batches of beside the scenarios'; repeatable.").StringsVar(&c.recorded)
	c.Flag("trade-off", "Healthy batches for each point of the trade-off between thresholds and holds; 0 for no curve.").Default("0").Int64Var(&c.tradeOff)
	c.Flag("delays", "Plays, from the first seed on, that the delays of commit-sync-rising and of a hung batch are measured over; 0 for none.").Default("0").IntVar(&c.delays)
	c.Flag("cache", "Folder that streams of scenarios are kept in; in the user's cache folder if none is given.").StringVar(&c.cache)
	c.Flag("keep", "Folder that what was measured is kept in, part by part, so that a score that was interrupted goes on where it was; nowhere if none is given.").StringVar(&c.keep)
	c.Flag("fresh", "Play and measure anew what is in the cache and among the kept parts.").BoolVar(&c.fresh)
	c.Flag("quiet", "Say nothing of the progress.").BoolVar(&c.quiet)
	c.Flag("output", "Form of the report.").Default(replay.FormatText).EnumVar(&c.output, replay.FormatText, replay.FormatJSON)
	return c
}

func (c *scoreCommand) name() string { return c.FullCommand() }

func (c *scoreCommand) run(s streams) error {
	r, err := c.report(s)
	if err != nil {
		return err
	}
	if c.table != "" {
		if err := putErrorTable(c.table, r); err != nil {
			return err
		}
	}
	if c.output == replay.FormatJSON {
		return r.WriteJSON(s.out)
	}
	return r.WriteText(s.out)
}

// report scores, or reads what was scored before.
func (c *scoreCommand) report(s streams) (*score.Report, error) {
	if c.from != "" {
		return readReport(c.from)
	}
	o, err := c.options(s)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := score.Run(ctx, o)
	if ctx.Err() != nil {
		return nil, errors.New(c.interrupted())
	}
	return r, err
}

// interrupted says what an interruption cost.
func (c *scoreCommand) interrupted() string {
	if c.keep == "" {
		return "interrupted: streams of scenarios are kept, what was measured is not (--keep)"
	}
	return "interrupted: the same command goes on from what is kept in " + c.keep
}

func (c *scoreCommand) options(s streams) (score.Options, error) {
	o := score.Options{
		Seeds: c.seeds, FirstSeed: c.firstSeed, Batches: c.batches, Sizes: c.sizes, TradeOff: c.tradeOff, Within: c.within, Delays: c.delays, Fresh: c.fresh, CacheDir: c.cache, KeepDir: c.keep, Recorded: c.recorded,
	}
	var err error
	if o.Rules, err = app.RuleSources(c.rules); err != nil {
		return o, fmt.Errorf("rules: %w", err)
	}
	if o.Scenarios, err = c.load(); err != nil {
		return o, err
	}
	if c.beside != "" {
		if o.Beside, err = readReport(c.beside); err != nil {
			return o, err
		}
	}
	if c.keep != "" {
		if o.Program, err = programHash(); err != nil {
			return o, err
		}
	}
	if o.CacheDir == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("cache of streams: %w", err)
		}
		o.CacheDir = filepath.Join(dir, "stategauge", "streams")
	}
	if c.healthy > 0 {
		o.Healthy = []score.HealthyRun{
			{Every: 10 * time.Second, Batches: 6 * c.healthy}, {Every: time.Minute, Batches: c.healthy}, {Every: 15 * time.Minute, Batches: c.healthy},
		}
	}
	if !c.quiet {
		o.Say = func(format string, args ...any) { fmt.Fprintf(s.err, format+"\n", args...) }
	}
	return o, nil
}

// programHash tells this program from all others: parts of a score that another one
// measured are not to be mixed in.
func programHash() (string, error) {
	file, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("this program's file: %w", err)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("this program's file: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("this program's file, %s: %w", file, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// putErrorTable rewrites the measured part of a page.
func putErrorTable(file string, r *score.Report) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("page for the error table: %w", err)
	}
	if page, err = score.PutErrorTable(page, r); err != nil {
		return fmt.Errorf("error table into %s: %w", file, err)
	}
	if err := os.WriteFile(file, page, 0o644); err != nil {
		return fmt.Errorf("error table: %w", err)
	}
	return nil
}

// readReport reads what --output=json wrote.
func readReport(file string) (*score.Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("report made before: %w", err)
	}
	r := &score.Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("report made before, %s: %w", file, err)
	}
	return r, nil
}

// load reads the scenarios.
func (c *scoreCommand) load() (out []score.Scenario, err error) {
	names := c.scenarios
	if len(names) == 0 {
		if names, err = scenarioNames(); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		file, data, err := findScenario(name)
		if err != nil {
			return nil, err
		}
		out = append(out, score.Scenario{Name: file, Data: data})
	}
	return out, nil
}
