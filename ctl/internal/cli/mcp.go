package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/client"
	"writ/fault"
)

func (p *program) mcpCommand() *cobra.Command {
	var tokenFile, address, ca string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the gate to an agent as MCP tools, on standard input and output",
		Long: `Speak the Model Context Protocol on standard input and output, for a client that starts
its tools as commands. Every message goes to the gate; this command decides nothing, keeps
nothing, and holds the token of an agent, which can never approve. The gate may be stopped
and started again meanwhile.

The token is that of ask_as in writ.yaml, or of --as. Where the agent's user has no
writ.yaml, --token-file and --gate name both ($WRIT_TOKEN_FILE, $WRIT_GATE), and --ca who
vouches for the certificate of a gate elsewhere ($WRIT_CA).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := p.agent(cmp.Or(tokenFile, p.env["WRIT_TOKEN_FILE"]), cmp.Or(address, p.env["WRIT_GATE"]), cmp.Or(ca, p.env["WRIT_CA"]))
			if err != nil {
				return err
			}
			g, err := client.NewTrusting(a.gate, a.token, a.ca)
			if err != nil {
				return err
			}
			return (&shim{gate: g, out: p.stdout, calls: map[string]context.CancelFunc{}}).run(cmd.Context(), p.stdin)
		},
	}
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file of the agent's token")
	cmd.Flags().StringVar(&address, "gate", "", "socket of the gate, 127.0.0.1:port, or https://host:port")
	cmd.Flags().StringVar(&ca, "ca", "", "file of the authority of the gate's certificate")
	return cmd
}

// agent is as whom an agent asks, and where.
type agent struct {
	token string
	file  string // that the token is in
	gate  string
	ca    string // file of the authority of its certificate, or ""
}

// agent finds the token of an agent, and its gate.
func (p *program) agent(file, address, ca string) (agent, error) {
	a := agent{file: file, gate: address, ca: ca}
	if file == "" || address == "" {
		h, err := p.home()
		if err != nil {
			return agent{}, err
		}
		a.gate = cmp.Or(address, h.gateAddress())
		a.ca = cmp.Or(ca, h.authority())
		if file == "" {
			who := cmp.Or(p.as, h.AskAs)
			a.file = h.tokenFile(who)
			if a.token, err = h.token(who); err != nil {
				return agent{}, err
			}
		}
	}
	if a.token == "" {
		var err error
		if a.token, err = readToken(file); err != nil {
			return agent{}, err
		}
	}
	if !strings.HasPrefix(a.token, "writ_agent_") {
		return agent{}, fault.New(fault.Refused, "The token is no agent's. Another may be able to approve, and is never handed to an agent.").Because("not_an_agent")
	}
	return a, nil
}

// shim carries messages between a client and the gate.
type shim struct {
	gate *client.Client

	mu       sync.Mutex
	out      io.Writer
	revision string                        // agreed on by initialize
	session  string                        // what the client said of itself then
	calls    map[string]context.CancelFunc // by id
}

// message is what the shim looks at of one.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		RequestID json.RawMessage `json:"requestId"`
		Client    struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"clientInfo"`
	} `json:"params"`
}

// run carries messages until the client closes its end or ctx ends.
func (s *shim) run(ctx context.Context, in io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	var open sync.WaitGroup
	read, ended := make(chan []byte), make(chan error, 1)
	go func() { // a read of standard input cannot be broken off
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 0, 64<<10), writ.MaxSize)
		for lines.Scan() {
			select {
			case read <- bytes.Clone(bytes.TrimSpace(lines.Bytes())):
			case <-ctx.Done():
				return
			}
		}
		ended <- lines.Err()
	}()
	defer stop()
	for {
		select {
		case text := <-read:
			s.take(ctx, &open, text)
		case err := <-ended:
			open.Wait() // what was asked for is answered
			if err != nil {
				return fault.Wrap(fault.Invalid, err, "A message is longer than %d bytes, or standard input broke off.", writ.MaxSize)
			}
			return nil
		case <-ctx.Done():
			open.Wait()
			return nil
		}
	}
}

// take begins to carry one message.
func (s *shim) take(ctx context.Context, open *sync.WaitGroup, text []byte) {
	if len(text) == 0 {
		return
	}
	var m message
	_ = json.Unmarshal(text, &m) // what cannot be read is the gate's to refuse
	switch m.Method {
	case "notifications/cancelled":
		s.cancel(string(m.Params.RequestID))
	case "initialize":
		s.carry(ctx, m, text) // the next message needs its result
	default:
		// It can be cancelled as soon as the next line is read.
		calling, done := s.begin(ctx, string(m.ID))
		open.Go(func() {
			defer done()
			s.carry(calling, m, text)
		})
	}
}

// begin notes a call that can be cancelled.
func (s *shim) begin(ctx context.Context, id string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if id == "" {
		return ctx, cancel
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		cancel()
		delete(s.calls, id)
	}
}

func (s *shim) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.calls[id]; cancel != nil {
		cancel()
	}
}

// How long a message waits for a gate that is being started again, and how often
// it looks. A client that waits 5 seconds still gets the answer.
const (
	restartTime = 3 * time.Second
	restartLook = 100 * time.Millisecond
)

// carry hands one message to the gate and the answer to the client.
func (s *shim) carry(ctx context.Context, m message, text []byte) {
	s.mu.Lock()
	if m.Method == "initialize" {
		s.session = sessionOf(m.Params.Client.Name, m.Params.Client.Version)
	}
	revision, session := s.revision, s.session
	s.mu.Unlock()
	if m.Method == "initialize" {
		revision = ""
	}
	answer, err := s.gate.Message(ctx, text, revision, session)
	given := time.NewTimer(restartTime)
	defer given.Stop()
	look := time.NewTicker(restartLook)
	defer look.Stop()
	// Unavailable: there was nobody to take it in, so it can be sent again.
	for waiting := true; waiting && fault.CodeOf(err) == fault.Unavailable; {
		select {
		case <-look.C:
			answer, err = s.gate.Message(ctx, text, revision, session)
		case <-given.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
	}
	if err != nil && ctx.Err() != nil {
		// A client that withdrew a call need not look at its answer, but some wait for it.
		err = fault.New(fault.Canceled, "The call was withdrawn before it was answered.")
	}
	if err != nil {
		answer = failure(m, err)
	}
	if m.Method == "initialize" {
		var agreed struct {
			Result struct {
				Revision string `json:"protocolVersion"`
			} `json:"result"`
		}
		_ = json.Unmarshal(answer, &agreed) // an error has none
		s.mu.Lock()
		s.revision = agreed.Result.Revision
		s.mu.Unlock()
	}
	if answer = bytes.TrimSpace(answer); len(answer) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(answer, '\n')) // a client that is gone wants none
}

// sessionOf is a client's name and version in one line of a header.
func sessionOf(name, version string) string {
	clean := func(text string) string {
		text = strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' || r == ',' {
				return ' '
			}
			return r
		}, text)
		return strings.TrimSpace(text[:min(len(text), 200)])
	}
	if name, version = clean(name), clean(version); name == "" && version == "" {
		return ""
	}
	return name + "/" + strings.ReplaceAll(version, "/", " ")
}

// failure answers in the gate's place: for a tool with a result that the model
// reads. A notification gets none.
func failure(m message, err error) []byte {
	if len(m.ID) == 0 {
		return nil
	}
	code, text := fault.CodeOf(err), plain(fault.TextOf(err))
	reply := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	if m.Method == "tools/call" {
		next := "Call it again later, a proposal with the same client_key. What was taken in goes on by itself."
		if code != fault.Unavailable && code != fault.Timeout && code != fault.Canceled {
			next = "Tell the person you work for."
		}
		reply["result"] = map[string]any{
			"resultType": "complete", "isError": true,
			"content": []any{map[string]string{"type": "text", "text": code.Row().Title + " (code " + string(code) + "). " + text + "\nNext: " + next}},
			"_meta":   map[string]any{"writ/code": string(code), "writ/reason": fault.ReasonOf(err), "writ/retry": code.Row().Retry},
		}
	} else {
		reply["error"] = map[string]any{"code": -32603, "message": text}
	}
	data, err := json.Marshal(reply)
	if err != nil {
		return nil
	}
	return data
}

// readToken reads a file that holds one token and is its owner's alone.
func readToken(path string) (string, error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Refused, "Others can read the token. Run: chmod 600 %s", path).Because("mode")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fault.Wrap(fault.Denied, err, "There is no token that you can read in %s. Make one: writ principals add NAME", path)
	}
	return strings.TrimSpace(string(data)), nil
}
