package cli

import (
	"github.com/spf13/cobra"

	"writ/api"
)

func (p *program) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one change: plan, preview, risk, decision, receipts, and what to do next",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			c, err := g.Change(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			p.print(c, func() { p.showChange(c) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
}

// summary names what a change does, in a few words.
func summary(c api.Change) string {
	if len(c.Request.Steps) == 0 {
		return ""
	}
	text := c.Request.Steps[0].ActionType
	if len(c.Plan) > 0 && c.Plan[0].Entity != "" {
		text += " " + c.Plan[0].Entity
	}
	if n := len(c.Request.Steps); n > 1 {
		text += " …"
	}
	return text
}
