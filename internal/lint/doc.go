// Package lint holds the house rules that no general linter knows: which package
// may import which, which packages are pure, how long files and functions may
// be, and what must be documented. It is used by its own test only, which reads
// the whole source tree.
package lint
