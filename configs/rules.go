// Package configs holds the files that come with stategauge and embeds those that
// the binary needs: nothing has to be installed beside it.
package configs

import _ "embed"

// DefaultRulesName is how messages call the embedded rule pack.
const DefaultRulesName = "default.yaml"

//go:embed rules/default.yaml
var defaultRules []byte

// DefaultRules returns the rule file that runs where no other is named. The bytes
// are the caller's.
func DefaultRules() []byte { return append([]byte(nil), defaultRules...) }
