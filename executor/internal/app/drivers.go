package app

import (
	"writ/connector"
	"writ/connector/http"
)

// drivers lists every kind of system that this executor can act on.
func drivers() []connector.Driver {
	return []connector.Driver{
		http.New(http.Generic()),
	}
}
