package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one parsed Go file of the tree.
type File struct {
	Path string // relative to the root, with slashes
	Dir  string // folder of Path, "." for the root
	Test bool   // name ends in _test.go
	Text string
	AST  *ast.File
	Set  *token.FileSet
}

// Fault is one breach of a house rule.
type Fault struct {
	Path string
	Line int // 1 for faults of a whole file
	Text string
}

// String returns path:line: text.
func (f Fault) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text) }

func (f *File) fault(at token.Pos, format string, args ...any) Fault {
	line := 1
	if at.IsValid() {
		line = f.Set.Position(at).Line
	}
	return Fault{f.Path, line, fmt.Sprintf(format, args...)}
}

// Parse reads one Go file from text. The error is the parser's.
func Parse(name, text string) (*File, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &File{Path: name, Dir: path.Dir(name), Test: strings.HasSuffix(name, "_test.go"), Text: text, AST: tree, Set: set}, nil
}

// Load parses every Go file below root. Folders that the go tool passes over
// (testdata, vendor, names that begin with a dot or an underscore) are left out.
func Load(root string) ([]*File, error) {
	var out []*File
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && skipped(d.Name()) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := loadFile(root, p)
		if err == nil {
			out = append(out, f)
		}
		return err
	})
	return out, err
}

func skipped(dir string) bool {
	return dir == "testdata" || dir == "vendor" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func loadFile(root, p string) (*File, error) {
	text, err := os.ReadFile(p)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.ToSlash(rel), string(text))
}
