package shell_test

import (
	"os"
	"testing"

	"writ/shell"
)

// TestLoad_everything reads every shipped file in full and checks its examples.
func TestLoad_everything(t *testing.T) {
	t.Parallel()
	if _, err := shell.Load(os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
}
