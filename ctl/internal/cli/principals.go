package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

func (p *program) principalsCommand() *cobra.Command {
	var kind string
	var roles []string
	add := &cobra.Command{
		Use:   "add NAME",
		Short: "Add somebody, and store the token in tokens/NAME.token",
		Long: `Add somebody who may call the gate. The roles: a requester asks, an approver decides,
an operator carries out what was held up and asks for rollbacks, an auditor reads
everything, an admin does all of it. An agent can be neither approver nor admin.`,
		Example: `  writ principals add opencode --kind agent --role requester
  writ principals add ana --role approver --role auditor`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.home()
			if err != nil {
				return err
			}
			path, err := p.addPrincipal(cmd, h, args[0], kind, roles)
			if err != nil {
				return err
			}
			p.print(map[string]string{"name": args[0], "token_file": path}, func() {
				p.say("%s may call now. The token is in %s: hand it over, or use it here with --as %s.", args[0], path, args[0])
			})
			return nil
		},
	}
	add.Flags().StringVar(&kind, "kind", "human", "human or agent")
	add.Flags().StringSliceVar(&roles, "role", nil, "requester, approver, operator, auditor or admin; may be given again")
	_ = add.MarkFlagRequired("role") // fails only for a flag that does not exist
	return noun("principals", "Say who may call the gate, and as what", add)
}

// addPrincipal makes a principal known to the gate and, if it decides, to the
// executor, which takes nobody's word for who may. It returns the token's file.
func (p *program) addPrincipal(cmd *cobra.Command, h *home, name, kind string, roles []string) (string, error) {
	args := []string{"add-principal", name, "--kind", kind}
	for _, r := range roles {
		args = append(args, "--role", r)
	}
	var made struct {
		Token string `json:"token"`
	}
	if err := p.ask(cmd.Context(), h, &made, gateProgram, args...); err != nil {
		return "", err
	}
	if err := create(h.tokenFile(name), made.Token+"\n"); err != nil {
		return "", err
	}
	if slices.Contains(roles, "approver") || slices.Contains(roles, "admin") {
		return h.tokenFile(name), p.ask(cmd.Context(), h, nil, executorProgram, "add-approver", name)
	}
	return h.tokenFile(name), nil
}
