// Package connect knows the configuration of agents' clients: which file tells
// each to ask writ, and which of its rules take the agent's own shell and
// editor away. It reads and makes texts; it touches no file.
package connect

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"writ/fault"
)

// Server is how a client reaches writ: the command to start and, for a client
// that starts none, the address.
type Server struct {
	Command []string // the program and its arguments; the token is in a file that they name
	URL     string   // of the gate, such as http://127.0.0.1:8787; "" if it was not said
	Token   string   // file of the token, for the client that can name none
	Private string   // directory that the agent is not to read
}

// Place is where configuration lies.
type Place struct {
	Dir  string // the directory that the agent works in
	Home string // of the user, if the configuration is for all that the user does; else ""
	Have func(path string) bool
}

// at returns the file of the user, or that of the directory.
func (p Place) at(user, here string) string {
	if p.Home != "" {
		return filepath.Join(p.Home, user)
	}
	return filepath.Join(p.Dir, here)
}

// Client is one kind of client.
type Client struct {
	Name  string
	Title string

	needsURL bool // it starts no command
	server   func(Place, Server) []File
	lockdown func(Place, Server) []File // nil: its tools cannot be taken away by configuration
	Notes    []string                   // what whoever connects it should know
	Unlocked string                     // why it cannot be locked down, and what to do instead
}

// Files returns what belongs in which file. A lockdown of a client that cannot
// be locked down is refused.
func (c Client) Files(at Place, s Server, lockdown bool) ([]File, error) {
	if lockdown && c.lockdown == nil {
		return nil, fault.New(fault.Refused, "%s cannot be locked down from here. %s", c.Title, c.Unlocked).Because("no_lockdown")
	}
	if c.needsURL && !strings.HasPrefix(s.URL, "http://") && !strings.HasPrefix(s.URL, "https://") {
		return nil, fault.New(fault.Invalid, "%s starts no command. Say where it reaches the gate, which has to listen there (listen in gate.yaml): --url http://127.0.0.1:8787", c.Title)
	}
	files := c.server(at, s)
	if !lockdown {
		return files, nil
	}
	for _, more := range c.lockdown(at, s) {
		if i := slices.IndexFunc(files, func(f File) bool { return f.Path == more.Path }); i >= 0 {
			files[i].Settings = append(files[i].Settings, more.Settings...)
		} else {
			files = append(files, more)
		}
	}
	return files, nil
}

// File is what belongs in one file.
type File struct {
	Path     string // "" if the client keeps it elsewhere
	Settings []Setting
}

// Setting is one value that a file has to have.
type Setting struct {
	Path  []string
	Value any
	Among bool // Value is a list, whose elements are added to those that are there
}

// format is a way of writing configuration down.
type format interface {
	parse(text []byte) (map[string]any, error)
	edit(text []byte, s Setting) ([]byte, error)
}

func (f File) format() format {
	if strings.HasSuffix(f.Path, ".toml") {
		return asTOML{}
	}
	return asJSON{}
}

// Merge returns a file's text with the settings in it. All else is as it was,
// comments too. The text may be empty.
func (f File) Merge(old []byte) ([]byte, error) {
	how := f.format()
	want, err := how.parse(old)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be read as the client reads it, so nothing was written: %v", f.Path, err)
	}
	text := old
	for _, s := range f.Settings {
		if err = s.apply(want); err == nil {
			text, err = how.edit(text, s)
		}
		if err != nil {
			return nil, fault.Wrap(fault.Conflict, err, "%s has something else at %s, so nothing was written. Add it yourself.", f.Path, strings.Join(s.Path, "."))
		}
	}
	// The edited text has to say what was wanted, whatever the old one looked like.
	got, err := how.parse(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		return nil, fault.New(fault.Conflict, "%s is written in a way that cannot be edited here, so nothing was written. Add it yourself.", f.Path)
	}
	return text, nil
}

// Text returns what belongs in a file that has nothing else in it.
func (f File) Text() ([]byte, error) {
	if len(f.Settings) == 1 && len(f.Settings[0].Path) == 0 {
		return append(encoded(f.Settings[0].Value, step), '\n'), nil
	}
	return f.Merge(nil)
}

// apply sets the value in what was parsed.
func (s Setting) apply(in map[string]any) error {
	last := len(s.Path) - 1
	for _, name := range s.Path[:last] {
		if in[name] == nil {
			in[name] = map[string]any{}
		}
		next, ok := in[name].(map[string]any)
		if !ok {
			return errOther
		}
		in = next
	}
	if !s.Among {
		in[s.Path[last]] = plain(s.Value)
		return nil
	}
	list, ok := in[s.Path[last]].([]any)
	if !ok && in[s.Path[last]] != nil {
		return errOther
	}
	in[s.Path[last]] = append(list, s.missing(list)...)
	return nil
}

// missing returns the elements that a list lacks.
func (s Setting) missing(list []any) []any {
	var missing []any
	for _, v := range plain(s.Value).([]any) {
		if !slices.ContainsFunc(list, func(have any) bool { return reflect.DeepEqual(plain(have), v) }) {
			missing = append(missing, v)
		}
	}
	return missing
}

var errOther = fault.New(fault.Conflict, "There is a value of another kind.")

// plain makes values comparable that came from different formats.
func plain(v any) any {
	var out any
	if err := json.Unmarshal(encoded(v, ""), &out); err != nil {
		return err
	}
	return out
}

// encoded is a value as JSON, its lines after the first indented.
func encoded(v any, indent string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if indent != "" {
		enc.SetIndent(indent[:len(indent)-len(step)], step)
	}
	if err := enc.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// step is the indent of one level.
const step = "  "
