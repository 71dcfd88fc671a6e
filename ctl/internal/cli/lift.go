package cli

import "github.com/spf13/cobra"

func (p *program) liftCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "lift ID",
		Short: "Let what was rejected be asked again, or what was stopped go on",
		Long: "With the id of a halt, what writ halt stopped may be asked for, approved and begun\n" +
			"again. What was under way then stays as it is.\n\n" +
			"With the id of a change: a rejection is remembered: the same effect, asked again in whatever words, is shown\n" +
			"with it, and after some of them nobody is asked any more (denials in policy.yaml).\n" +
			"lift takes one rejection out of that count. What was rejected stays rejected.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(deciding)
			if err != nil {
				return err
			}
			if isHalt(args[0]) {
				h, err := g.LiftHalt(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				p.print(h, func() {
					p.say("Lifted: %s may go on. What was held up meanwhile: %s", stopped(h), p.bold("writ execute ID"))
				})
				return nil
			}
			c, err := g.Lift(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			p.print(c, func() { p.say("%s stays rejected, and may be asked for again.", line(c.ID)) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
}
