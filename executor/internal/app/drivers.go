package app

import (
	"writ/connector"
	"writ/connector/file"
	"writ/connector/http"
	"writ/connector/mock"
	"writ/connector/netbox"
	"writ/connector/npm"
	"writ/connector/proxmox"
	"writ/sys"
)

// drivers lists every kind of system that this executor can act on.
func drivers(s sys.Sys) []connector.Driver {
	return []connector.Driver{
		mock.New(),
		http.New(http.Generic()),
		proxmox.New(),
		netbox.New(),
		npm.New(),
		file.New(s),
	}
}
