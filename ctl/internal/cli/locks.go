package cli

import (
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

func (p *program) locksCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "locks",
		Short: "List who holds which entity; an orphaned lock waits for somebody to look at the target",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			list, err := g.Locks(cmd.Context(), all)
			if err != nil {
				return err
			}
			p.print(list, func() {
				if len(list.Locks) == 0 {
					p.say("Nothing is locked.")
					return
				}
				now := p.sys.Now()
				p.table("ENTITY\tKIND\tSTATE\tAGE\tFENCE\tCHANGE", func(row func(...string)) {
					for _, l := range list.Locks {
						row(l.Entity, l.Kind, l.State, age(now, l.TakenAt), strconv.FormatInt(l.Fence, 10), l.ChangeID)
					}
				})
				var left []string // changes, each once
				for _, l := range list.Locks {
					if l.State == "orphaned" && !slices.Contains(left, l.ChangeID) {
						left = append(left, l.ChangeID)
					}
				}
				for _, id := range left {
					p.say("To look at what %s left behind, and decide: %s", line(id), p.bold("writ reconcile "+line(id)))
				}
			})
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also locks that hold no more")
	return cmd
}
