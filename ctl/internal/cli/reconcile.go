package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
	"writ/client"
	"writ/fault"
)

// settling is how a person answers a probe without being asked.
type settling struct {
	adopt, absent, rollBack, yes bool
	phrase, note                 string
}

// chosen returns what was chosen by a flag, "" if nothing was.
func (s *settling) chosen() string {
	switch {
	case s.adopt:
		return "adopt"
	case s.absent:
		return "absent"
	case s.rollBack:
		return "roll_back"
	}
	return ""
}

func (p *program) reconcileCommand() *cobra.Command {
	var s settling
	var look bool
	cmd := &cobra.Command{
		Use:   "reconcile ID",
		Short: "Look at the target of a change whose outcome is in doubt, and decide what it counts as",
		Long: `Where it is not known what became of a change, its target stays locked. The executor
looks at the target, writes nothing, and says what it finds: it happened, it did not, or
it cannot tell. Then you decide, on exactly what was shown:

  adopt      leave the target as it was found, and count what happened as done
  absent     nothing of it is there
  roll_back  have it undone, by a change that needs an approval of its own

ID is that of the change or of its run. Whoever asked for a change cannot decide, and an
agent can decide nothing.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			g, err := p.gate(deciding)
			if err != nil {
				return err
			}
			found, err := g.Probe(ctx, args[0])
			if err != nil {
				return err
			}
			text := plain(found.Text)
			if writ.DigestBytes([]byte(text)) != found.ShownDigest {
				return fault.New(fault.Stale, "What the gate sent is not what it says it shows, so nothing was decided. Are gate and writ of one version?").Because("shown_differs")
			}
			if look {
				p.print(found, func() { p.say("%s", strings.TrimRight(text, "\n")) })
				return nil
			}
			if !p.asJSON {
				p.say("%s\n", strings.TrimRight(text, "\n"))
			}
			decision, err := p.decide(found, &s)
			if err != nil {
				return err
			}
			return p.settled(ctx, g, found.ChangeID, decision)
		},
		ValidArgsFunction: p.completeChange,
	}
	f := cmd.Flags()
	f.BoolVar(&look, "look", false, "only show what is found")
	f.BoolVar(&s.adopt, "adopt", false, "leave the target as it was found")
	f.BoolVar(&s.absent, "absent", false, "nothing of it is there")
	f.BoolVar(&s.rollBack, "roll-back", false, "have it undone")
	f.BoolVar(&s.yes, "yes", false, "do not ask (needed where nobody is at the terminal)")
	f.StringVar(&s.phrase, "phrase", "", "the phrase that is asked for where the executor cannot tell")
	f.StringVar(&s.note, "note", "", "what you saw at the target; needed where the executor cannot tell")
	cmd.MarkFlagsMutuallyExclusive("look", "adopt", "absent", "roll-back")
	return cmd
}

// decide asks the person at the terminal for what no flag says.
func (p *program) decide(found api.Probe, s *settling) (api.Settlement, error) {
	out := api.Settlement{ShownDigest: found.ShownDigest, Resolution: s.chosen(), Note: s.note}
	if found.Phrase != "" {
		out.Phrase = s.phrase
	}
	choices := strings.Join(found.Choices, ", ")
	if out.Resolution != "" && !slices.Contains(found.Choices, out.Resolution) {
		return out, fault.New(fault.Refused, "%s does not fit what was found. It can be: %s.", out.Resolution, choices).Because("does_not_fit")
	}
	certain := s.yes && out.Resolution != "" && (found.Phrase == "" || s.phrase != "" && s.note != "")
	if certain {
		return out, nil
	}
	if !terminal(p.stdin) {
		flags := "--yes and one of --" + strings.ReplaceAll(strings.Join(found.Choices, ", --"), "_", "-")
		if found.Phrase != "" {
			flags += fmt.Sprintf(", --note TEXT, --phrase %q", found.Phrase)
		}
		return out, fault.New(fault.Invalid, "Nobody is at the terminal to be asked. If you have read what was found, add: %s", flags)
	}
	in := bufio.NewReader(p.stdin)
	ask := func(into *string, question string) {
		if *into == "" {
			fmt.Fprint(p.stdout, question)
			answer, _ := in.ReadString('\n') // an end of the input is no answer
			*into = strings.TrimSpace(answer)
		}
	}
	if out.Resolution == "" {
		ask(&out.Resolution, "Decide: type "+choices+", or nothing to leave it as it is: ")
	} else if !s.yes {
		answer := ""
		ask(&answer, fmt.Sprintf("Decide %s on exactly this? [y/N] ", out.Resolution))
		if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
			out.Resolution = ""
		}
	}
	if found.Phrase != "" && out.Resolution != "" {
		ask(&out.Note, "What did you see at the target? ")
		ask(&out.Phrase, fmt.Sprintf("To vouch for it, type %s: ", line(found.Phrase)))
	}
	if !slices.Contains(found.Choices, out.Resolution) || out.Phrase != found.Phrase {
		return out, fault.New(fault.Canceled, "Nothing was decided.")
	}
	return out, nil
}

// settled sends a decision and says what came of it.
func (p *program) settled(ctx context.Context, g *client.Client, id string, s api.Settlement) error {
	c, err := g.Reconcile(ctx, id, s)
	if err != nil {
		return err
	}
	p.print(c, func() {
		if c.ID != id {
			p.say("You decided that %s is undone. That is %s, which needs its own approval.", line(id), p.bold(line(c.ID)))
		} else {
			p.say("You decided on %s: it counts as %s.", line(id), p.state(c))
		}
		p.say("Next      %s", line(c.Next))
	})
	return nil
}
