package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"writ"
	"writ/fault"
	"writ/shell"
)

// maxBatchLine bounds a line: no command that is judged is nearly as long.
const maxBatchLine = 1 << 20

// batchLine is the answer to one line.
type batchLine struct {
	Cmd        string         `json:"cmd"`
	Command    string         `json:"command,omitempty"` // the only text that may be run, where it is not cmd
	Class      writ.Class     `json:"class"`
	NeedsLimit bool           `json:"needs_limit"`
	Effects    []shell.Effect `json:"effects"`
	Reasons    []string       `json:"reasons"`
}

// classifyBatch answers every line with one, in order, whatever stands in it.
// Empty lines are passed over.
func (p *program) classifyBatch(k *shell.Knowledge, in io.Reader) error {
	r := bufio.NewReaderSize(in, maxBatchLine)
	w := bufio.NewWriter(p.stdout)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for n := 1; ; n++ {
		text, err := r.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			_ = w.Flush()
			return fault.Wrap(fault.Invalid, err, "The input cannot be read to its end.")
		}
		switch {
		case long:
			_ = enc.Encode(unreadable(n, "is longer than 1 MiB"))
		case len(bytes.TrimSpace(text)) > 0:
			_ = enc.Encode(answer(k, n, text))
		}
		// Whoever waits for an answer before the next question gets it.
		if r.Buffered() == 0 && w.Flush() != nil || err != nil {
			return nil // the end, or nobody reads on
		}
	}
}

func answer(k *shell.Knowledge, n int, text []byte) batchLine {
	var object map[string]json.RawMessage // by exact names: Cmd is not cmd
	if json.Unmarshal(text, &object) != nil || object == nil {
		return unreadable(n, "is not a JSON object")
	}
	var cmd *string
	if json.Unmarshal(object["cmd"], &cmd) != nil || cmd == nil {
		return unreadable(n, "has no text under cmd")
	}
	v := k.Classify(*cmd)
	a := batchLine{Cmd: *cmd, Class: v.Class, NeedsLimit: v.NeedsLimit, Effects: v.Effects, Reasons: v.Reasons}
	if v.Command != *cmd {
		a.Command = v.Command
	}
	return a
}

// unreadable is the answer to a line that holds no command.
func unreadable(n int, why string) batchLine {
	return batchLine{Class: writ.ConfigMutation, Effects: []shell.Effect{shell.Unknown}, Reasons: []string{fmt.Sprintf("line %d %s", n, why)}}
}
