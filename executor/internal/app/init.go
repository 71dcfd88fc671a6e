package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"writ/executor/internal/config"
	"writ/executor/internal/datadir"
	"writ/executor/internal/vault"
	"writ/fault"
)

// identity is what init prints: what a gate must know of the executor.
type identity struct {
	Executor  string `json:"executor"`
	PublicKey string `json:"public_key"` // base64
	KeyID     string `json:"key_id"`
}

func initCommand(dir *string) *cobra.Command {
	var name, gateKey string
	var approvers []string
	var passphrase bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a data directory with keys, an empty vault and executor.yaml; overwrites nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret := ""
			if passphrase {
				var err error
				if secret, err = askSecret(cmd, "Passphrase of the vault"); err != nil {
					return err
				}
			}
			who, err := initialise(*dir, name, gateKey, approvers, passphrase, secret)
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), who)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the executor's name, which writs are made out to")
	cmd.Flags().StringVar(&gateKey, "gate-key", "", "public key of the gate, base64")
	cmd.Flags().StringArrayVar(&approvers, "approver", nil, "a person whose approvals count; may be given several times")
	cmd.Flags().BoolVar(&passphrase, "passphrase", false, "protect the vault with a passphrase, asked for or read from standard input")
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func initialise(dir, name, gateKey string, approvers []string, passphrase bool, secret string) (identity, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return identity{}, fault.Wrap(fault.Invalid, err, "The data directory cannot be found.")
	}
	c := config.New(dir, name)
	c.Approvers = append(c.Approvers, approvers...)
	if gateKey != "" {
		c.GateKeys = append(c.GateKeys, gateKey)
	}
	c.Vault.Passphrase = passphrase
	if err := c.Check(); err != nil {
		return identity{}, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return identity{}, fault.Wrap(fault.Unavailable, err, "The directory above %s cannot be made.", dir)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return identity{}, fault.Wrap(fault.Unavailable, err, "The directory %s cannot be made.", dir)
	}
	if err := datadir.Check(dir); err != nil {
		return identity{}, err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return identity{}, fault.Wrap(fault.Conflict, err, "%s is not empty. Nothing was overwritten; choose another directory.", dir)
	}
	key, err := newKey(c.Path(config.KeyFile)) // the directory is empty
	if err != nil {
		return identity{}, err
	}
	if _, err := hashKey(c); err != nil {
		return identity{}, err
	}
	if err := vault.Create(vaultConfig(c), secret); err != nil {
		return identity{}, err
	}
	if err := os.Mkdir(c.Path(c.Backups), 0o700); err != nil {
		return identity{}, fault.Wrap(fault.Unavailable, err, "The directory for backups cannot be made.")
	}
	if err := c.Save(); err != nil { // last: a directory without it is not used
		return identity{}, err
	}
	return identify(name, key), nil
}

func setGateKeyCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "set-gate-key KEY",
		Short: "Take writs of this gate only: its public key, base64",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return edit(cmd.Context(), *dir, func(c *config.Config) error {
				c.SetGateKey(args[0])
				return nil
			})
		},
	}
}

func addApproverCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "add-approver NAME",
		Short: "Let the approvals of a person count",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return edit(cmd.Context(), *dir, func(c *config.Config) error {
				c.Approvers = append(c.Approvers, args[0])
				return nil
			})
		},
	}
}

func removeApproverCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "remove-approver NAME",
		Short: "Let the approvals of a person count no more",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return edit(cmd.Context(), *dir, func(c *config.Config) error {
				c.Approvers = slices.DeleteFunc(c.Approvers, func(name string) bool { return name == args[0] })
				return nil
			})
		},
	}
}
