package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

func (p *program) policyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "policy",
		Short: "Print the policy that decides",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			policy, err := g.Policy(cmd.Context())
			if err != nil {
				return err
			}
			p.print(policy, func() { p.say("%s", strings.TrimRight(plain(policy.Source), "\n")) })
			return nil
		},
	}
}
