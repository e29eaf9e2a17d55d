package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var ownMetric = regexp.MustCompile(`^stategauge_[a-z0-9_]+[a-z0-9]$`)

// CheckMetricsDocumented finds metrics of the daemon itself that doc, the text of
// docs/metrics.md, does not explain. Any string that reads like such a name counts.
func CheckMetricsDocumented(f *File, doc string) []Fault {
	if f.Test {
		return nil
	}
	var out []Fault
	ast.Inspect(f.AST, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		name, err := strconv.Unquote(lit.Value)
		if err == nil && ownMetric.MatchString(name) && !strings.Contains(doc, "`"+name+"`") {
			out = append(out, f.fault(lit.Pos(), "docs/metrics.md does not explain %s", name))
		}
		return true
	})
	return out
}
