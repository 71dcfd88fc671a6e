// Package policies embeds the policies that writ ships.
package policies

import _ "embed"

// ApproveMost is the starting policy: only reads run alone.
//
//go:embed approve-most.yaml
var ApproveMost []byte
