package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"writ/api"
)

func (p *program) haltCommand() *cobra.Command {
	var s api.Stop
	cmd := &cobra.Command{
		Use:   "halt --reason TEXT [--target ENTITY | --principal NAME]",
		Short: "Stop everything at once, or all on a target, or all of a principal",
		Long: "Until writ lift, nothing that is covered is proposed, approved or begun, and what is\n" +
			"under way takes no further step: what is half done stays half done, locked, for a\n" +
			"person to look at. A target is a system or an entity as writ show names it, with all\n" +
			"above and below it; a principal is whoever asks or approves.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(deciding)
			if err != nil {
				return err
			}
			h, err := g.Halt(cmd.Context(), s)
			if err != nil {
				return err
			}
			p.print(h, func() {
				p.say("Stopped: %s. To let it go on: %s", stopped(h), p.bold("writ lift "+line(h.ID)))
				for _, r := range h.Running {
					if r.Halted {
						p.say("  %s was under way, and takes no further step.", line(r.ChangeID))
					} else {
						p.say("  %s is under way, and the executor does not know yet; it is told again and again. To stop it there: %s", line(r.ChangeID), p.bold("writ vault lock"))
					}
				}
			})
			return nil
		},
	}
	cmd.Flags().StringVar(&s.Target, "target", "", "a system or an entity, with all above and below it")
	cmd.Flags().StringVar(&s.Principal, "principal", "", "whoever asked, or approved")
	cmd.Flags().StringVar(&s.Reason, "reason", "", "why; whoever is refused reads it")
	_ = cmd.MarkFlagRequired("reason") // the flag exists
	return cmd
}

// stopped names what a halt covers.
func stopped(h api.Halt) string {
	switch {
	case h.Target != "":
		return "all on " + line(h.Target)
	case h.Principal != "":
		return "all of " + line(h.Principal)
	}
	return "everything"
}

func (p *program) haltsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "halts",
		Short: "List what people have stopped",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			list, err := g.Halts(cmd.Context(), all)
			if err != nil {
				return err
			}
			p.print(list, func() {
				if len(list.Halts) == 0 {
					p.say("Nothing is stopped.")
					return
				}
				now := p.sys.Now()
				p.table("HALT\tSTOPPED\tBY\tAGE\tREASON\tLIFTED", func(row func(...string)) {
					for _, h := range list.Halts {
						row(h.ID, stopped(h), h.HaltedBy, age(now, h.HaltedAt), h.Reason, h.LiftedBy)
					}
				})
			})
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also what was lifted")
	return cmd
}

// isHalt tells the id of a halt from that of a change.
func isHalt(id string) bool { return strings.HasPrefix(id, "halt_") }
