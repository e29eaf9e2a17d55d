package configs

import (
	"embed"
	"io/fs"
)

//go:embed scenarios/*.yml
var scenarios embed.FS

// Scenarios returns the scenarios that come with the simulator, one file each,
// named after the scenario with .yml behind it.
func Scenarios() fs.FS {
	sub, err := fs.Sub(scenarios, "scenarios")
	if err != nil {
		panic(err) // the name is constant and valid
	}
	return sub
}
