package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
)

func (p *program) factsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "facts [ENTITY]",
		Short: "Tell what is known of one thing, or list what can be asked for",
		Long: `Let the executor read one thing and tell what it is, how it is, the last change of it that
a person approved, and who holds it. Nothing is written. The policy decides which facts are
shown to whom; that you asked is in the audit. Without ENTITY it lists what there is.`,
		Example: "  writ facts proxmox/pve/lxc/121",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				f, err := g.Facts(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				p.print(f, func() { p.showFacts(f) })
				return nil
			}
			list, err := g.Actions(cmd.Context())
			if err != nil {
				return err
			}
			sets := api.Actions{Actions: []api.Action{}}
			for _, a := range list.Actions {
				if a.FactsOf != "" {
					sets.Actions = append(sets.Actions, a)
				}
			}
			p.print(sets, func() {
				p.table("ENTITY\tSYSTEM OF KIND\tWHAT", func(row func(...string)) {
					for _, a := range sets.Actions {
						row(a.FactsOf, a.System, a.Summary)
					}
				})
				p.say("\nThe systems there are: writ systems")
			})
			return nil
		},
	}
}

// showFacts prints facts; what the target says stands in quotation marks.
func (p *program) showFacts(f api.Facts) {
	colour := yellow
	switch f.Health.State {
	case writ.HealthOK:
		colour = green
	case writ.HealthDegraded:
		colour = red
	}
	p.say("%s  %s", p.bold(line(f.Entity)), p.paint(colour, line(string(f.Health.State))))
	p.say("%s (%s), on %s in %s", line(f.Summary), line(f.ActionType), line(f.System.Name), line(f.System.Environment))
	for _, reason := range f.Health.Reasons {
		p.say("  · %s", line(reason))
	}
	if len(f.Facts) > 0 {
		p.say("")
	}
	for _, one := range f.Facts {
		text := side(one.Value, one.Absent)
		if one.Withheld != "" {
			text = "withheld: " + line(one.Withheld)
		} else if !one.Absent && one.Type != "string" {
			text = line(one.Value)
		}
		p.say("  %-16s %s", line(one.Name), text)
	}
	p.say("")
	if f.StateHash != "" {
		p.say("State     %s", line(string(f.StateHash)))
	}
	if c := f.LastChange; c != nil {
		p.say("Approved  %s (%s) at %s: %s", line(c.ID), line(c.ActionType), when(c.ApprovedAt), line(strings.ReplaceAll(c.State, "_", " ")))
	} else {
		p.say("Approved  no change of it by anybody here")
	}
	for _, c := range f.OpenChanges {
		p.say("Open      %s (%s): %s", line(c.ID), line(c.ActionType), line(strings.ReplaceAll(c.State, "_", " ")))
	}
	if f.Lock != nil {
		p.say("Locked    by %s (%s)", line(f.Lock.ChangeID), line(f.Lock.State))
	}
	if !f.Dependents.Known {
		p.say("Needed by not known: %s", line(f.Dependents.Why))
	}
	p.say("Read at   %s", when(f.ObservedAt))
}
