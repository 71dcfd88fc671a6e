//go:build !(linux && amd64)

package oracle

import (
	"os"
	"testing"
)

// TestOracle needs the namespaces of Linux, and knows the system calls of one
// architecture.
func TestOracle(t *testing.T) {
	if os.Getenv("CI") == "true" {
		t.Fatal("CI runs what the classifier calls read-only, which needs Linux on amd64")
	}
	t.Skip("SKIPPED: what the classifier calls read-only is run on Linux on amd64 only")
}
