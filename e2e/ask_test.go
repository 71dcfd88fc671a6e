package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// askCommands ask the gate, mostly through the real command writ.
//
//	exits STATUS PROGRAM ARG…            run a program that must end with exactly this status
//	propose VAR [-exits=N] ARG…          writ propose --json ARG…, ending with status N (4, waiting, if left out);
//	                                     the id of the change goes into $VAR
//	change ID PATH=VALUE…                what the gate says of a change, see match
//	json PATH=VALUE…                     what the last program put on stdout
//	getjson VAR PATH                     put a value of it into $VAR
//	call STATUS gate|executor METHOD PATH [as=NAME] [header=NAME:VALUE] [body=TEXT]   raw HTTP over a socket
//	lines FILE TEXT…                     write a private file of these lines
//	settles ID STATE                     wait until a change is in a state
//	undo-planned VAR ID                  wait until the gate itself has proposed what undoes a change; its id goes into $VAR
//	deciders N ID                        N people decide at once, half of them yes, half of them no: exactly one succeeds
func askCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"exits": func(s *script, args []string) {
			s.need(args, 2, "exits STATUS PROGRAM ARG…")
			s.exits(args[0], args[1:])
		},
		"propose": func(s *script, args []string) {
			s.need(args, 2, "propose VAR [-exits=N] ARG…")
			status, rest := "4", args[1:]
			if n, ok := strings.CutPrefix(rest[0], "-exits="); ok {
				status, rest = n, rest[1:]
			}
			s.exits(status, append([]string{"writ", "propose", "--json"}, rest...))
			s.Setenv(args[0], s.value(s.ReadFile("stdout"), "id"))
		},
		"change": func(s *script, args []string) {
			s.need(args, 2, "change ID PATH=VALUE…")
			s.Check(s.Exec("writ", "show", "--json", args[0]))
			s.match(s.ReadFile("stdout"), args[1:])
		},
		"json": func(s *script, args []string) { s.match(s.ReadFile("stdout"), args) },
		"getjson": func(s *script, args []string) {
			s.need(args, 2, "getjson VAR PATH")
			s.Setenv(args[0], s.value(s.ReadFile("stdout"), args[1]))
		},
		"call": func(s *script, args []string) {
			s.need(args, 4, "call STATUS gate|executor METHOD PATH …")
			s.call(args)
		},
		"lines": func(s *script, args []string) {
			s.need(args, 2, "lines FILE TEXT…")
			s.Check(os.WriteFile(s.MkAbs(args[0]), []byte(strings.Join(args[1:], "\n")+"\n"), 0o600))
		},
		"settles": func(s *script, args []string) {
			s.need(args, 2, "settles ID STATE")
			s.eventually(args[0]+" is "+args[1], func() (bool, string) {
				status, body := s.ask(http.MethodGet, "/v1/changes/"+args[0], "alice", nil)
				if status != http.StatusOK {
					return false, fmt.Sprint(status)
				}
				state := s.value(string(body), "state")
				return state == args[1], state
			})
		},
		"undo-planned": func(s *script, args []string) {
			s.need(args, 2, "undo-planned VAR ID")
			s.eventually("a rollback of "+args[1], func() (bool, string) {
				_, body := s.ask(http.MethodGet, "/v1/changes?limit=1", "alice", nil)
				if of, _ := s.at(string(body), "changes.0.rollback_of"); of != args[1] {
					return false, string(body)
				}
				s.Setenv(args[0], s.value(string(body), "changes.0.id"))
				return true, ""
			})
		},
		"deciders": func(s *script, args []string) { s.need(args, 2, "deciders N ID"); s.decide(args[0], args[1]) },
	}
}

// exits runs a program and checks its status. What it said stays for stdout and stderr.
func (s *script) exits(status string, args []string) {
	err := s.Exec(args[0], args[1:]...)
	got := 0
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else {
		s.Check(err)
	}
	if strconv.Itoa(got) != status {
		s.Fatalf("%s ended with status %d, not %s", strings.Join(args, " "), got, status)
	}
}

// match checks values of a JSON text. PATH is names and numbers with dots
// between, len at its end the number of elements. VALUE is compared with the value
// as text; PATH~VALUE is a regular expression, and PATH! says that it is not there.
func (s *script) match(text string, wanted []string) {
	for _, w := range wanted {
		cut := strings.IndexAny(w, "=~!")
		if cut < 0 {
			s.Fatalf("%q is none of PATH=VALUE, PATH~PATTERN, PATH!", w)
		}
		path, sign, want := w[:cut], w[cut], w[cut+1:]
		got, there := s.at(text, path)
		holds := there
		switch sign {
		case '=':
			holds = there && got == want
		case '~':
			holds = there && regexp.MustCompile(want).MatchString(got)
		case '!':
			holds = !there
		}
		if !holds {
			s.Fatalf("%s does not hold, it is %q in\n%s", w, got, text)
		}
	}
}

// value returns a value that must be there.
func (s *script) value(text, path string) string {
	got, there := s.at(text, path)
	if !there {
		s.Fatalf("there is no %s in\n%s", path, text)
	}
	return got
}

func (s *script) at(text, path string) (string, bool) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		s.Fatalf("%v in\n%s", err, text)
	}
	for _, name := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			var there bool
			if v, there = in[name]; !there {
				return "", false
			}
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case name == "len":
				v = json.Number(strconv.Itoa(len(in)))
			case err == nil && i < len(in):
				v = in[i]
			default:
				return "", false
			}
		default:
			return "", false
		}
	}
	if word, ok := v.(string); ok {
		return word, true
	}
	b, err := json.Marshal(v)
	s.Check(err)
	return string(b), true
}

// token is the token of a principal of the installation.
func (s *script) token(name string) string {
	text, err := os.ReadFile(filepath.Join(s.dir, "tokens", name+".token"))
	s.Check(err)
	return strings.TrimSpace(string(text))
}

// ask calls the gate as somebody.
func (s *script) ask(method, path, as string, body []byte) (int, []byte) {
	return s.receive(s.overSocket("gate.sock"), s.asking(method, path, as, body))
}

func (s *script) asking(method, path, as string, body []byte) *http.Request {
	req, err := http.NewRequest(method, "http://localhost"+path, bytes.NewReader(body))
	s.Check(err)
	req.Header.Set("Authorization", "Bearer "+s.token(as))
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (s *script) receive(client *http.Client, req *http.Request) (int, []byte) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, []byte(err.Error())
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s.Check(err)
	return resp.StatusCode, body
}

// call makes one raw call and checks its status; the answer goes to stdout.
func (s *script) call(args []string) {
	status, program, method, path := args[0], args[1], args[2], args[3]
	var body string
	header := http.Header{}
	for _, extra := range args[4:] {
		key, value, _ := strings.Cut(extra, "=")
		switch key {
		case "as":
			header.Set("Authorization", "Bearer "+s.token(value))
		case "header":
			name, text, _ := strings.Cut(value, ":")
			header.Add(name, text)
		case "body":
			body = value
		default:
			s.Fatalf("a call has no %q", key)
		}
	}
	req, err := http.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	s.Check(err)
	if body != "" {
		header.Set("Content-Type", "application/json")
	}
	req.Header = header
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	got, answer := s.receive(s.overSocket(program+".sock"), req)
	if strconv.Itoa(got) != status {
		s.Fatalf("the answer is %d, not %s: %s", got, status, answer)
	}
	fmt.Fprintln(s.Stdout(), string(answer))
}

// decide lets N people decide on one change at once. It counts on principals
// decider-0, decider-1, …
func (s *script) decide(number, id string) {
	n, err := strconv.Atoi(number)
	s.Check(err)
	status, body := s.ask(http.MethodGet, "/v1/changes/"+id+"/review", "alice", nil)
	if status != http.StatusOK {
		s.Fatalf("%d %s", status, body)
	}
	yes, err := json.Marshal(map[string]string{"envelope_digest": s.value(string(body), "envelope_digest"), "shown_digest": s.value(string(body), "shown_digest")})
	s.Check(err)
	statuses := make([]int, n)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		path, say := "/approvals", yes
		if i%2 == 1 {
			path, say = "/rejection", []byte(`{"reason":"not now"}`)
		}
		req := s.asking(http.MethodPost, "/v1/changes/"+id+path, fmt.Sprintf("decider-%d", i), say)
		all.Go(func() {
			<-begin
			statuses[i], _ = s.receive(s.overSocket("gate.sock"), req)
		})
	}
	close(begin)
	all.Wait()
	count := map[int]int{}
	for _, status := range statuses {
		count[status]++
	}
	if count[http.StatusOK] != 1 || count[http.StatusConflict] != n-1 {
		s.Fatalf("of %d deciders one must succeed and the others be told that they lost (409): %v", n, count)
	}
}
