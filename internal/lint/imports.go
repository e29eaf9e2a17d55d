package lint

import (
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/stategauge/stategauge/"

// layer says what the packages below a folder may import of the module. The
// longest folder that fits a package counts.
type layer struct {
	dir  string
	may  []string // folders; "x/..." includes what lies below x
	pure bool     // no goroutine, clock, network or process state inside
}

// layers is the architecture: arrows point one way and siblings do not import
// each other.
var layers = []layer{
	{dir: "event", pure: true},
	{dir: "collector", may: []string{"event"}},
	{dir: "collector/decode", may: []string{"event", "collector", "collector/decode/..."}},
	{dir: "collector/decode/salvage", may: []string{"event", "collector", "collector/decode"}},
	{dir: "collector/track", may: []string{"event"}, pure: true},
	{dir: "collector/httpsource", may: []string{"event", "collector", "collector/decode"}},
	{dir: "collector/kafkasource", may: []string{"event", "collector", "collector/decode"}},
	{dir: "collector/filesource", may: []string{"event", "collector", "collector/decode", "collector/decode/salvage"}},
	{dir: "exporter", may: []string{"event"}},
	{dir: "rules", may: []string{"event", "internal/strictyaml", "rules/trend"}, pure: true},
	{dir: "rules/trend", pure: true},
	{dir: "rules/notify", may: []string{"event", "rules"}},
	{dir: "history", may: []string{"event"}},
	{dir: "history/record", may: []string{"event"}, pure: true},
	{dir: "history/rollup", pure: true},
	{dir: "simulator", may: []string{"event", "internal/strictyaml"}},
	{dir: "simulator/output", may: []string{"event", "simulator/..."}},
	{dir: "simulator/fidelity", may: []string{"event", "internal/strictyaml", "simulator/..."}},
	{dir: "simulator/proof", may: []string{"event", "internal/strictyaml", "simulator/..."}},
	{dir: "review", may: []string{"event", "history", "rules/trend"}},
	{dir: "listeners"},
	{dir: "internal/strictyaml", pure: true},
	{dir: "internal/lint"},
	{dir: "internal/compose"},
	{dir: "internal/replay", may: []string{"event", "collector/...", "rules/...", "history", "history/record", "simulator/...", "internal/strictyaml", "configs"}},
	{dir: "internal/score", may: []string{"event", "collector/...", "rules/...", "internal/replay", "internal/strictyaml", "simulator/...", "configs"}},
	{dir: "internal/app", may: []string{"event", "collector/...", "exporter/...", "rules/...", "history/...", "simulator/...", "review", "configs", "internal/..."}},
	{dir: "cmd/stategauge", may: []string{"internal/...", "simulator/...", "history", "review", "configs"}},
	{dir: "configs"},
}

func layerOf(dir string) (layer, bool) {
	best := layer{}
	for _, l := range layers {
		if (dir == l.dir || strings.HasPrefix(dir, l.dir+"/")) && len(l.dir) > len(best.dir) {
			best = l
		}
	}
	return best, best.dir != ""
}

// allows reports whether a package of the layer may import dir. A package may
// always import what lies below its own layer.
func (l layer) allows(dir string) bool {
	if strings.HasPrefix(dir, l.dir+"/") && !hasOwnLayer(dir) {
		return true
	}
	return slices.ContainsFunc(l.may, func(may string) bool {
		if deep, ok := strings.CutSuffix(may, "/..."); ok {
			return dir == deep || strings.HasPrefix(dir, deep+"/")
		}
		return dir == may
	})
}

func hasOwnLayer(dir string) bool {
	return slices.ContainsFunc(layers, func(l layer) bool { return l.dir == dir })
}

// CheckImports finds imports that the architecture does not allow. Tests may look
// across, but a YAML file is decoded in one way only, there too.
func CheckImports(f *File) []Fault {
	var out []Fault
	l, known := layerOf(f.Dir)
	if !known {
		return []Fault{f.fault(f.AST.Package, "package %s has no place in the table of layers", f.Dir)}
	}
	for _, spec := range f.AST.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		if strings.HasPrefix(p, "gopkg.in/yaml") && l.dir != "internal/strictyaml" && !f.Test {
			out = append(out, f.fault(spec.Pos(), "only internal/strictyaml imports %s", p))
		}
		dir, ours := strings.CutPrefix(p, module)
		if ours && !f.Test && !l.allows(dir) {
			out = append(out, f.fault(spec.Pos(), "%s must not import %s", f.Dir, dir))
		}
	}
	return out
}
