package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

func (p *program) systemsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "systems",
		Short: "Connect, test and remove the systems that may be acted on",
		Long: `List the systems that can be named in a change, or let the executor connect one. It
asks for what the kind of system needs; secrets come from a prompt or from standard
input and go into the vault, never through the gate.`,
		Example: `  writ systems add proxmox
  writ systems test proxmox`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := p.gate(looking)
			if err != nil {
				return err
			}
			list, err := g.Systems(cmd.Context())
			if err != nil {
				return err
			}
			p.print(list, func() {
				if len(list.Systems) == 0 {
					p.say("No system is connected. Connect one: writ systems add KIND")
					return
				}
				p.table("SYSTEM\tKIND\tENVIRONMENT", func(row func(...string)) {
					for _, s := range list.Systems {
						row(s.Name, s.Kind, s.Environment)
					}
				})
			})
			return nil
		},
	}
	cmd.AddCommand(
		p.passed("systems", "add KIND [NAME]", "Connect a system: asks for its address and secrets, shows and pins its certificate"),
		p.passed("systems", "list", "List the systems as the executor has them, with addresses"),
		p.passed("systems", "test NAME", "Read something harmless from a system, and name missing privileges"),
		p.passed("systems", "remove NAME", "Disconnect a system"),
	)
	return cmd
}

func (p *program) vaultCommand() *cobra.Command {
	return noun("vault", "Store secrets for the executor, and lock or unlock them",
		p.passed("vault", "set NAME", "Store a secret, from a prompt or from standard input"),
		p.passed("vault", "list", "List the names of the secrets"),
		p.passed("vault", "unlock", "Let the running executor use the secrets"),
		p.passed("vault", "lock", "Take the secrets away from the running executor: everything is refused"),
	)
}

// passed is a command that the executor's program carries out, at the terminal
// of the caller; its flags are the executor's.
func (p *program) passed(noun, use, short string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, DisableFlagParsing: true}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, err := p.home()
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			h, err = &home{}, nil // help needs no directory
		}
		if err != nil {
			return err
		}
		return p.pass(cmd.Context(), h, executorProgram, append([]string{noun, cmd.Name()}, args...)...)
	}
	return cmd
}
