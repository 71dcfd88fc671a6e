package cli

import "github.com/spf13/cobra"

func (p *program) artifactCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "artifact ID",
		Short: "Print the whole account of one change, as Markdown or JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			a, err := g.Artifact(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			p.print(a.Sections, func() { p.say("%s", plain(a.Markdown)) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
}
