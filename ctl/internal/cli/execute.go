package cli

import "github.com/spf13/cobra"

func (p *program) executeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "execute ID",
		Short: "Carry out an approved change that was held up",
		Long: `An approved change is carried out at once. Where a lock was held or the executor was
away, this begins it, as long as its approval lasts.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(asking)
			if err != nil {
				return err
			}
			c, err := g.Execute(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return p.follow(cmd.Context(), g, c, true)
		},
		ValidArgsFunction: p.completeChange,
	}
}
