// Package configs holds the files that come with stategauge and embeds those that
// the binary needs: nothing has to be installed beside it.
package configs

import (
	"embed"
	"io/fs"
)

//go:embed rules/*.yaml
var ruleFiles embed.FS

// RuleFile is one file of the rule pack.
type RuleFile struct {
	Name string // as messages call it, without a folder
	Data []byte // the caller's own copy
}

// Rules returns the files of the rule pack that runs where no others are named,
// sorted by name. They share their signals and their symptoms: load them together.
func Rules() []RuleFile {
	entries, err := fs.ReadDir(ruleFiles, "rules")
	if err != nil {
		panic(err) // the name is constant and embedded
	}
	out := make([]RuleFile, 0, len(entries))
	for _, e := range entries {
		data, err := fs.ReadFile(ruleFiles, "rules/"+e.Name())
		if err != nil {
			panic(err) // just listed
		}
		out = append(out, RuleFile{Name: e.Name(), Data: data})
	}
	return out
}
