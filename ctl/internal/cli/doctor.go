package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/fault"
)

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check everything, say what is wrong, and the command that mends it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			checks := p.examine(cmd.Context(), h)
			bad := 0
			for _, c := range checks {
				if !c.OK {
					bad++
				}
			}
			p.print(checks, func() {
				for _, c := range checks {
					word := p.paint(green, "ok  ")
					if !c.OK {
						word = p.paint(red, "FAIL")
					}
					text := strings.Split(plain(c.Text), "\n")
					p.say("%s  %-20s  %s", word, line(c.Name), text[0])
					for _, more := range text[1:] {
						p.say("%-28s%s", "", more)
					}
					if c.Fix != "" {
						p.say("%-28s%s", "", p.bold("→ "+line(c.Fix)))
					}
				}
				if bad == 0 {
					p.say("\nEverything is as it should be.")
				} else {
					p.say("\n%d of %d checks failed.", bad, len(checks))
				}
			})
			if bad > 0 {
				return exitFor(fault.Internal)
			}
			return nil
		},
	}
}

// examine runs all checks: both directories as their programs see them, the
// tokens, and what the running gate says.
func (p *program) examine(ctx context.Context, h *home) []api.HealthCheck {
	checks := []api.HealthCheck{{Name: "writ.yaml", OK: true, Text: "found in " + h.dir}}
	add := func(name, good, fix string, err error) {
		c := api.HealthCheck{Name: name, OK: err == nil, Text: good}
		if err != nil {
			c.Text, c.Fix = fault.TextOf(err), fix
			if _, command, ok := strings.Cut(c.Text, "Run: "); ok {
				c.Fix = command
			}
		}
		checks = append(checks, c)
	}
	add("home", "nobody else can put anything in it", "", h.closed())
	for _, name := range h.tokenNames() {
		_, err := h.token(name)
		add("token "+name, "only you can read it", "writ principals add "+name, err)
	}
	for _, program := range []string{gateProgram, executorProgram} {
		short := strings.TrimPrefix(program, "writ-")
		var found []api.HealthCheck
		err := p.ask(ctx, h, &found, program, "doctor", "--json")
		var told exit
		if err != nil && (!errors.As(err, &told) || len(found) == 0) {
			add(short, "", "make build", err)
		}
		for _, c := range found {
			c.Name = short + " " + c.Name
			if strings.HasPrefix(c.Fix, executorProgram+" run ") { // it cannot know that the gate is started with it here
				c.Text, c.Fix = "the executor is not running", "writ up"
			}
			checks = append(checks, c)
		}
	}
	g, err := p.gate(looking)
	if err == nil {
		health, wrong := g.Health(ctx)
		for _, c := range health.Checks {
			c.Name = "running " + c.Name
			c.Fix = strings.Replace(c.Fix, "--dir EXECUTOR", "--dir "+h.path("executor"), 1) // the gate does not know where it is
			checks = append(checks, c)
		}
		err = wrong
	}
	add("running gate", "it answers at "+h.gateAddress(), "writ up", err)
	return checks
}
