package cli

import "github.com/spf13/cobra"

func (p *program) rejectCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:   "reject ID --reason WHY",
		Short: "Say no to a change, with a reason for whoever asked",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(deciding)
			if err != nil {
				return err
			}
			c, err := g.Reject(cmd.Context(), args[0], why)
			if err != nil {
				return err
			}
			p.print(c, func() { p.say("%s is rejected, and %s is told why.", line(c.ID), line(c.RequestedBy.Name)) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
	cmd.Flags().StringVar(&why, "reason", "", "why, in a sentence")
	_ = cmd.MarkFlagRequired("reason") // fails only for a flag that does not exist
	return cmd
}
