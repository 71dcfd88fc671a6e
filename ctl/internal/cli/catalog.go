package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"writ/catalog"
	"writ/fault"
)

func (p *program) catalogCommand() *cobra.Command {
	return noun("catalog", "Work on the definitions of actions", &cobra.Command{
		Use:   "check [DIR]",
		Short: "Check all actions of a directory, their examples too, and name all problems",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var dir string
			if len(args) == 1 {
				dir = args[0]
			} else {
				h, err := p.home()
				if err != nil {
					return err
				}
				dir = h.path("catalog")
			}
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				return fault.Wrap(fault.NotFound, err, "There is no directory %s.", dir)
			}
			c, err := catalog.Load(os.DirFS(dir))
			var wrong catalog.Problems
			if errors.As(err, &wrong) {
				p.print(wrong, func() {
					for _, problem := range wrong {
						p.say("%s", plain(problem.String()))
					}
				})
				return fault.New(fault.Invalid, "Problems found: %d. The catalog cannot be used before they are mended.", len(wrong))
			}
			if err != nil {
				return err
			}
			names := c.Names()
			p.print(names, func() { p.say("%d actions, all valid, all examples come true.", len(names)) })
			return nil
		},
	})
}
