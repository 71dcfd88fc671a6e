package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	proxmox "writ/connector/proxmox/fake"
	"writ/connector/recorder"
	"writ/e2e/fakes"
)

// worldOf is the world of one script.
type worldOf struct{ *fakes.World }

// worldCommands make the world and look at it. KIND is proxmox, netbox or npm.
//
//	world                             start the fakes and tell their addresses in the environment
//	writes KIND N [VERB PATH-PREFIX]  exactly N writes reached the fake, with effect or without
//	arrives KIND N                    wait until N writes reached it
//	reads KIND N PATH                 wait until N reads of exactly this path, whatever its query, reached it
//	fault KIND MODE METHOD PATH [key=value…]   let matching requests misbehave (package recorder)
//	release KIND                      end all hangs and faults
//	forget KIND                       count writes from zero again
//	look KIND PATH                    read from the fake past writ, as its administrator; JSON on stdout
//	site HOST                         ask the proxied site; its page on stdout
//	meanwhile KIND WHAT…              somebody else changes something, see meanwhile
func worldCommands() map[string]func(*script, []string) {
	return map[string]func(*script, []string){
		"world": func(s *script, _ []string) { s.startWorld() },
		"writes": func(s *script, args []string) {
			s.need(args, 2, "writes KIND N [VERB PATH]")
			if got := s.seen(args[0], args[2:]); strconv.Itoa(len(got)) != args[1] {
				s.Fatalf("%d writes reached %s, not %s: %s", len(got), args[0], args[1], got)
			}
		},
		"arrives": func(s *script, args []string) {
			s.need(args, 2, "arrives KIND N")
			s.eventually(args[1]+" writes at "+args[0], func() (bool, string) {
				got := s.seen(args[0], args[2:])
				return strconv.Itoa(len(got)) == args[1], fmt.Sprint(len(got))
			})
		},
		"reads": func(s *script, args []string) {
			s.need(args, 3, "reads KIND N PATH")
			s.eventually(args[1]+" reads at "+args[0], func() (bool, string) {
				n := 0
				for _, q := range s.recorder(args[0]).Requests() {
					if path, _, _ := strings.Cut(q.Path, "?"); !q.Write && path == args[2] {
						n++
					}
				}
				return strconv.Itoa(n) == args[1], fmt.Sprint(n)
			})
		},
		"fault": func(s *script, args []string) {
			s.need(args, 4, "fault KIND MODE METHOD PATH [key=value…]")
			s.recorder(args[0]).Inject(s.faultOf(args[1:]))
		},
		"release": func(s *script, args []string) { s.need(args, 1, "release KIND"); s.recorder(args[0]).Release() },
		"forget":  func(s *script, args []string) { s.need(args, 1, "forget KIND"); s.recorder(args[0]).Reset() },
		"look": func(s *script, args []string) {
			s.need(args, 2, "look KIND PATH")
			s.page(s.world.request(s, args[0], http.MethodGet, args[1], nil))
		},
		"site": func(s *script, args []string) {
			s.need(args, 1, "site HOST")
			req, err := http.NewRequest(http.MethodGet, s.world.SiteURL, nil)
			s.Check(err)
			req.Host = args[0]
			s.page(s.send(req))
		},
		"meanwhile": func(s *script, args []string) { s.need(args, 2, "meanwhile KIND WHAT…"); s.meanwhile(args) },
	}
}

func (s *script) startWorld() {
	w := fakes.Start()
	s.world = &worldOf{w}
	for name, value := range map[string]string{
		"PROXMOX_URL": w.ProxmoxURL, "NETBOX_URL": w.NetBoxURL, "NPM_URL": w.NPMURL, "SITE_URL": w.SiteURL,
		"PROXMOX_PIN": w.ProxmoxPin, "PROXMOX_TOKEN_ID": fakes.ProxmoxTokenID, "PROXMOX_SECRET": fakes.ProxmoxSecret,
		"PROXMOX_READER_ID": fakes.ProxmoxReaderID, "PROXMOX_READER": fakes.ProxmoxReaderToken,
		"NETBOX_TOKEN": fakes.NetBoxToken, "NETBOX_READER": fakes.NetBoxReadToken, "NPM_EMAIL": fakes.NPMEmail, "NPM_SECRET": fakes.NPMSecret,
		"OLD_HOST": w.OldBackend.Host, "OLD_PORT": w.OldBackend.Port, "NEW_HOST": w.NewBackend.Host, "NEW_PORT": w.NewBackend.Port,
		"DOMAIN": fakes.Domain,
	} {
		s.Setenv(name, value)
	}
}

func (s *script) recorder(kind string) *recorder.Recorder {
	switch kind {
	case "proxmox":
		return s.world.Proxmox.Recorder
	case "netbox":
		return s.world.NetBox.Recorder
	case "npm":
		return s.world.NPM.Recorder
	case "dns":
		return s.dns
	}
	s.Fatalf("there is no fake of kind %q", kind)
	return nil
}

// seen lists the writes that reached a fake, all or those of a verb and below a path.
func (s *script) seen(kind string, match []string) []string {
	var got []string
	for _, q := range s.recorder(kind).Writes() {
		line := q.Method + " " + q.Path
		if len(match) == 0 || strings.HasPrefix(line, strings.Join(match, " ")) {
			got = append(got, line)
		}
	}
	return got
}

func (s *script) faultOf(args []string) recorder.Fault {
	f := recorder.Fault{Mode: args[0], Method: args[1], Path: args[2]}
	for _, pair := range args[3:] {
		key, value, _ := strings.Cut(pair, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "times":
			f.Times = n
		case "skip":
			f.Skip = n
		case "status":
			f.Status = n
		case "reason":
			f.Reason = value
		case "body":
			f.Body = value
		default:
			s.Fatalf("a fault has no %q", key)
		}
	}
	return f
}

// meanwhile changes something as somebody else would, past writ:
//
//	proxmox touch VMID · proxmox set VMID OPTION VALUE ·
//	proxmox guest VMID HOSTNAME · proxmox fail-next-task|end-next-task EXITSTATUS · proxmox lose-next-create
//	netbox post|patch PATH JSON
//	npm put PATH JSON · npm break HOST-ID TEXT · npm lag N
func (s *script) meanwhile(args []string) {
	what, rest := args[0]+" "+args[1], args[2:]
	number := func(i int) int {
		if i >= len(rest) {
			s.Fatalf("meanwhile %s lacks a number", what)
		}
		n, err := strconv.Atoi(rest[i])
		s.Check(err)
		return n
	}
	switch what {
	case "proxmox touch":
		s.world.Proxmox.Touch(number(0))
	case "proxmox set":
		s.need(rest, 3, "meanwhile proxmox set VMID OPTION VALUE")
		s.world.Proxmox.Set(number(0), rest[1], rest[2])
	case "proxmox guest":
		s.need(rest, 2, "meanwhile proxmox guest VMID HOSTNAME")
		s.world.Proxmox.AddLXC(number(0), proxmox.Guest{Hostname: rest[1]})
	case "proxmox fail-next-task", "proxmox end-next-task":
		s.need(rest, 1, "meanwhile "+what+" EXITSTATUS")
		if args[1] == "fail-next-task" {
			s.world.Proxmox.FailNextTask(rest[0])
		} else {
			s.world.Proxmox.EndNextTask(rest[0])
		}
	case "proxmox lose-next-create":
		s.world.Proxmox.LoseNextCreate()
	case "npm break":
		s.need(rest, 2, "meanwhile npm break HOST-ID TEXT")
		s.world.NPM.BreakNginx(number(0), rest[1])
	case "npm lag":
		s.world.NPM.ReloadLag(number(0))
	case "netbox post", "netbox patch", "npm put":
		s.need(rest, 2, "meanwhile "+what+" PATH JSON")
		s.page(s.world.request(s, args[0], strings.ToUpper(args[1]), rest[0], []byte(rest[1])))
		s.recorder(args[0]).Reset()
	default:
		s.Fatalf("nobody can do %q meanwhile", what)
	}
}

// request asks a fake as its administrator.
func (w *worldOf) request(s *script, kind, method, path string, body []byte) (int, []byte) {
	base := map[string]string{"proxmox": w.ProxmoxURL, "netbox": w.NetBoxURL, "npm": w.NPMURL}[kind]
	req, err := http.NewRequest(method, base+path, bytes.NewReader(body))
	s.Check(err)
	req.Header.Set("Content-Type", "application/json")
	switch kind {
	case "proxmox":
		req.Header.Set("Authorization", "PVEAPIToken="+fakes.ProxmoxTokenID+"="+fakes.ProxmoxSecret)
	case "netbox":
		req.Header.Set("Authorization", "Token "+fakes.NetBoxToken)
	case "npm":
		login, err := json.Marshal(map[string]string{"identity": fakes.NPMEmail, "secret": fakes.NPMSecret})
		s.Check(err)
		resp, err := http.Post(base+"/api/tokens", "application/json", bytes.NewReader(login))
		s.Check(err)
		defer resp.Body.Close()
		var token struct{ Token string }
		s.Check(json.NewDecoder(resp.Body).Decode(&token))
		req.Header.Set("Authorization", "Bearer "+token.Token)
	}
	return s.send(req)
}

func (s *script) send(req *http.Request) (int, []byte) {
	resp, err := s.world.Client.Do(req)
	s.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	s.Check(err)
	return resp.StatusCode, body
}

// page puts an answer on stdout, its status first and JSON with one member a line.
func (s *script) page(status int, body []byte) {
	var pretty bytes.Buffer
	if json.Indent(&pretty, body, "", "  ") != nil {
		pretty.Reset()
		pretty.Write(body)
	}
	fmt.Fprintf(s.Stdout(), "status %d\n%s\n", status, pretty.Bytes())
}
