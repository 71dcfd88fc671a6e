package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"writ/connector"
	"writ/connector/http"
	"writ/executor/internal/config"
	"writ/executor/internal/run"
	"writ/executor/internal/vault"
	"writ/fault"
	"writ/sys"
)

func systemsCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{Use: "systems", Short: "The systems that may be acted on"}
	cmd.AddCommand(
		systemsAddCommand(dir),
		&cobra.Command{
			Use:   "list",
			Short: "The configured systems",
			Args:  cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				c, err := config.Load(*dir)
				if err != nil {
					return err
				}
				w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				for _, s := range c.Systems {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, s.Kind, s.Environment, s.BaseURL)
				}
				return w.Flush()
			},
		},
		&cobra.Command{
			Use:   "test NAME",
			Short: "Read something harmless from a system and name what is missing",
			Args:  cobra.ExactArgs(1),
			RunE:  func(cmd *cobra.Command, args []string) error { return testSystem(cmd, *dir, args[0]) },
		},
		&cobra.Command{
			Use:   "remove NAME",
			Short: "Forget a system and its secrets",
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return edit(cmd.Context(), *dir, func(c *config.Config) error { return removeSystem(cmd, c, args[0]) })
			},
		},
	)
	return cmd
}

// adding is what "systems add" is told.
type adding struct {
	cmd         *cobra.Command
	set         map[string]string
	endpoints   map[string]string
	environment string
	pin         string
	trustFirst  bool
}

func systemsAddCommand(dir *string) *cobra.Command {
	a := &adding{}
	cmd := &cobra.Command{
		Use:   "add KIND [NAME]",
		Short: "Configure a system; asks for what its kind needs, or reads key=value lines from standard input",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cmd = cmd
			return edit(cmd.Context(), *dir, func(c *config.Config) error { return a.add(c, args[0], args[len(args)-1]) })
		},
	}
	cmd.Flags().StringToStringVar(&a.set, "set", nil, "key=value of something that is no secret")
	cmd.Flags().StringToStringVar(&a.endpoints, "endpoint", nil, "name=address of a further address, read without credentials")
	cmd.Flags().StringVar(&a.environment, "environment", "", "where the system stands, e.g. lab or production")
	cmd.Flags().StringVar(&a.pin, "pin", "", "SHA-256 of the certificate that the system must show")
	cmd.Flags().BoolVar(&a.trustFirst, "trust-first-fingerprint", false, "pin whatever certificate the system shows now")
	cmd.MarkFlagsMutuallyExclusive("pin", "trust-first-fingerprint")
	return cmd
}

// environmentNeed is asked of every kind.
const environmentNeed = "environment"

func (a *adding) add(c *config.Config, kind, name string) error {
	if _, taken := c.System(name); taken {
		return fault.New(fault.Conflict, "There is already a system %s. Remove it first, or give another name.", name)
	}
	v := vault.New(vaultConfig(c))
	all := newSystems(sys.Real(slog.New(slog.DiscardHandler)), v)
	driver, err := all.driver(kind)
	if err != nil {
		return err
	}
	given, err := a.answers(driver.Needs())
	if err != nil {
		return err
	}
	system := config.System{Name: name, Kind: kind, Environment: given[environmentNeed], BaseURL: given[http.BaseURL],
		Endpoints: map[string]string{}, Options: map[string]string{}, Secrets: map[string]string{}}
	maps.Copy(system.Endpoints, a.endpoints)
	secrets := map[string]string{}
	for _, n := range driver.Needs() {
		switch value := given[n.Name]; {
		case value == "" || n.Name == http.BaseURL:
		case n.Endpoint:
			system.Endpoints[n.Name] = value
		case n.Secret:
			system.Secrets[n.Name] = name + "." + n.Name
			secrets[name+"."+n.Name] = value
		default:
			system.Options[n.Name] = value
		}
	}
	if strings.HasPrefix(system.BaseURL, "https://") {
		if system.TLSPin, err = a.fingerprint(system.BaseURL); err != nil {
			return err
		}
	}
	c.Systems = append(c.Systems, system)
	if err := c.Check(); err != nil {
		return err
	}
	if err := closed(all.dial(system)); err != nil {
		return err
	}
	return store(a.cmd, c, secrets)
}

// closed closes a system that was only opened to see that it can be.
func closed(s run.System, err error) error {
	if err != nil {
		return err
	}
	return s.Target.Close()
}

// answers collects what the needs are answered with, by name.
func (a *adding) answers(needs []connector.Need) (map[string]string, error) {
	needs = append([]connector.Need{{Name: environmentNeed, Prompt: "Environment, e.g. lab or production"}}, needs...)
	given := map[string]string{}
	for k, v := range a.set {
		i := slices.IndexFunc(needs, func(n connector.Need) bool { return n.Name == k })
		if i < 0 || needs[i].Secret {
			return nil, fault.New(fault.Invalid, "--set %s: this kind of system has no such setting that is no secret.", k)
		}
		given[k] = v
	}
	if a.environment != "" {
		given[environmentNeed] = a.environment
	}
	if _, ok := terminal(a.cmd); ok {
		if err := a.askAll(needs, given); err != nil {
			return nil, err
		}
	} else if err := readAll(a.cmd.InOrStdin(), needs, given); err != nil {
		return nil, err
	}
	for _, n := range needs {
		if given[n.Name] == "" {
			given[n.Name] = n.Default
		}
		if given[n.Name] == "" && !n.Option {
			return nil, fault.New(fault.Invalid, "%s is missing: %s. Give it on standard input as a line %s=…", n.Name, n.Prompt, n.Name)
		}
		given[n.Name] = completed(given[n.Name], n.Path)
	}
	return given, nil
}

// completed adds to an address that has no path of its own the one where such a
// system has its API, which people need not know.
func completed(given, path string) string {
	u, err := url.Parse(given)
	if path == "" || err != nil || u.Host == "" || strings.Trim(u.Path, "/") != "" {
		return given
	}
	return strings.TrimSuffix(given, "/") + path
}

func (a *adding) askAll(needs []connector.Need, given map[string]string) error {
	in := bufio.NewReader(a.cmd.InOrStdin())
	for _, n := range needs {
		if _, ok := given[n.Name]; ok {
			continue
		}
		var err error
		if n.Secret {
			given[n.Name], err = askSecret(a.cmd, n.Prompt)
		} else {
			given[n.Name], err = ask(a.cmd, in, n.Prompt, n.Default)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readAll reads key=value lines.
func readAll(in io.Reader, needs []connector.Need, given map[string]string) error {
	text, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "Standard input could not be read.")
	}
	var names []string
	for _, n := range needs {
		names = append(names, n.Name)
	}
	for number, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !slices.Contains(names, key) {
			// The line may be a secret: it is not repeated.
			return fault.New(fault.Invalid, "Line %d of standard input is not key=value with a key that this kind of system has: %s.", number+1, strings.Join(names, ", "))
		}
		given[key] = value
	}
	return nil
}

// fingerprint returns the certificate to pin, "" for none.
func (a *adding) fingerprint(address string) (string, error) {
	seen, subject, vouched, err := http.Fingerprint(a.cmd.Context(), address)
	if err != nil {
		return "", err
	}
	if want := strings.ToLower(strings.ReplaceAll(a.pin, ":", "")); want != "" {
		if want != seen {
			return "", fault.New(fault.Refused, "The system shows another certificate than --pin says: %s (%s).", seen, subject).Because("wrong_pin")
		}
		return seen, nil
	}
	if a.trustFirst {
		fmt.Fprintf(a.cmd.ErrOrStderr(), "Pinned the certificate %s (%s).\n", seen, subject)
		return seen, nil
	}
	by := "No certificate authority of this machine vouches for it."
	if vouched {
		by = "A certificate authority of this machine vouches for it."
	}
	if _, ok := terminal(a.cmd); !ok {
		return "", fault.New(fault.Invalid, "The system shows the certificate %s (%s). %s Compare it at the system, then give --pin %s", seen, subject, by, seen)
	}
	fmt.Fprintf(a.cmd.ErrOrStderr(), "The system shows the certificate\n  SHA-256 %s\n  %s\n%s\n", seen, subject, by)
	answer, err := ask(a.cmd, bufio.NewReader(a.cmd.InOrStdin()), "Is it the right one? Then only this one is accepted from now on (yes/no)", "no")
	switch {
	case err != nil:
		return "", err
	case answer == "yes", answer == "y":
		return seen, nil
	}
	return "", fault.New(fault.Canceled, "Nothing was configured, because the certificate was not confirmed.")
}

func testSystem(cmd *cobra.Command, dir, name string) error {
	c, err := config.Load(dir)
	if err != nil {
		return err
	}
	configured, ok := c.System(name)
	if !ok {
		return fault.New(fault.NotFound, "There is no system %s. See which there are: writ systems list", name)
	}
	v, err := openVault(cmd, c)
	if err != nil {
		return err
	}
	system, err := newSystems(sys.Real(slog.New(slog.DiscardHandler)), v).dial(configured)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	findings, err := system.Target.Check(ctx)
	if e, ok := errors.AsType[*connector.Error](err); ok {
		findings, err = append(findings, e.Text), nil
	}
	if err := errors.Join(err, system.Target.Close()); err != nil {
		return err
	}
	key, err := hashKey(c)
	if err != nil {
		return err
	}
	hide := hiding(key, v)
	for _, f := range findings {
		fmt.Fprintln(cmd.OutOrStdout(), hide.String(f))
	}
	if len(findings) > 0 {
		return &fault.Error{Code: fault.Internal} // exit status 1; what is wrong is said
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s answers.\n", name)
	return nil
}

func removeSystem(cmd *cobra.Command, c *config.Config, name string) error {
	system, ok := c.System(name)
	if !ok {
		return fault.New(fault.NotFound, "There is no system %s. See which there are: writ systems list", name)
	}
	c.Systems = slices.DeleteFunc(c.Systems, func(s config.System) bool { return s.Name == name })
	var unused []string
	for _, secret := range system.Secrets {
		if !slices.ContainsFunc(c.Systems, func(s config.System) bool { return uses(s, secret) }) {
			unused = append(unused, secret)
		}
	}
	if len(unused) == 0 {
		return nil
	}
	v, err := openVault(cmd, c)
	if err != nil {
		return err
	}
	return v.Remove(unused...)
}

func uses(s config.System, secret string) bool {
	for _, name := range s.Secrets {
		if name == secret {
			return true
		}
	}
	return false
}
