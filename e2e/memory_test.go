package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"writ/e2e/fakes"
)

// memoryCommands look for the credentials of the world.
//
//	process NAME holds|lacks        environment, arguments and memory of the gate or the executor hold
//	                                every credential that is in the vault / none that exists
//	files DIR lacks                 no file below holds one, raw or in base64
//	private PATH…                   a file is 0600 and a directory 0700, and so is all that is below it;
//	                                the digest of the last file goes into $SHA256
func memoryCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"process": func(s *script, args []string) {
			s.need(args, 2, "process NAME holds|lacks")
			pid := s.pid(args[0])
			if _, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); args[1] == "holds" && errors.Is(err, fs.ErrPermission) {
				// The executor lets nobody but root look. That looking finds
				// anything is then shown on this process, which made the credentials.
				pid = os.Getpid()
			}
			found := s.inProcess(pid)
			switch {
			case args[1] == "holds" && len(found) == 0:
				s.Fatalf("no credential is found in %s, where it must be: this way of looking proves nothing", args[0])
			case args[1] == "lacks" && len(found) > 0:
				s.Fatalf("%s holds a credential: %v", args[0], found)
			}
		},
		"private": func(s *script, args []string) {
			s.need(args, 1, "private PATH…")
			for _, path := range args {
				s.private(s.MkAbs(path))
			}
		},
		"files": func(s *script, args []string) {
			s.need(args, 2, "files DIR lacks")
			// A file with a credential in it shows that looking finds one.
			planted := s.MkAbs("planted")
			s.Check(os.Mkdir(planted, 0o700))
			s.Check(os.WriteFile(filepath.Join(planted, "file"), []byte("x"+base64.StdEncoding.EncodeToString([]byte(fakes.ProxmoxSecret))), 0o600))
			if len(s.inFiles(planted)) != 1 {
				s.Fatalf("a planted credential is not found")
			}
			s.Check(os.RemoveAll(planted))
			if found := s.inFiles(s.MkAbs(args[0])); len(found) > 0 {
				s.Fatalf("there are credentials: %v", found)
			}
		},
	}
}

func (s *script) private(root string) {
	s.Check(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			s.Fatalf("%s has mode %o, not %o", path, info.Mode().Perm(), want)
		}
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			sum := sha256.Sum256(text)
			s.Setenv("SHA256", hex.EncodeToString(sum[:]))
			return err
		}
		return nil
	}))
}

func (s *script) inFiles(dir string) (found []string) {
	s.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range fakes.Secrets() {
			if bytes.Contains(text, []byte(secret)) || bytes.Contains(text, []byte(strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "=")[:len(secret)])) {
				found = append(found, path)
			}
		}
		return err
	}))
	return found
}

// inProcess looks through all that a process can read.
func (s *script) inProcess(pid int) (found []string) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	look := func(where string, text []byte) {
		for i, secret := range fakes.Secrets() {
			if bytes.Contains(text, []byte(secret)) {
				found = append(found, fmt.Sprintf("credential %d in %s", i, where))
			}
		}
	}
	for _, name := range []string{"environ", "cmdline"} {
		text, err := os.ReadFile(filepath.Join(proc, name))
		s.Check(err)
		look(name, text)
	}
	maps, err := os.ReadFile(filepath.Join(proc, "maps"))
	s.Check(err)
	mem, err := os.Open(filepath.Join(proc, "mem"))
	s.Check(err)
	defer mem.Close()
	read := 0
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 63)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if err1 != nil || err2 != nil || !strings.HasPrefix(fields[1], "r") || strings.Contains(line, "[v") {
			continue
		}
		text := make([]byte, end-start)
		n, err := mem.ReadAt(text, int64(start))
		if err != nil {
			continue // it was unmapped in between
		}
		read += n
		look(strings.TrimSpace(line), text)
	}
	if read < 1<<20 {
		s.Fatalf("only %d bytes of the memory could be read", read)
	}
	return found
}
