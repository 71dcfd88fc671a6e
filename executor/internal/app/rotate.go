package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"writ"
	"writ/executor/internal/config"
	"writ/executor/internal/datadir"
	"writ/fault"
	"writ/ledger"
	"writ/redact"
	"writ/sys"
)

func rotateKeyCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Make a new key, which signs receipts and the audit from now on; the executor must be stopped",
		Long: `Make a new key. The old one signs, in the executor's audit, that the new one follows it, so
that whoever knows the old public key can verify the audit to its end. Then the old key is
gone. A gate that trusts the old key takes the new one by that signature, with no more to
do. If the old key is stolen, stop the gate before, and write the new one, which is printed,
at executor.key in gate.yaml: then nothing that the old one signs is taken any more.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			who, err := rotateKey(cmd.Context(), *dir, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return printJSON(cmd.OutOrStdout(), who)
		},
	}
}

// rotateKey goes on wherever an earlier one was cut off: the file of the new key
// is there before the audit names it, and takes the place of the old one after.
func rotateKey(ctx context.Context, dir string, stderr io.Writer) (who identity, err error) {
	if err := harden(); err != nil {
		return who, fault.Wrap(fault.Internal, err, "The process could not be shielded against debuggers and core files.")
	}
	c, err := config.Load(dir)
	if err != nil {
		return who, err
	}
	release, err := datadir.Lock(c.Dir, "lock")
	if err != nil {
		return who, err
	}
	defer func() { err = errors.Join(err, release()) }()
	file, nextFile := c.Path(config.KeyFile), c.Path(config.NextKeyFile)
	p := &process{config: c, log: slog.New(slog.NewTextHandler(redact.Whole(stderr, func() *redact.Redactor { return new(redact.Redactor) }), nil))}
	if p.key, err = readKey(file); err != nil {
		return who, err
	}
	next, err := readKey(nextFile)
	if err != nil && fault.CodeOf(err) != fault.NotFound {
		return who, err
	}
	s := sys.Real(p.log)
	j, err := p.openJournal(ctx, s)
	if fault.ReasonOf(err) == "other_key" && next != nil {
		p.key = next // the crash came between the audit and the file: the new key signs already
		j, err = p.openJournal(ctx, s)
	}
	if err != nil {
		return who, err
	}
	if next == nil {
		next, err = newKey(nextFile)
	}
	if err == nil && !next.Equal(p.key) {
		err = j.Rotate(ctx, next)
	}
	if err = errors.Join(err, j.Close()); err == nil {
		err = datadir.Rename(nextFile, file)
	}
	return identify(c.Executor, next), err
}

func identify(name string, key ed25519.PrivateKey) identity {
	if key == nil {
		return identity{}
	}
	public := ed25519.PublicKey(key[ed25519.SeedSize:])
	return identity{name, base64.StdEncoding.EncodeToString(public), writ.KeyID(public)}
}

// newKey makes a key and its file, which holds all of it or is not there.
func newKey(file string) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := sys.Real(nil).Rand.Read(seed); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "No key could be made.")
	}
	return ed25519.NewKeyFromSeed(seed), datadir.Replace(file, []byte(base64.StdEncoding.EncodeToString(seed)+"\n"))
}

// former returns the keys but the last, each with what proves the next.
func former(all ledger.Signers) []writ.FormerKey {
	keys := []writ.FormerKey{}
	for i := range len(all) - 1 {
		keys = append(keys, writ.FormerKey{KeyID: writ.KeyID(all[i].Key), Seam: all[i+1].Seam})
	}
	return keys
}
