package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"writ/client"
)

func (p *program) listCommand() *cobra.Command {
	var f client.ChangeFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List changes, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			list, err := g.Changes(cmd.Context(), f)
			if err != nil {
				return err
			}
			p.print(list, func() {
				if len(list.Changes) == 0 {
					p.say("There is no change. Ask for one: %s", firstChange)
					return
				}
				now := p.sys.Now()
				p.table("CHANGE\tSTATE\tAGE\tBY\tWHAT", func(row func(...string)) {
					for _, c := range list.Changes {
						row(c.ID, c.State, age(now, c.RequestedAt), c.RequestedBy.Name, summary(c))
					}
				})
				if n := len(list.Changes); list.NextCursor != "" && n > 0 {
					p.say("There are older ones: writ list --before %s", line(list.Changes[n-1].ID))
				}
			})
			return nil
		},
	}
	cmd.Flags().StringVar(&f.State, "state", "", "only changes in this state, e.g. awaiting_approval")
	cmd.Flags().StringVar(&f.Before, "before", "", "only changes older than this id")
	cmd.Flags().IntVar(&f.Limit, "limit", 20, "at most so many")
	return cmd
}

// table prints rows in columns, below a head if there is one.
func (p *program) table(head string, rows func(row func(cells ...string))) {
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	if head != "" {
		fmt.Fprintln(w, head)
	}
	rows(func(cells ...string) {
		for i, cell := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, line(cell))
		}
		fmt.Fprintln(w)
	})
	_ = w.Flush() // whoever closed the stream does not want it
}
