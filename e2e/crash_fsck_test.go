package e2e_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fsck reads a ledger from its specification, with nothing of what wrote it, and
// says what is wrong. keyFile holds the seed of the key that signs it.
func fsck(dir, keyFile string) (problems []string) {
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return []string{err.Error()}
	}
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return []string{"the key cannot be read"}
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	paths, err := filepath.Glob(filepath.Join(dir, "segment", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		return []string{"there is no segment"}
	}
	var leaves [][32]byte
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return []string{err.Error()}
		}
		if len(text) == 0 || text[len(text)-1] != '\n' {
			wrong("%s ends in a torn line", path)
		}
		if filepath.Base(path) != fmt.Sprintf("%012d.jsonl", i) {
			wrong("%s is not segment %d", path, i)
		}
		lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		var seam struct{ Format, Note string }
		if err := json.Unmarshal(lines[0], &seam); err != nil || seam.Format != "segment/2" {
			wrong("%s begins with no seam: %v", path, err)
		} else if problem := checkNote([]byte(seam.Note), public, leaves, true); problem != "" {
			wrong("the seam of %s: %s", path, problem)
		}
		for _, line := range lines[1:] {
			if problem := checkEvent(line, len(leaves)+1); problem != "" {
				wrong("event %d: %s", len(leaves)+1, problem)
			}
			leaves = append(leaves, sha256.Sum256(append([]byte{0}, line...)))
		}
	}
	signed, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		wrong("there is no checkpoint: %v", err)
	} else if problem := checkNote(signed, public, leaves, false); problem != "" {
		wrong("the checkpoint: %s", problem)
	}
	return append(problems, checkTiles(dir, leaves)...)
}

// checkEvent says what is wrong with one line.
func checkEvent(line []byte, sequence int) string {
	var members map[string]any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&members); err != nil {
		return err.Error()
	}
	if members["format"] != "event/2" || fmt.Sprint(members["sequence"]) != fmt.Sprint(sequence) {
		return fmt.Sprintf("it has the format %v and the sequence %v", members["format"], members["sequence"])
	}
	var again bytes.Buffer // names in order, nothing between
	e := json.NewEncoder(&again)
	e.SetEscapeHTML(false)
	if err := e.Encode(members); err != nil || !bytes.Equal(bytes.TrimSpace(again.Bytes()), line) {
		return "it is not written canonically"
	}
	return ""
}

// checkNote says what is wrong with a signed note of a number of leaves and
// their root. A seam is about all leaves so far.
func checkNote(signed []byte, public ed25519.PublicKey, leaves [][32]byte, all bool) string {
	text, rest, ok := bytes.Cut(signed, []byte("\n\n"))
	if !ok {
		return "it is no signed note"
	}
	text = append(text, '\n')
	lines := strings.Split(string(text), "\n")
	var size int
	if _, err := fmt.Sscan(lines[1], &size); err != nil || size < 0 || size > len(leaves) || all && size != len(leaves) {
		return fmt.Sprintf("it covers %s events, of which there are %d", lines[1], len(leaves))
	}
	root := merkle(leaves[:size])
	if lines[2] != base64.StdEncoding.EncodeToString(root[:]) {
		return fmt.Sprintf("the root of %d events is another", size)
	}
	fields := strings.Fields(string(rest))
	if len(fields) != 3 || fields[0] != "—" || fields[1] != lines[0] {
		return "it is not signed by its origin alone"
	}
	signature, err := base64.StdEncoding.DecodeString(fields[2])
	if err != nil || len(signature) != 4+ed25519.SignatureSize || !ed25519.Verify(public, text, signature[4:]) {
		return "its signature is wrong"
	}
	return ""
}

// merkle is the root of RFC 6962.
func merkle(leaves [][32]byte) [32]byte {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return leaves[0]
	}
	half := 1
	for half*2 < len(leaves) {
		half *= 2
	}
	left, right := merkle(leaves[:half]), merkle(leaves[half:])
	return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:]))
}

// checkTiles compares every tile of the lowest level with the leaves.
func checkTiles(dir string, leaves [][32]byte) (problems []string) {
	root := filepath.Join(dir, "tile", "0")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // a tile that is not full any more went away
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".new") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		hashes, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		index, width := 0, 256
		name, part, _ := strings.Cut(name, ".p/")
		if part != "" {
			if _, err := fmt.Sscan(part, &width); err != nil {
				return err
			}
		}
		for _, group := range strings.Split(name, "/") {
			var n int
			if _, err := fmt.Sscanf(strings.TrimPrefix(group, "x"), "%d", &n); err != nil {
				return err
			}
			index = index*1000 + n
		}
		if len(hashes) != width*32 {
			problems = append(problems, fmt.Sprintf("tile %s has %d bytes", path, len(hashes)))
			return nil
		}
		for i := range width {
			if at := index*256 + i; at >= len(leaves) || !bytes.Equal(hashes[i*32:i*32+32], leaves[at][:]) {
				problems = append(problems, fmt.Sprintf("tile %s is wrong at event %d", path, at+1))
				return nil
			}
		}
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		problems = append(problems, err.Error())
	}
	return problems
}
