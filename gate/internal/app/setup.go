package app

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"writ"
	"writ/fault"
	"writ/gate/internal/config"
	"writ/policies"
)

// keyInfo is the public half of the key that signs writs.
type keyInfo struct {
	PublicKey string `json:"public_key"`
	KeyID     string `json:"key_id"`
}

func (p *program) keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key",
		Short: "Print the public key that executors must trust, made if there is none",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := makeDir(p.dir)
			if err != nil {
				return err
			}
			path := filepath.Join(dir, config.KeyFile)
			key, err := readKey(path)
			if errors.Is(err, fs.ErrNotExist) {
				key, err = p.newKey(path, create)
			}
			if err != nil {
				return err
			}
			public, ok := key.Public().(ed25519.PublicKey)
			if !ok {
				return fault.New(fault.Internal, "The key has no public half.")
			}
			return p.print(keyInfo{base64.StdEncoding.EncodeToString(public), writ.KeyID(public)})
		},
	}
}

func (p *program) newKey(path string, write func(string, []byte) error) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(p.sys.Rand)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The key could not be made.")
	}
	return key, write(path, []byte(base64.StdEncoding.EncodeToString(key.Seed())+"\n"))
}

func readKey(path string) (ed25519.PrivateKey, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read.", path)
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not a key: it holds 32 bytes in base64.", path)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

func (p *program) initCommand() *cobra.Command {
	var c config.Config
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the gate's directory: gate.yaml and a starting policy, or the one that is missing",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := makeDir(p.dir)
			if err != nil {
				return err
			}
			there := create(filepath.Join(dir, config.File), []byte(config.Example(c)))
			if there != nil && !errors.Is(there, fs.ErrExist) {
				return there
			}
			if err := create(filepath.Join(dir, "policy.yaml"), policies.ApproveMost); err != nil && (there != nil || !errors.Is(err, fs.ErrExist)) {
				return err
			}
			_, err = config.Load(dir)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Listen.Socket, "socket", "gate.sock", "where the gate answers")
	f.StringVar(&c.Executor.Name, "executor", "", "name of the executor")
	f.StringVar(&c.Executor.Socket, "executor-socket", "", "where the executor answers")
	f.StringVar(&c.Executor.Key, "executor-key", "", "public key of the executor")
	f.StringVar(&c.Catalog, "catalog", "", "directory of the actions (the shipped ones, if left out)")
	return cmd
}
