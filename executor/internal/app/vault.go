package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"writ/connector"
	"writ/executor/internal/config"
	"writ/executor/internal/vault"
	"writ/fault"
	"writ/redact"
)

func vaultConfig(c *config.Config) vault.Config {
	return vault.Config{File: c.Path(c.Vault.File), KeyFile: c.Path(c.Vault.KeyFile), Passphrase: c.Vault.Passphrase}
}

func vaultCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{Use: "vault", Short: "The credentials of the systems"}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "set NAME",
			Short: "Store a secret, asked for without echo or read from standard input",
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				value, err := askSecret(cmd, "Secret "+args[0])
				if err != nil {
					return err
				}
				return edit(cmd.Context(), *dir, func(c *config.Config) error {
					return store(cmd, c, map[string]string{args[0]: value})
				})
			},
		},
		&cobra.Command{
			Use:   "list",
			Short: "The names of the secrets",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := config.Load(*dir)
				if err != nil {
					return err
				}
				v, err := openVault(cmd, c)
				if err != nil {
					return err
				}
				for _, n := range v.Names() {
					fmt.Fprintln(cmd.OutOrStdout(), n)
				}
				return nil
			},
		},
		&cobra.Command{
			Use:   "unlock",
			Short: "Let the running executor use the vault",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := config.Load(*dir)
				if err != nil {
					return err
				}
				passphrase := ""
				if c.Vault.Passphrase {
					if passphrase, err = askSecret(cmd, "Passphrase of the vault"); err != nil {
						return err
					}
				}
				_, err = tell(cmd.Context(), c, "/unlock", []byte(passphrase))
				return err
			},
		},
		&cobra.Command{
			Use:   "lock",
			Short: "Take the vault away from the running executor: everything is refused",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := config.Load(*dir)
				if err != nil {
					return err
				}
				_, err = tell(cmd.Context(), c, "/lock", nil)
				return err
			},
		},
	)
	return cmd
}

// openVault unlocks the vault for one command. A passphrase is asked for on the
// terminal only: standard input may be what the command reads.
func openVault(cmd *cobra.Command, c *config.Config) (*vault.Vault, error) {
	v := vault.New(vaultConfig(c))
	passphrase := ""
	if v.NeedsPassphrase() {
		if _, ok := terminal(cmd); !ok {
			return nil, fault.New(fault.Unsupported, "The vault needs its passphrase, which is only asked for on a terminal.")
		}
		var err error
		if passphrase, err = askSecret(cmd, "Passphrase of the vault"); err != nil {
			return nil, err
		}
	}
	return v, v.Unlock(passphrase)
}

// store writes secrets into the vault; edit makes sure that one command does at a time.
func store(cmd *cobra.Command, c *config.Config, values map[string]string) error {
	if len(values) == 0 {
		return nil
	}
	v, err := openVault(cmd, c)
	if err != nil {
		return err
	}
	secrets := map[string]connector.Secret{}
	for name, value := range values {
		secrets[name] = connector.NewSecret(value)
		if len(value) < redact.MinLength {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s has fewer than %d characters: where a system repeats it, it cannot be hidden.\n", name, redact.MinLength)
		}
	}
	return v.Set(secrets)
}
