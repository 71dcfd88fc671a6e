package cli

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"writ/client"
	"writ/ctl/internal/connect"
	"writ/fault"
)

// connection is what "writ connect" answers.
type connection struct {
	Client string           `json:"client"`
	Gate   string           `json:"gate"`   // what it answered when it was asked with the token
	Files  []connectionFile `json:"files"`  // what belongs where
	Notes  []string         `json:"notes"`  // what the operator should know
	Locked bool             `json:"locked"` // the agent's own shell and editor are taken away
}

type connectionFile struct {
	Path    string `json:"path"` // "" if the client keeps it elsewhere
	Text    string `json:"text"` // what belongs in it
	Written bool   `json:"written"`
}

func (p *program) connectCommand() *cobra.Command {
	var write, lockdown, user bool
	var tokenFile, address, ca, url string
	var names []string
	for _, c := range connect.Clients() {
		names = append(names, c.Name)
	}
	cmd := &cobra.Command{
		Use:   "connect CLIENT",
		Short: "Configure an agent's client to ask here, and to do nothing else",
		Long: `Print the configuration that makes an agent's client ask writ for every change, or, with
--write, merge it into the client's file. The clients: ` + strings.Join(names, ", ") + `.

The client starts "writ mcp", which reads the token from a file: no secret lies in the
configuration. An agent's own shell and editor go past every gate. --lockdown adds the
client's rules that take them away, as far as the client has such rules; run the client
as a user of its own as well, which can read the agent's token and no other.

Files are those of the current directory, where the agent works; with --user, those for
all that the user does. A file that --write changes is kept as NAME.before-writ.`,
		Example: `  writ connect opencode
  writ connect claude-code --lockdown --write
  writ connect open-webui --url http://127.0.0.1:8787`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := connect.Find(args[0])
			if err != nil {
				return err
			}
			a, err := p.agent(cmp.Or(tokenFile, p.env["WRIT_TOKEN_FILE"]), cmp.Or(address, p.env["WRIT_GATE"]), cmp.Or(ca, p.env["WRIT_CA"]))
			if err != nil {
				return err
			}
			place, err := p.place(user)
			if err != nil {
				return err
			}
			server, err := serverOf(a, url)
			if err != nil {
				return err
			}
			files, err := c.Files(place, server, lockdown)
			if err != nil {
				return err
			}
			made := connection{Client: c.Name, Notes: append([]string{}, c.Notes...), Locked: lockdown}
			if !lockdown {
				made.Notes = append(made.Notes, unlocked(c))
			}
			if made.Gate, err = p.answers(cmd, a); err != nil {
				return err
			}
			if made.Files, err = texts(files); err == nil && write {
				err = merge(files, made.Files)
			}
			if err != nil {
				return err
			}
			p.print(made, func() { p.sayConnection(c, made, write) })
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&write, "write", false, "merge it into the client's files")
	f.BoolVar(&lockdown, "lockdown", false, "take the agent's own shell and editor away as well")
	f.BoolVar(&user, "user", false, "for all that the user does, not only in this directory")
	f.StringVar(&tokenFile, "token-file", "", "file of the agent's token")
	f.StringVar(&address, "gate", "", "socket of the gate, or its address")
	f.StringVar(&ca, "ca", "", "file of the authority of the gate's certificate")
	f.StringVar(&url, "url", "", "of the gate, for a client that starts no command")
	return cmd
}

// place is where the client's files are.
func (p *program) place(user bool) (connect.Place, error) {
	dir, err := os.Getwd()
	if err != nil {
		return connect.Place{}, fault.Wrap(fault.Unavailable, err, "The current directory cannot be found.")
	}
	place := connect.Place{Dir: dir, Have: func(path string) bool { _, err := os.Stat(path); return err == nil }}
	if user {
		if place.Home = p.env["HOME"]; !filepath.IsAbs(place.Home) {
			return connect.Place{}, fault.New(fault.Invalid, "$HOME names no directory, so the user's files cannot be found.")
		}
	}
	return place, nil
}

// serverOf is how the client reaches the gate, by paths that hold wherever it starts.
func serverOf(a agent, url string) (connect.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return connect.Server{}, fault.Wrap(fault.Unavailable, err, "The path of this program cannot be found.")
	}
	file, err := filepath.Abs(a.file)
	if err != nil {
		return connect.Server{}, fault.Wrap(fault.Unavailable, err, "The current directory cannot be found.")
	}
	command := []string{self, "mcp", "--token-file", file, "--gate", a.gate}
	if a.ca != "" {
		ca, err := filepath.Abs(a.ca)
		if err != nil {
			return connect.Server{}, fault.Wrap(fault.Unavailable, err, "The current directory cannot be found.")
		}
		command = append(command, "--ca", ca)
	}
	return connect.Server{
		Command: command,
		URL:     url, Token: file, Private: filepath.Dir(file),
	}, nil
}

// answers asks the gate with the agent's token, so that a wrong one is found here
// and not by the agent. A gate that does not run now is no mistake.
func (p *program) answers(cmd *cobra.Command, a agent) (string, error) {
	g, err := client.NewTrusting(a.gate, a.token, a.ca)
	if err != nil {
		return "", err
	}
	actions, err := g.Actions(cmd.Context())
	switch {
	case fault.CodeOf(err) == fault.Unavailable:
		return "The gate does not run now, so the token was not tried. Start it: writ up", nil
	case err != nil:
		return "", err
	case len(actions.Actions) == 0:
		return "The gate takes the token. No action is enabled yet.", nil
	}
	return "The gate takes the token.", nil
}

// unlocked says what an agent can still do.
func unlocked(c connect.Client) string {
	if c.Unlocked != "" {
		return "The agent's own tools are not taken away: " + c.Unlocked
	}
	return "The agent keeps its own shell and editor, which go past every gate. Take them away: --lockdown"
}

func texts(files []connect.File) (out []connectionFile, err error) {
	for _, f := range files {
		text, err := f.Text()
		if err != nil {
			return nil, err
		}
		out = append(out, connectionFile{Path: f.Path, Text: string(text)})
	}
	return out, nil
}

// merge writes all files, or none if one cannot be.
func merge(files []connect.File, said []connectionFile) error {
	olds, news := make([][]byte, len(files)), make([][]byte, len(files))
	for i, f := range files {
		if f.Path == "" {
			return fault.New(fault.Refused, "This client has no file to write to. Leave --write out, and put what is printed where it says.").Because("no_file")
		}
		old, err := os.ReadFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "%s cannot be read. Check its owner.", f.Path)
		}
		olds[i] = old
		if news[i], err = f.Merge(old); err != nil {
			return err
		}
	}
	for i, f := range files {
		if string(olds[i]) != string(news[i]) {
			if err := replace(f.Path, olds[i], news[i]); err != nil {
				return err
			}
		}
		said[i].Written = true
	}
	return nil
}

// replace puts a new text in a file's place, whole or not at all. What was there
// is kept beside it the first time.
func replace(path string, old, text []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if _, missing := os.Lstat(path + ".before-writ"); err == nil && old != nil && missing != nil {
		err = create(path+".before-writ", string(old))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "What was in %s cannot be kept, so nothing was written.", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".writ-*")
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written. Check the owner of the directory.", path)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is gone, or it does no harm
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written. It is as it was.", path)
	}
	return nil
}

func (p *program) sayConnection(c connect.Client, made connection, write bool) {
	for _, f := range made.Files {
		switch {
		case f.Written:
			p.say("%s asks here: %s is written.", c.Title, plain(f.Path))
			continue
		case f.Path != "":
			p.say("In %s:", plain(f.Path))
		}
		p.say("\n%s", jsonText(f.Text))
	}
	if !write && len(made.Files) > 0 && made.Files[0].Path != "" {
		p.say("Nothing was written; --write merges it into what is there.")
	}
	p.say("%s", made.Gate)
	for _, note := range made.Notes {
		p.say("%s", note)
	}
}
