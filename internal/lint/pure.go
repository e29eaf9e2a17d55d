package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// impureImports bring the outside in: time comes as an argument, and whatever
// talks or waits lives at the edges.
var impureImports = []string{"net", "net/http", "os", "os/exec", "os/signal", "log", "log/slog", "math/rand", "math/rand/v2", "runtime/debug"}

// clockCalls are the functions of package time that read or run a clock.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// CheckPure finds goroutines, clocks and the outside world in packages that are
// to be functions of their input alone.
func CheckPure(f *File) []Fault {
	l, _ := layerOf(f.Dir)
	if !l.pure || f.Test {
		return nil
	}
	var out []Fault
	for _, spec := range f.AST.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); slices.Contains(impureImports, p) {
			out = append(out, f.fault(spec.Pos(), "%s is pure and must not import %s", f.Dir, p))
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, f.fault(n.Pos(), "%s is pure and must not start goroutines", f.Dir))
		case *ast.SelectorExpr:
			if isPackage(n.X, "time") && slices.Contains(clockCalls, n.Sel.Name) {
				out = append(out, f.fault(n.Pos(), "%s is pure and must not use time.%s", f.Dir, n.Sel.Name))
			}
		}
		return true
	})
	return out
}

func isPackage(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

// CheckSleep finds tests that sleep for time to pass. Under synctest sleeping
// costs nothing, and whoever waits for a real server polls: files that name
// either are let pass.
func CheckSleep(f *File) []Fault {
	if !f.Test || strings.Contains(f.Text, `"testing/synctest"`) || strings.Contains(f.Text, `"os/exec"`) {
		return nil
	}
	var out []Fault
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && isPackage(s.X, "time") && s.Sel.Name == "Sleep" {
			out = append(out, f.fault(s.Pos(), "a test sleeps for time to pass: give it a clock, synctest, or a channel"))
		}
		return true
	})
	return out
}

// CheckMetricNames finds metrics of the daemon itself that do not say so.
func CheckMetricNames(f *File) []Fault {
	if f.Test {
		return nil
	}
	var out []Fault
	ast.Inspect(f.AST, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || !isMetricOpts(lit.Type) {
			return true
		}
		for _, e := range lit.Elts {
			if name, ok := stringField(e, "Name"); ok && !strings.HasPrefix(name, "stategauge_") {
				out = append(out, f.fault(e.Pos(), "metric %s must begin with stategauge_", name))
			}
		}
		return true
	})
	return out
}

func isMetricOpts(t ast.Expr) bool {
	s, ok := t.(*ast.SelectorExpr)
	return ok && isPackage(s.X, "prometheus") && strings.HasSuffix(s.Sel.Name, "Opts")
}

func stringField(e ast.Expr, key string) (string, bool) {
	kv, ok := e.(*ast.KeyValueExpr)
	if !ok || !isPackage(kv.Key, key) {
		return "", false
	}
	lit, ok := kv.Value.(*ast.BasicLit)
	if !ok {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
