package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/auth"
	"writ/gate/internal/config"
	"writ/gate/internal/policy"
	"writ/ledger"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the gate's directory and say what is wrong and what mends it",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			checks := p.doctor()
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
func (p *program) doctor() []api.HealthCheck {
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
	_, err = readKey(filepath.Join(dir, config.KeyFile))
	check("key", "the key that signs writs can be read", err)
	people := filepath.Join(dir, config.PrincipalsFile)
	if err = checkFile(people); err == nil {
		_, err = auth.Open(people)
	}
	check("principals", "who may call is known", err)
	if err = checkFile(filepath.Join(dir, config.File)); err != nil {
		check("config", "", err)
		return checks
	}
	c, err := config.Load(dir)
	if !check("config", "gate.yaml is valid", err) {
		return checks
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
	text, err := verifyAudit(c)
	check("audit", text, err)
	return checks
}

// verifyAudit reads the audit as a stranger would, and compares it with the
// copy of its checkpoint, if that lies in a file.
func verifyAudit(c *config.Config) (string, error) {
	var against ledger.Against
	if path := c.Checkpoint.Path; path != "" {
		kept, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.Unavailable, err, "The copy of the checkpoint, %s, cannot be read.", path)
		}
		if against.Checkpoint = kept; err != nil {
			return "", fault.Wrap(fault.Unavailable, err, "There is no copy of the checkpoint at %s. Start the gate once, and see that it can write there.", path)
		}
	}
	if _, err := os.Lstat(c.Audit); errors.Is(err, fs.ErrNotExist) && against.Checkpoint == nil {
		return "there is no event yet", nil
	}
	report, err := ledger.Verify(c.Audit, against)
	if err != nil {
		return "", fault.Wrap(fault.CodeOf(err), err, "The audit %s is not in order. %s", c.Audit, fault.TextOf(err)).Because(fault.ReasonOf(err))
	}
	return report.String(), nil
}
