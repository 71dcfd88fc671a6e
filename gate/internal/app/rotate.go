package app

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"writ"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/config"
	"writ/gate/internal/store/sqlite"
)

func (p *program) rotateKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Make a new key, which signs writs and the audit from now on; the gate must be stopped",
		Long: `Make a new key. The old one signs, in the audit, that the new one follows it, so that
whoever knows the old public key can verify the audit to its end. Then the old key is gone.
Give the new public key, which is printed, to every executor.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c, err := p.load()
			if err != nil {
				return err
			}
			path, nextPath := c.Path(config.KeyFile), c.Path(config.NextKeyFile)
			next, err := readKey(nextPath)
			if errors.Is(err, fs.ErrNotExist) {
				next, err = p.newKey(nextPath, disk.Replace) // half a file would be no key
			}
			if err != nil {
				return err
			}
			log, err := p.openLedger(c)
			if fault.ReasonOf(err) == "other_key" {
				// A crash came between the audit and the file: the new key signs already.
				c.key = next
				log, err = p.openLedger(c)
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, log.Close()) }()
			if !next.Equal(ed25519.PrivateKey(c.key)) {
				memory, err := sqlite.Open(cmd.Context(), c.Path(config.StoreFile))
				if err != nil {
					return err
				}
				err = errors.Join(p.newAudit(c, memory, log).Rotate(cmd.Context(), next), memory.Close())
				if err != nil {
					return err
				}
			}
			if err := swapKey(nextPath, path); err != nil {
				return err
			}
			public := ed25519.PublicKey(next[ed25519.SeedSize:])
			return p.print(keyInfo{base64.StdEncoding.EncodeToString(public), writ.KeyID(public)})
		},
	}
}

// swapKey puts the new key in the place of the old one, durably.
func swapKey(next, path string) error {
	if err := disk.Rename(next, path); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The new key signs the audit already, but it could not be put in the place of the old one. Run the same command again.")
	}
	return nil
}
