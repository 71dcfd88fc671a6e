package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"writ/disk"
	"writ/executor/internal/backup"
	"writ/executor/internal/config"
	"writ/executor/internal/datadir"
	"writ/executor/internal/journal"
	"writ/executor/internal/vault"
	"writ/fault"
	"writ/ledger"
	"writ/sys"
)

// finding is one check of doctor.
type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Fix  string `json:"fix"` // the command that mends it; "" if none is known
}

func doctorCommand(dir *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the data directory and the running executor; say what is wrong and what mends it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := examine(cmd.Context(), *dir)
			healthy := true
			for _, f := range findings {
				healthy = healthy && f.OK
			}
			if asJSON {
				if err := printJSON(cmd.OutOrStdout(), findings); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					word := "ok  "
					if !f.OK {
						word = "FAIL"
					}
					fmt.Fprintf(cmd.OutOrStdout(), "%s  %-9s  %s\n", word, f.Name, f.Text)
				}
			}
			if !healthy {
				return &fault.Error{Code: fault.Internal} // exit status 1; what is wrong is said
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// examine runs the checks that can be run. What rests on something broken is left out.
func examine(ctx context.Context, dir string) (findings []finding) {
	add := func(name string, err error, good string) bool {
		f := finding{Name: name, OK: err == nil, Text: good}
		if err != nil {
			f.Text = fault.TextOf(err)
			_, f.Fix, _ = strings.Cut(f.Text, "Run: ")
		}
		findings = append(findings, f)
		return err == nil
	}
	c, err := config.Load(dir)
	if !add("config", err, "executor.yaml is valid, and nobody else can enter the directory") {
		return findings
	}
	if !add("disk", disk.Sound(c.Dir), "the disk takes what is written, and is a local one") {
		return findings
	}
	key, err := readKey(c.Path(config.KeyFile))
	if add("key", err, "") {
		public, _ := key.Public().(ed25519.PublicKey)
		findings[len(findings)-1].Text = "the key of the executor is private; its public half is " + base64.StdEncoding.EncodeToString(public)
	}
	if _, err = datadir.Read(c.Path(config.HashKeyFile)); fault.CodeOf(err) == fault.NotFound {
		err = nil // it is made at the next start
	}
	add("hashes", err, "the key of the hashes in the places of secrets is private")
	if _, err := os.Lstat(c.Path(config.NextKeyFile)); err == nil {
		add("next key", fault.New(fault.Unavailable, "A change of the key was cut off. Stop the executor and end it. Run: writ-executor rotate-key --dir %s", c.Dir), "")
	}
	add("gate", missing(len(c.GateKeys), "No gate is trusted, so every writ is refused. Run: writ-executor set-gate-key KEY --dir "+c.Dir), "a gate is trusted")
	add("approvers", missing(len(c.Approvers), "Nobody may approve, so nothing is written. Run: writ-executor add-approver NAME --dir "+c.Dir), "somebody may approve")
	actions, err := loadCatalog(c)
	if add("catalog", err, "") {
		findings[len(findings)-1].Text = fmt.Sprintf("%d actions are loaded", len(actions.Names()))
	}
	add("vault", checkVault(c), "the vault opens with its key")
	j, err := journal.Open(ctx, c.Path(config.JournalFile), sys.Real(nil))
	room := error(nil)
	if err == nil {
		room, err = j.Look(), j.Close()
	}
	if add("journal", err, "the journal is whole and private") {
		add("ready", room, "there is room for what comes of a write, and the clock is not behind what was written")
	}
	if add("audit", verifyAudit(c), "") {
		findings[len(findings)-1].Text = "the executor's audit is in order, as far as it goes"
	}
	if err = backup.New(c.Path(c.Backups), c.Executor).Check(); err == nil {
		err = disk.Room(c.Path(c.Backups), 1)
	}
	add("backups", err, "the directory for backups is private, and its disk takes more")
	status, err := tell(ctx, c, "/status", nil)
	if err == nil && status.Closed != "" {
		err = fault.New(fault.Unavailable, "%s", status.Closed)
	}
	if err == nil && status.Locked {
		err = fault.New(fault.Unavailable, "The vault is locked. Run: writ-executor vault unlock --dir %s", c.Dir)
	}
	add("running", err, "the executor is running and takes writs")
	if status.Executor != "" && actions != nil {
		err = nil
		if digest(actions) != status.Catalog {
			err = fault.New(fault.Conflict, "The catalog or its settings.yaml was changed after the executor read it. Stop both processes and start them again. Run: writ up")
		}
		add("current", err, "the executor uses the catalog as it is on the disk")
	}
	return findings
}

// verifyAudit reads the executor's audit as a stranger would.
func verifyAudit(c *config.Config) error {
	dir := c.Path(config.AuditDir)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // the executor was never started
	}
	if err := ledger.Private(dir); err != nil {
		return err
	}
	if _, err := ledger.Verify(dir, ledger.Against{}); err != nil {
		return fault.Wrap(fault.CodeOf(err), err, "The executor's audit %s is not in order. %s Put it back from its copy, and find out who changed it. Run: writ audit verify %s",
			dir, fault.TextOf(err), dir)
	}
	return nil
}

func missing(n int, text string) error {
	if n > 0 {
		return nil
	}
	return fault.New(fault.Invalid, "%s", text)
}

// checkVault opens the vault if that needs no passphrase.
func checkVault(c *config.Config) error {
	config := vaultConfig(c)
	if !config.Passphrase {
		return vault.New(config).Unlock("")
	}
	_, err1 := datadir.Read(config.File)
	_, err2 := datadir.Read(config.KeyFile)
	return errors.Join(err1, err2)
}
