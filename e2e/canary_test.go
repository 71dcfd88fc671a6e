package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"writ/connector/recorder"
	"writ/e2e/fakes"
)

// canaryCommands let a target repeat credentials and look for what came through.
//
//	echoes KIND METHOD PATH STATUS PROGRAM ARG…   run the program once for every form of a credential; the
//	                                   matching request is answered with STATUS and credentials in that form,
//	                                   and neither stdout nor stderr says one
//	canaries FILE…                     no form of a credential is in these files, or below these directories
func canaryCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"echoes": func(s *script, args []string) {
			s.need(args, 5, "echoes KIND METHOD PATH STATUS PROGRAM ARG…")
			status, err := strconv.Atoi(args[3])
			s.Check(err)
			hidden, all := 0, bodies()
			for _, body := range all {
				s.recorder(args[0]).Inject(recorder.Fault{Mode: "answer", Method: args[1], Path: args[2], Status: status, Body: body, Times: 1})
				_ = s.Exec(args[4], args[5:]...) // that it fails is the target's doing
				said := s.ReadFile("stdout") + s.ReadFile("stderr")
				if found := leaks([]byte(said)); len(found) > 0 {
					s.Fatalf("of the answer %q the program says %v:\n%s", body, found, said)
				}
				if strings.Contains(said, "[redacted:") {
					hidden++
				}
				s.recorder(args[0]).Release()
			}
			if hidden < len(all)/2 {
				s.Fatalf("the program says something of %d of %d answers: this way of looking proves nothing", hidden, len(all))
			}
		},
		"canaries": func(s *script, args []string) {
			planted := []byte("x " + forms(fakes.NetBoxToken)["path"] + " y")
			if len(leaks(planted)) == 0 {
				s.Fatalf("a planted credential is not found")
			}
			for _, root := range args {
				s.Check(filepath.WalkDir(s.MkAbs(root), func(path string, d fs.DirEntry, err error) error {
					if err != nil || !d.Type().IsRegular() {
						return err
					}
					text, err := os.ReadFile(path)
					if found := leaks(text); len(found) > 0 {
						s.Fatalf("%s holds %v", path, found)
					}
					return err
				}))
			}
		},
	}
}

// forms are the ways in which targets and libraries repeat a credential.
func forms(secret string) map[string]string {
	each := func(format string) string {
		var b strings.Builder
		for i := range len(secret) {
			fmt.Fprintf(&b, format, secret[i])
		}
		return b.String()
	}
	var wide []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	base := func(before string) string {
		return base64.StdEncoding.EncodeToString([]byte(before + secret + "tail"))
	}
	return map[string]string{
		"raw": secret, "hex": hex.EncodeToString([]byte(secret)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(secret))),
		"base64": base(""), "base64 1": base("x"), "base64 2": base("xy"), "base64 url": base64.RawURLEncoding.EncodeToString([]byte(secret)),
		"path": each("%%%02X"), "percent": each("%%%02x"), "json": each(`\u%04x`), "c": each(`\x%02x`), "html": each("&#%d;"),
		"utf-16": string(wide),
	}
}

// bodies are answers that repeat credentials, each in one form.
func bodies() []string {
	secrets := []string{fakes.ProxmoxSecret, fakes.NetBoxToken, fakes.NPMSecret}
	var all []string
	names := []string{"raw", "hex", "HEX", "base64 1", "base64 url", "path", "percent", "json", "c", "html", "utf-16", "base64 2"}
	for _, name := range names {
		var said []string
		for _, secret := range secrets {
			said = append(said, forms(secret)[name])
		}
		text := "refused: " + strings.Join(said, " and ")
		quoted, err := json.Marshal(map[string]string{"detail": text})
		if err != nil {
			panic(err)
		}
		// As text, inside JSON, and where the quote of an error ends.
		cut := strings.Repeat("x", 298-len(said[0])*3/4)
		all = append(all, text, string(quoted), cut+" "+said[0])
	}
	return all
}

// leaks names the forms of credentials that are in a text, whole or but for the
// ends.
func leaks(text []byte) []string {
	var found []string
	for i, secret := range fakes.Secrets() {
		for name, form := range forms(secret) {
			if bytes.Contains(text, []byte(form[4:len(form)/2])) {
				found = append(found, fmt.Sprintf("credential %d in the form %s", i, name))
			}
		}
	}
	slices.Sort(found)
	return found
}
