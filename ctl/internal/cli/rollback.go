package cli

import "github.com/spf13/cobra"

func (p *program) rollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback ID",
		Short: "Propose the change that undoes a change",
		Long: `Propose the change that undoes a change, made from the backup that was taken. It is
a change like any other: previewed, weighed, and approved before anything happens.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(asking)
			if err != nil {
				return err
			}
			c, err := g.Rollback(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.follow(cmd.Context(), g, c, false)
		},
		ValidArgsFunction: p.completeChange,
	}
}
