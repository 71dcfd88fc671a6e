package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// auditCommands read the audit itself, not the gate.
//
//	events ID TYPE…              exactly these events tell of the change, in this order
//	event ID TYPE PATH=VALUE…    the last event of a type that tells of the change, see match
//	noaudit PATTERN…             no line of the audit holds any of these texts
func auditCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"events": func(s *script, args []string) {
			s.need(args, 1, "events ID TYPE…")
			s.eventually("the events of "+args[0], func() (bool, string) {
				var types []string
				for _, e := range s.eventsOf(args[0]) {
					types = append(types, e.Type)
				}
				got := strings.Join(types, " ")
				return got == strings.Join(args[1:], " "), got
			})
		},
		"event": func(s *script, args []string) {
			s.need(args, 2, "event ID TYPE PATH=VALUE…")
			last := ""
			s.eventually(args[1], func() (bool, string) {
				for _, e := range s.eventsOf(args[0]) {
					if e.Type == args[1] {
						last = e.line
					}
				}
				return last != "", "not there"
			})
			s.match(last, args[2:])
		},
		"noaudit": func(s *script, args []string) {
			text := s.auditText()
			for _, secret := range args {
				if strings.Contains(text, secret) {
					s.Fatalf("the audit holds %q", secret)
				}
			}
		},
	}
}

type auditEvent struct {
	Type     string `json:"event"`
	ChangeID string `json:"change_id"`
	line     string
}

func (s *script) auditText() string {
	paths, err := filepath.Glob(filepath.Join(s.dir, "gate", "audit", "segment", "*.jsonl"))
	s.Check(err)
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		s.Check(err)
		all.Write(text)
	}
	return all.String()
}

func (s *script) eventsOf(id string) (all []auditEvent) {
	for line := range strings.Lines(s.auditText()) {
		if !strings.HasSuffix(line, "\n") {
			continue // it is being written
		}
		e := auditEvent{line: line}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.Fatalf("the audit has a line that is no JSON: %s", fmt.Sprint(err))
		}
		if e.ChangeID == id {
			all = append(all, e)
		}
	}
	return all
}
