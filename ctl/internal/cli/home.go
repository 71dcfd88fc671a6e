package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"

	"writ/fault"
)

// homeFile is the command's own file. It holds no token, only where they are.
const homeFile = "writ.yaml"

// home is writ.yaml and the directory it lies in.
type home struct {
	dir          string
	Gate         string `yaml:"gate"`       // socket of the gate, 127.0.0.1:port, or https://host:port
	GateCA       string `yaml:"gate_ca"`    // file of the authority of its certificate; "" are those of the machine
	AskAs        string `yaml:"ask_as"`     // whose token asks
	ApproveAs    string `yaml:"approve_as"` // whose token decides and looks
	GateUser     string `yaml:"gate_user"`
	ExecutorUser string `yaml:"executor_user"`
}

const homeText = `# The writ command: where the gate is, and whose token (tokens/NAME.token) is used if --as does not say.
gate: run/gate.sock
# gate: https://writ.example.org:7443   # a gate elsewhere, and who vouches for its certificate, if no public authority does
# gate_ca: ca.pem
ask_as: {{agent}}
approve_as: {{approver}}

# Started as root, "writ up" runs each process as a user of its own. Before, let each own its directory:
# chown -R writ-gate gate; chown -R writ-executor executor; chmod -R a+rX catalog
# gate_user: writ-gate
# executor_user: writ-executor
`

// home finds and reads writ.yaml.
func (p *program) home() (*home, error) {
	dir, err := p.homeDir()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, homeFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.NotFound, err, "There is no %s in %s. Make one with \"writ init\", or name its directory with --dir.", homeFile, dir)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be read. Check its owner.", path)
	}
	if err := trusted(path); err != nil {
		return nil, err
	}
	h := &home{dir: dir}
	if err := yaml.Load(data, h, yaml.WithKnownFields()); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s is not valid: %v", path, err)
	}
	var missing []string
	for name, value := range map[string]string{"gate": h.Gate, "ask_as": h.AskAs, "approve_as": h.ApproveAs} {
		if value == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.Invalid, "%s does not say: %s.", path, strings.Join(missing, ", "))
	}
	return h, nil
}

// trusted refuses a writ.yaml that somebody else could have put there: it says
// which programs run as whom, and to whom the tokens are shown.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be looked at.", path)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fault.New(fault.Refused, "%s belongs to another user, so it is not heeded. Name your own directory with --dir.", path).Because("owner")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fault.New(fault.Refused, "Others can write %s. Run: chmod 600 %s", path, path).Because("mode")
	}
	return nil
}

// homeDir is --dir, $WRIT_DIR, the nearest directory from here upwards that has
// a writ.yaml, or /etc/writ.
func (p *program) homeDir() (string, error) {
	for _, dir := range []string{p.dir, p.env["WRIT_DIR"]} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "The current directory cannot be found. Name one with --dir.")
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, homeFile)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "/etc/writ", nil
		}
	}
}

func (h *home) path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// gateAddress is where the gate is, as the client takes it.
func (h *home) gateAddress() string {
	if strings.Contains(h.Gate, ":") || filepath.IsAbs(h.Gate) {
		return h.Gate
	}
	return h.path(h.Gate)
}

// authority is the file of the authority of the gate's certificate, or "".
func (h *home) authority() string {
	if h.GateCA == "" || filepath.IsAbs(h.GateCA) {
		return h.GateCA
	}
	return h.path(h.GateCA)
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,62}$`)

func (h *home) tokenFile(name string) string { return h.path("tokens", name+".token") }

// tokenNames are those whose tokens are used if nobody says, and all others that
// have one here.
func (h *home) tokenNames() []string {
	names := []string{h.AskAs, h.ApproveAs}
	files, err := filepath.Glob(h.tokenFile("*"))
	if err != nil { // the pattern is bad: the directory has a name like [
		return names
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".token"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// closed reports whether others could put their own files in the place of ours.
func (h *home) closed() error {
	for _, dir := range []string{h.dir, h.path("tokens"), h.path("catalog")} {
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) { // tokens and catalog may be elsewhere
			continue
		}
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "%s cannot be looked at. Run this as its owner.", dir)
		}
		if info.Mode().Perm()&0o022 != 0 {
			return fault.New(fault.Refused, "Others can put files in %s. Run: chmod go-w %s", dir, dir).Because("mode")
		}
	}
	return nil
}

// hasToken reports whether there is a token of a name. One that cannot be used
// as it lies there is one: asking as somebody else instead would hide that.
func (h *home) hasToken(name string) bool {
	_, err := h.token(name)
	return err == nil || fault.CodeOf(err) == fault.Refused
}

// token returns the token of a name. A file that others can read is refused:
// whoever read it decides in that name.
func (h *home) token(name string) (string, error) {
	if !nameForm.MatchString(name) {
		return "", fault.New(fault.Invalid, "%q is no name of a principal.", name)
	}
	path := h.tokenFile(name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fault.Wrap(fault.NotFound, err, "There is no token for %s. Make one: writ principals add %s", name, name)
	case err == nil && info.Mode().Perm()&0o077 != 0:
		return "", fault.New(fault.Refused, "Others can read the token of %s. Run: chmod 600 %s", name, path).Because("mode")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(fault.Denied, err, "The token of %s cannot be read by you: %s", name, path)
	}
	return strings.TrimSpace(string(data)), nil
}

// create writes a new file of mode 0600; one that exists is left as it is.
func create(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(fault.Conflict, err, "There is already a file %s. Nothing was overwritten.", path)
	}
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be written. Check the owner of the directory.", path)
	}
	return nil
}
