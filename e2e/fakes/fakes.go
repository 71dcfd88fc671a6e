// Package fakes is a small world to act on: a Proxmox VE, a NetBox and a Nginx
// Proxy Manager with the site behind it, all on loopback and in memory. The
// demo and the end-to-end tests run against it.
package fakes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"

	netbox "writ/connector/netbox/fake"
	npm "writ/connector/npm/fake"
	proxmox "writ/connector/proxmox/fake"
)

// The credentials of the world. They are not secrets; they are distinctive, so
// that a test can look for them where they must not be.
const (
	ProxmoxTokenID     = "writ@pve!demo"
	ProxmoxSecret      = "fake-pve-secret-4b1d0c5e-not-real"
	ProxmoxReaderID    = "writ@pve!reader"
	ProxmoxReaderToken = "fake-pve-reader-77aa2f10-not-real"
	NetBoxToken        = "fakenetboxtoken0123456789abcdefnotreal00"
	NetBoxReadToken    = "fakenetboxreader0123456789abcdenotreal00"
	NPMEmail           = "writ@example.test"
	NPMSecret          = "fake-npm-password-91c3-not-real"
)

// Secrets lists every value above that no one but the executor may hold.
func Secrets() []string {
	return []string{ProxmoxSecret, ProxmoxReaderToken, NetBoxToken, NetBoxReadToken, NPMSecret}
}

// Domain is the site that the Nginx Proxy Manager serves to begin with, from
// the old backend.
const Domain = "app.example.test"

// World is everything that was started.
type World struct {
	Proxmox *proxmox.Server
	NetBox  *netbox.Server
	NPM     *npm.Server

	ProxmoxURL string // https, self-signed
	ProxmoxPin string // SHA-256 of its certificate
	NetBoxURL  string
	NPMURL     string
	SiteURL    string // proxied traffic, by Host header
	OldBackend Backend
	NewBackend Backend
	Client     *http.Client // trusts all of it

	servers []*httptest.Server
}

// Backend is a web server with one page.
type Backend struct {
	Host string
	Port string
	Page string
}

// Start starts a new world. Close ends it.
func Start() *World {
	w := &World{}
	w.OldBackend, w.NewBackend = w.backend("the old application, version 1"), w.backend("the new application, version 2")
	w.Proxmox = proxmox.NewDemo(proxmox.Config{Tokens: map[string]proxmox.Token{
		ProxmoxTokenID:  {Secret: ProxmoxSecret, Privileges: map[string][]string{"/": proxmox.Administrator()}},
		ProxmoxReaderID: {Secret: ProxmoxReaderToken, Privileges: map[string][]string{"/": proxmox.Auditor()}},
	}})
	w.NetBox = netbox.New(netbox.Config{Demo: true, EnforceUnique: true, Tokens: []netbox.Token{
		{User: "writ", Secret: NetBoxToken, Write: true}, {User: "reader", Secret: NetBoxReadToken},
	}})
	var port int
	_, _ = fmt.Sscan(w.OldBackend.Port, &port)
	w.NPM = npm.New(npm.Config{
		Users: []npm.User{{Email: NPMEmail, Secret: NPMSecret, Admin: true, Visibility: "all", ProxyHosts: "manage", AccessLists: "view"}},
		Hosts: []npm.Host{{Domain: Domain, Scheme: "http", Forward: w.OldBackend.Host, Port: port}},
	})
	pve := httptest.NewTLSServer(w.Proxmox)
	pin := sha256.Sum256(pve.Certificate().Raw)
	w.ProxmoxURL, w.ProxmoxPin, w.Client = w.serve(pve)+"/api2/json", hex.EncodeToString(pin[:]), pve.Client()
	w.NetBoxURL = w.serve(httptest.NewServer(w.NetBox))
	w.NPMURL = w.serve(httptest.NewServer(w.NPM))
	w.SiteURL = w.serve(httptest.NewServer(w.NPM.ProxyHandler()))
	return w
}

func (w *World) serve(s *httptest.Server) string {
	w.servers = append(w.servers, s)
	return s.URL
}

func (w *World) backend(page string) Backend {
	at := w.serve(httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, page+"\n")
	})))
	u, err := url.Parse(at)
	if err != nil {
		panic(err) // httptest made it
	}
	return Backend{Host: u.Hostname(), Port: u.Port(), Page: page}
}

// Close ends everything.
func (w *World) Close() {
	w.Proxmox.Release()
	w.NetBox.Release()
	w.NPM.Release()
	for _, s := range w.servers {
		s.CloseClientConnections()
		s.Close()
	}
}
