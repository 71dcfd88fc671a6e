package cli

import (
	"archive/zip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"writ"
	"writ/evidence"
	"writ/fault"
)

func (p *program) evidenceCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "evidence ID",
		Short: "Write all that proves what became of a change into a file that can be verified anywhere",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := p.evidenceOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			account, err := evidence.Verify(files)
			if err != nil {
				return err
			}
			if out == "" {
				out = args[0] + ".zip"
			}
			if err := writeZip(out, files); err != nil {
				return err
			}
			p.print(account, func() {
				p.say("%s written to %s. Verify them anywhere: writ evidence verify %s", count(len(files), "file"), line(out), line(out))
			})
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to make (default ID.zip)")
	cmd.AddCommand(p.evidenceVerifyCommand())
	return cmd
}

func (p *program) evidenceVerifyCommand() *cobra.Command {
	var gate, executor string
	var witnesses []string
	cmd := &cobra.Command{
		Use:   "verify FILE.zip",
		Short: "Verify evidence offline: every digest, every inclusion proof, both signatures",
		Long: `Verify evidence offline. The keys that it names are believed, unless they are given:
compare the key ids that are printed with those one knows. A key from which the others
follow, each signed by the one before, will do: the one that was valid then, or any before.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := readZip(args[0])
			if err != nil {
				return err
			}
			known, err := parseWitnesses(witnesses)
			if err != nil {
				return err
			}
			account, err := evidence.Verify(files, known...)
			if err != nil {
				return err
			}
			for _, k := range []struct {
				whose, given, found string
				from                []string
			}{{"gate", gate, account.Gate, account.GateFrom}, {"executor", executor, account.Executor, account.ExecutorFrom}} {
				if id, err := knownKey(k.given); err != nil || id != "" && !slices.Contains(k.from, id) {
					return fault.Wrap(fault.Invalid, err, "The evidence is signed with another key of the %s than the one that was given, and does not follow from that one: %s", k.whose, k.found).Because("other_key")
				}
			}
			p.print(account, func() {
				p.say("The evidence of %s is in order: %s, proven by a checkpoint of %s of %s, and %s.",
					line(account.ChangeID), count(account.Events, "event"), count(int(account.Covered), "event"), line(account.Origin), count(account.Receipts, "receipt"))
				p.say("signed by the gate %s and the executor %s", account.Gate, account.Executor)
				for _, w := range account.Witnesses {
					p.say("the witness %s had seen all of it on %s", line(w.Witness), when(w.At))
				}
				p.sayAccount(account)
			})
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&witnesses, "witness", nil, "the public key of a witness (name+id+key) that must have signed what proves it; may be given again")
	cmd.Flags().StringVar(&gate, "gate-key", "", "the public key of the gate in base64, as writ-gate key prints it")
	cmd.Flags().StringVar(&executor, "executor-key", "", "the public key of the executor in base64, as gate.yaml names it")
	return cmd
}

// count names a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// knownKey returns the id of a key in base64; "" for none.
func knownKey(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", err
	}
	return writ.KeyID(key), nil
}

func (p *program) explainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain ID|FILE.zip",
		Short: "Say in five sentences what became of a change, each with the records it rests on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			read := func() (map[string][]byte, error) { return p.evidenceOf(cmd.Context(), args[0]) }
			if strings.HasSuffix(args[0], ".zip") {
				read = func() (map[string][]byte, error) { return readZip(args[0]) }
			}
			files, err := read()
			if err != nil {
				return err
			}
			account, err := evidence.Verify(files)
			if err != nil {
				return err
			}
			p.print(account.Sentences, func() { p.sayAccount(account) })
			return nil
		},
		ValidArgsFunction: p.completeChange,
	}
}

func (p *program) sayAccount(account *evidence.Account) {
	for _, s := range account.Sentences {
		p.say("%s", line(s.Text))
		p.say("    from: %s", line(strings.Join(s.Records, ", ")))
	}
}

// evidenceOf asks the gate for the evidence of a change.
func (p *program) evidenceOf(ctx context.Context, id string) (map[string][]byte, error) {
	g, err := p.gate(looking)
	if err != nil {
		return nil, err
	}
	e, err := g.Evidence(ctx, id)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range e.Files {
		files[f.Name] = f.Content
	}
	return files, nil
}

// writeZip writes files into a new archive, in the order of their names.
func writeZip(path string, files map[string][]byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fault.Wrap(fault.Conflict, err, "%s cannot be made. Name a file that does not exist yet with -o.", path)
	}
	z := zip.NewWriter(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, wrong := z.Create(name)
		if wrong == nil {
			_, wrong = w.Write(files[name])
		}
		err = errors.Join(err, wrong)
	}
	if err = errors.Join(err, z.Close(), f.Sync(), f.Close()); err != nil {
		return errors.Join(fault.Wrap(fault.Unavailable, err, "%s cannot be written. Check the disk.", path), os.Remove(path))
	}
	return nil
}

// maxEvidence bounds what is taken out of an archive, in bytes and in files.
const (
	maxEvidence      = 256 << 20
	maxEvidenceFiles = 4096
)

// readZip reads an archive. It writes nothing to the disk, so that no name in it matters.
func readZip(path string) (map[string][]byte, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, err, "%s is no archive that can be read.", path)
	}
	defer z.Close()
	files, left := map[string][]byte{}, int64(maxEvidence)
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%s is damaged.", path)
		}
		content, err := io.ReadAll(io.LimitReader(r, left+1))
		left -= int64(len(content))
		_, twice := files[f.Name]
		if err = errors.Join(err, r.Close()); err != nil || left < 0 || twice || len(files) == maxEvidenceFiles {
			return nil, fault.Wrap(fault.Invalid, err, "%s is damaged, too large, or has a name twice.", path)
		}
		files[f.Name] = content
	}
	return files, nil
}
