package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/audit"
	"writ/gate/internal/auth"
	"writ/gate/internal/config"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the gate's directory and say what is wrong and what mends it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := p.doctor(cmd.Context())
			if asJSON {
				return p.print(checks)
			}
			var bad error
			for _, c := range checks {
				word := "ok  "
				if !c.OK {
					word, bad = "FAIL", fault.New(fault.Unavailable, "The gate's directory is not as it should be.")
				}
				fmt.Fprintf(p.stdout, "%s  %-10s  %s\n", word, c.Name, c.Text)
			}
			return bad
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// doctor looks at the directory, whether a gate runs in it or not.
func (p *program) doctor(ctx context.Context) []api.HealthCheck {
	var checks []api.HealthCheck
	check := func(name, good string, err error) bool {
		c := api.HealthCheck{Name: name, OK: err == nil, Text: good}
		if err != nil {
			c.Text = fault.TextOf(err)
			_, c.Fix, _ = strings.Cut(c.Text, "Run: ")
		}
		checks = append(checks, c)
		return err == nil
	}
	dir, err := filepath.Abs(p.dir)
	if err == nil {
		err = checkDir(dir)
	}
	if !check("directory", dir+" is its owner's alone", err) {
		return checks
	}
	if !check("disk", "the disk takes what is written, and is a local one", disk.Sound(dir)) {
		return checks
	}
	_, err = readKey(filepath.Join(dir, config.KeyFile))
	check("key", "the key that signs writs can be read", err)
	if _, err := os.Lstat(filepath.Join(dir, config.NextKeyFile)); err == nil {
		check("next key", "", fault.New(fault.Unavailable, "A change of the key was cut off. Stop the gate and end it. Run: writ-gate rotate-key --dir %s", dir))
	}
	people := filepath.Join(dir, config.PrincipalsFile)
	if err = checkFile(people); err == nil {
		_, err = auth.Open(p.sys, people)
	}
	if check("principals", "who may call is known", err) {
		check("tokens", "nobody is without a token that lasts another week", p.examineTokens(people))
	}
	if err = checkFile(filepath.Join(dir, config.File)); err != nil {
		check("config", "", err)
		return checks
	}
	c, err := config.Load(dir)
	if !check("config", "gate.yaml is valid", err) {
		return checks
	}
	var id string
	keys, err := p.executorKeys(c, nil)
	if err == nil {
		_, id = keys.All().Last()
	}
	check("executor key", "the executor is trusted by its key "+id, err)
	if c.Listen.TLS.Cert != "" {
		text, err := p.examineCertificate(c)
		check("certificate", text, err)
	}
	var rules *policy.Policy
	if err = checkFile(c.Policy); err == nil {
		rules, err = policy.Load(c.Policy)
	}
	if check("policy", "", err) {
		checks[len(checks)-1].Text = "the policy " + rules.Name() + " is valid and keeps its examples"
	}
	_, err = loadCatalog(c.Catalog)
	check("catalog", "the actions are valid and keep their examples", err)
	if err = disk.Sound(auditDisk(c)); err == nil {
		err = disk.Room(auditDisk(c), audit.Spare)
	}
	check("room", "the disk of the audit has room", err)
	text, events, err := verifyAudit(c)
	if check("audit", text, err) {
		check("memory", "the gate's memory is no older than its audit, and no newer than the clock", p.examineMemory(ctx, c, events))
	}
	return checks
}

// examineMemory compares the store of a gate that does not run with its audit. A
// running one did that when it started.
func (p *program) examineMemory(ctx context.Context, c *config.Config, events int64) error {
	dialer := net.Dialer{Timeout: time.Second}
	if conn, err := dialer.DialContext(ctx, "unix", c.Listen.Socket); err == nil {
		return conn.Close()
	}
	if _, err := os.Lstat(c.Path(config.StoreFile)); errors.Is(err, fs.ErrNotExist) && events == 0 {
		return nil
	}
	memory, err := sqlite.Open(ctx, c.Path(config.StoreFile))
	if err != nil {
		return err
	}
	held, err := memory.Exported(ctx)
	if err == nil && held > events {
		err = fault.New(fault.Unavailable, "The audit %s has %d events, and had %d. Put it back from its copy, and find out who removed what is missing. Run: writ audit verify %s", c.Audit, events, held, c.Audit)
	}
	ahead := false
	if err == nil {
		ahead, err = newer(ctx, memory, events)
	}
	if err == nil && !ahead {
		err = pipeline.New(pipeline.Config{Sys: p.sys, Store: memory}).OnTime(ctx)
	}
	if err = errors.Join(err, memory.Close()); err == nil && ahead {
		err = fault.New(fault.Unavailable, "The audit holds more events than the gate's memory, which was restored from an old copy. Restore a newer one, or else mend it. Run: writ recover")
	}
	return err
}

// auditDisk is a directory on the disk of the audit, which is made at the first
// start.
func auditDisk(c *config.Config) string {
	if _, err := os.Lstat(c.Audit); err != nil {
		return filepath.Dir(c.Audit)
	}
	return c.Audit
}

// verifyAudit reads the audit as a stranger would, and compares it with the
// copy of its checkpoint, if that lies in a file, and with what witnesses signed.
func verifyAudit(c *config.Config) (text string, events int64, err error) {
	var against ledger.Against
	if path := c.Checkpoint.Path; path != "" {
		kept, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", 0, fault.Wrap(fault.Unavailable, err, "The copy of the checkpoint, %s, cannot be read.", path)
		}
		if against.Checkpoint = kept; err != nil {
			return "", 0, fault.Wrap(fault.Unavailable, err, "There is no copy of the checkpoint at %s. Start the gate once, and see that it can write there.", path)
		}
	}
	if _, err := os.Lstat(c.Audit); errors.Is(err, fs.ErrNotExist) && against.Checkpoint == nil {
		return "there is no event yet", 0, nil
	}
	for _, w := range witnesses(c) {
		if _, err := w.Kept(c.Audit); fault.CodeOf(err) != fault.NotFound { // one that never signed is the running gate's to tell
			against.Witnesses = append(against.Witnesses, w.Witness)
		}
	}
	if err := ledger.Private(c.Audit); err != nil {
		return "", 0, err
	}
	report, err := ledger.Verify(c.Audit, against)
	if err != nil {
		return "", 0, fault.Wrap(fault.CodeOf(err), err, "The audit %s is not in order. %s Put it back from its copy, and find out who changed it. Run: writ audit verify %s",
			c.Audit, fault.TextOf(err), c.Audit).Because(fault.ReasonOf(err))
	}
	return report.String(), report.Events, nil
}
