package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// Limits on size. They are generous: what reaches them is two things in one.
const (
	maxFileLines = 600
	maxFuncLines = 90
)

// CheckSize finds files and functions that have grown too long.
func CheckSize(f *File) []Fault {
	var out []Fault
	if n := strings.Count(f.Text, "\n"); n > maxFileLines {
		out = append(out, f.fault(token.NoPos, "file of %d lines, at most %d", n, maxFileLines))
	}
	for _, d := range f.AST.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		if n := f.Set.Position(fn.End()).Line - f.Set.Position(fn.Pos()).Line + 1; n > maxFuncLines {
			out = append(out, f.fault(fn.Pos(), "func %s of %d lines, at most %d", fn.Name.Name, n, maxFuncLines))
		}
	}
	return out
}

// CheckPackageDocs finds packages without a package comment.
func CheckPackageDocs(files []*File) []Fault {
	first, documented := map[string]*File{}, map[string]bool{}
	for _, f := range files {
		if f.Test {
			continue
		}
		if first[f.Dir] == nil {
			first[f.Dir] = f
		}
		documented[f.Dir] = documented[f.Dir] || f.AST.Doc != nil
	}
	var out []Fault
	for dir, f := range first {
		if !documented[dir] {
			out = append(out, f.fault(f.AST.Package, "package %s has no package comment", f.AST.Name.Name))
		}
	}
	return out
}

// CheckExportedDocs finds exported names that nothing is said about. A comment
// on a group of constants or variables speaks for all of them.
func CheckExportedDocs(f *File) []Fault {
	if f.Test {
		return nil
	}
	var out []Fault
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				out = append(out, f.fault(d.Pos(), "exported func %s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			out = append(out, f.undocumented(d)...)
		}
	}
	return out
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func (f *File) undocumented(d *ast.GenDecl) []Fault {
	if d.Doc != nil {
		return nil
	}
	var out []Fault
	say := func(name *ast.Ident, doc ...*ast.CommentGroup) {
		for _, c := range doc {
			if c != nil {
				return
			}
		}
		if name.IsExported() {
			out = append(out, f.fault(name.Pos(), "exported %s has no comment", name.Name))
		}
	}
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			say(s.Name, s.Doc, s.Comment)
		case *ast.ValueSpec:
			for _, n := range s.Names {
				say(n, s.Doc, s.Comment)
			}
		}
	}
	return out
}

// leftOpen finds marks of unfinished work; put together so that this file does
// not hold them itself.
var leftOpen = regexp.MustCompile(strings.Join([]string{`\bTO` + `DO\b`, `\bFIX` + `ME\b`, `\bX` + `XX\b`, `not ` + `implemented`}, "|"))

// CheckLeftOpen finds marks of unfinished work in any text.
func CheckLeftOpen(path, text string) []Fault {
	var out []Fault
	line := 0
	for l := range strings.Lines(text) {
		line++
		if m := leftOpen.FindString(l); m != "" {
			out = append(out, Fault{path, line, "left open: " + m})
		}
	}
	return out
}

// vagueNames are package names that say nothing about what is inside.
var vagueNames = map[string]bool{"util": true, "utils": true, "common": true, "helpers": true, "helper": true, "misc": true, "base": true, "lib": true}

// CheckPackageName finds package names that say nothing.
func CheckPackageName(f *File) []Fault {
	if vagueNames[f.AST.Name.Name] {
		return []Fault{f.fault(f.AST.Name.Pos(), "package name %s says nothing about what is inside", f.AST.Name.Name)}
	}
	return nil
}
