package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ/e2e/fakes"
)

// limit is how long the demo may take; it needs a few seconds.
const limit = 2 * time.Minute

func run(ctx context.Context, args []string, out io.Writer) (exit int) {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	bin := flags.String("bin", "bin", "the directory of the built programs")
	keep := flags.Bool("keep", false, "leave everything running until it is interrupted")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	dir, err := os.MkdirTemp("", "writ-demo-")
	if err == nil {
		*bin, err = filepath.Abs(*bin)
	}
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	s := &stage{out: out, bin: *bin, dir: dir, world: fakes.Start()}
	defer func() {
		s.stop()
		s.world.Close()
		if exit == 0 {
			_ = os.RemoveAll(dir)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(broken)
			if !ok {
				panic(p)
			}
			fmt.Fprintf(out, "\nBROKEN: %s\nThe files are left in %s.\n", b.text, dir)
			exit = 1
		}
	}()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.play(limited)
	if *keep {
		fmt.Fprintf(out, "\nEverything keeps running in %s until you press Ctrl-C.\nIn another terminal:  export WRIT_DIR=%s PATH=%s:$PATH\n", dir, dir, s.bin)
		<-ctx.Done()
	}
	return 0
}

func (s *stage) play(ctx context.Context) {
	fmt.Fprint(s.out, "writ: no write without a writ. One change, from request to receipt and back.\n")
	s.setUp(ctx)
	change := s.ask(ctx)
	s.approve(ctx, change)
	s.goBack(ctx, change)
	s.refuse(ctx)
	s.prove(ctx)
	s.farewell()
}

func (s *stage) setUp(ctx context.Context) {
	s.scene("Set up: two programs, and three systems to act on")
	s.say("The gate decides and holds no credential. The executor holds the credentials\nand does only what a writ says. They get separate directories, keys and environments.")
	s.show(ctx, 0, "init", "--approver", "ada")
	w := s.world
	s.connect(ctx, "proxmox", "base_url="+w.ProxmoxURL, "token_id="+fakes.ProxmoxTokenID, "token="+fakes.ProxmoxSecret)
	s.connect(ctx, "netbox", "base_url="+w.NetBoxURL+"/api", "token="+fakes.NetBoxToken)
	s.connect(ctx, "npm", "base_url="+w.NPMURL+"/api", "identity="+fakes.NPMEmail, "secret="+fakes.NPMSecret)
	s.settings("proxmox.set_lxc_description:\n  writable_vmids: [121]\n")
	s.start(ctx)
	s.show(ctx, 0, "doctor")
}

// connect adds a system as an operator's script would: what is asked for comes
// on standard input, so that no secret stands in a list of processes.
func (s *stage) connect(ctx context.Context, kind string, answers ...string) {
	out, exit := s.quiet(ctx, strings.Join(answers, "\n")+"\n", "systems", "add", kind, "--environment", "demo", "--trust-first-fingerprint")
	must(exit == 0, "the system %s was not connected:\n%s", kind, out)
	fmt.Fprintf(s.out, "    connected %s\n", kind)
}

// settings writes the operator's own values.
func (s *stage) settings(text string) {
	err := os.WriteFile(filepath.Join(s.dir, "catalog", "settings.yaml"), []byte(text), 0o600)
	must(err == nil, "the settings were not written: %v", err)
}

const wanted = "Documentation server, kept by writ"

func (s *stage) ask(ctx context.Context) string {
	s.scene("An agent asks")
	s.say("It names an action of the catalog and typed values, nothing else. The executor\nreads the container, so that the preview shows the real difference. Exit status 4\nsays: this waits for a human.")
	s.show(ctx, 4, "propose", "proxmox.set_lxc_description", "node=pve", "vmid=121", "description="+wanted,
		"--purpose", "The inventory should say what this container is for.")
	must(len(s.world.Proxmox.Writes()) == 0, "something was written before anybody approved")
	list := s.object(ctx, "list", "--as", "ada")
	changes, _ := list["changes"].([]any)
	must(len(changes) == 1, "there should be one change, there are %d", len(changes))
	newest, _ := changes[0].(map[string]any)
	id, _ := newest["id"].(string)
	return id
}

func (s *stage) approve(ctx context.Context, id string) {
	s.scene("A human reads it and approves exactly that")
	s.say("The executor now exports the configuration, checks that copy, looks whether the\ncontainer still is as it was previewed, writes once, and reads it back.")
	s.show(ctx, 0, "approve", id, "--yes")
	must(len(s.world.Proxmox.Writes()) == 1, "there should have been one write, there were %d", len(s.world.Proxmox.Writes()))
	must(s.described(wanted), "the container has not got its description")
	s.show(ctx, 0, "show", id)
	s.say("Everything that happened is in the audit file, one line an event, each linked\nto the one before.")
	s.show(ctx, 0, "audit", "tail", "--change", id)
}

func (s *stage) goBack(ctx context.Context, id string) {
	s.scene("The way back is a change like any other")
	s.say("It was made from the backup, and needs an approval of its own.")
	s.show(ctx, 4, "rollback", id)
	list := s.object(ctx, "list", "--as", "ada")
	changes, _ := list["changes"].([]any)
	must(len(changes) == 2, "there should be two changes, there are %d", len(changes))
	newest, _ := changes[0].(map[string]any)
	undo, _ := newest["id"].(string)
	s.show(ctx, 0, "approve", undo, "--yes")
	must(len(s.world.Proxmox.Writes()) == 2, "the rollback should have been one write")
	must(s.described(""), "the container still has a description")
}

func (s *stage) described(text string) bool {
	config := s.world.Proxmox.ConfigText(121)
	if text == "" {
		return config != "" && !strings.Contains(config, "#")
	}
	return strings.Contains(config, text)
}

func (s *stage) refuse(ctx context.Context) {
	s.scene("What it refuses")
	before := len(s.world.Proxmox.Writes())
	s.say("A container that the operator did not list:")
	s.show(ctx, 3, "propose", "proxmox.set_lxc_description", "node=pve", "vmid=122", "description=mine now")
	s.say("An action that is forbidden, whoever asks and whoever would approve:")
	s.show(ctx, 3, "propose", "proxmox.destroy_guest", "node=pve", "vmid=121")
	s.say("An agent that tries to approve its own request:")
	list := s.object(ctx, "propose", "mock.noop_change", "value=please")
	id, _ := list["id"].(string)
	s.show(ctx, 3, "approve", id, "--yes", "--as", "agent")
	must(len(s.world.Proxmox.Writes()) == before, "something refused was written all the same")
}

// prove looks for what must not be there.
func (s *stage) prove(ctx context.Context) {
	s.scene("What can be checked afterwards")
	s.show(ctx, 0, "audit", "verify")
	for _, part := range []string{"gate", "catalog", "tokens"} {
		err := filepath.WalkDir(filepath.Join(s.dir, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			for _, secret := range fakes.Secrets() {
				if bytes.Contains(data, []byte(secret)) {
					return errors.Join(err, fmt.Errorf("%s holds a credential", path))
				}
			}
			return err
		})
		must(err == nil, "%v", err)
	}
	fmt.Fprint(s.out, "    looked through all files of the gate: no credential in them\n")
}

func (s *stage) farewell() {
	fmt.Fprint(s.out, `
Every promise held. To go on by yourself, in an empty directory:

  export PATH=`+s.bin+`:$PATH
  writ init                     # configuration, keys, tokens, a starting policy
  writ up                       # both programs; then, in another terminal:
  writ actions                  # what can be asked for
  writ propose mock.noop_change value=hello
  writ systems add proxmox      # connect a real system

or let this one run and look around:  make demo KEEP=1
`)
}
