package cli

import "github.com/spf13/cobra"

// CommandPaths lists every command as it is called, without the program's name.
func CommandPaths() []string {
	var paths []string
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		paths = append(paths, path)
		for _, below := range c.Commands() {
			walk(below, path+" "+below.Name())
		}
	}
	for _, c := range (&program{}).root().Commands() {
		walk(c, c.Name())
	}
	return paths
}

// Marked shows a command as classify does.
var Marked = marked
