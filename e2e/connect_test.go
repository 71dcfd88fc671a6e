package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"writ/e2e/fakes"
)

// connect installs writ and connects one system of each kind with the real
// commands; what the operator allows is what the world has.
func (s *script) connect(kinds []string) {
	s.run("", "writ", "init", s.dir)
	for _, kind := range kinds {
		w := s.world
		lines, flags := []string{"environment=lab"}, []string(nil)
		switch kind {
		case "proxmox":
			lines = append(lines, "base_url="+w.ProxmoxURL, "token_id="+fakes.ProxmoxTokenID, "token="+fakes.ProxmoxSecret)
			flags = append(flags, "--pin", w.ProxmoxPin)
		case "netbox":
			s.connectNetBox(fakes.NetBoxToken)
			continue
		case "npm":
			lines = append(lines, "base_url="+w.NPMURL, "identity="+fakes.NPMEmail, "secret="+fakes.NPMSecret, "site="+w.SiteURL)
		case "file":
			lines = append(lines, "root="+s.MkAbs("site"))
		default:
			s.Fatalf("nobody knows how to connect a %q", kind)
		}
		s.run(strings.Join(lines, "\n")+"\n", "writ", append([]string{"systems", "add", kind}, flags...)...)
	}
	s.allow()
}

func (s *script) connectNetBox(token string) {
	s.run("environment=lab\nbase_url="+s.world.NetBoxURL+"\ntoken="+token+"\n", "writ", "systems", "add", "netbox")
}

// allow lets the actions touch what is in the world.
func (s *script) allow() {
	file := filepath.Join(s.dir, "catalog", "settings.yaml")
	text, err := os.ReadFile(file)
	s.Check(err)
	allowed := strings.NewReplacer("writable_vmids: []", "writable_vmids: [121, 122]", "nodes: []", "nodes: [pve]",
		"prefix_ids: []", "prefix_ids: [1]", "writable_ids: []", "writable_ids: [1]").Replace(string(text))
	s.Check(os.WriteFile(file, []byte(allowed), 0o600))
}

// run runs a program that must succeed, with something on its standard input.
func (s *script) run(stdin, program string, args ...string) string {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.MkAbs(".")
	cmd.Env = []string{"PATH=" + s.Getenv("PATH"), "HOME=" + s.Getenv("HOME"), "USER=" + s.Getenv("USER"), "WRIT_DIR=" + s.dir}
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
