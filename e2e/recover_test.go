package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"

	"writ"
)

// recoverCommands keep what was spent, to use it again after a restore.
//
//	spent FILE N               keep all writs that the executor ever took; there must be N
//	replay FILE CODE/REASON…   hand each of them over again: every one is refused, for one of these reasons
func recoverCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"spent": func(s *script, args []string) {
			s.need(args, 2, "spent FILE N")
			var all []writ.Admitted
			for after := ""; ; after = all[len(all)-1].Run {
				req, err := http.NewRequest(http.MethodGet, "http://localhost"+writ.PathSpent+"?after="+url.QueryEscape(after), nil)
				s.Check(err)
				status, body := s.receive(s.overSocket("executor.sock"), req)
				var page writ.Admissions
				if err := json.Unmarshal(body, &page); err != nil || status != http.StatusOK {
					s.Fatalf("the executor does not tell what it took: %d %s", status, body)
				}
				if all = append(all, page.Admitted...); len(page.Admitted) == 0 {
					break
				}
			}
			text, err := json.Marshal(all)
			s.Check(err)
			s.Check(os.WriteFile(s.MkAbs(args[0]), text, 0o600))
			if strconv.Itoa(len(all)) != args[1] {
				s.Fatalf("the executor took %d writs, not %s", len(all), args[1])
			}
		},
		"replay": func(s *script, args []string) {
			s.need(args, 2, "replay FILE CODE/REASON…")
			var all []writ.Admitted
			s.Check(json.Unmarshal([]byte(s.ReadFile(args[0])), &all))
			for _, a := range all {
				if said := s.post("executor.sock", a.Sealed).said(); !slices.Contains(args[1:], said) {
					s.Fatalf("the writ of %s: %s", a.Run, said)
				}
			}
			if len(all) == 0 {
				s.Fatalf("there is nothing to replay")
			}
		},
	}
}
