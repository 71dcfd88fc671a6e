package cli

import "github.com/spf13/cobra"

func (p *program) cancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Withdraw a change that was not begun",
		Long: `Withdraw a change that was not begun. What is being carried out cannot be withdrawn;
undo it afterwards with "writ rollback".`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(asking)
			if err != nil {
				return err
			}
			c, err := g.Cancel(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			p.print(c, func() { p.say("%s is cancelled. %s", line(c.ID), line(c.Next)) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
}
