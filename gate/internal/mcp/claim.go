package mcp

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"writ/gate/internal/model"
)

// sessionHeader carries what a client was given when it was connected, in each
// call after that; revisions that are connected once know no other way.
const sessionHeader = "Mcp-Session-Id"

// maxSession bounds it, in bytes.
const maxSession = 2048

// remember gives a client that connects an id that says who it claims to be. The
// gate keeps nothing: an id is good after a restart, proves nothing, and is worth
// as much as the same words in each call. Who calls is told by the token alone.
func (s *Server) remember(w http.ResponseWriter, body []byte) {
	var message struct {
		Method string `json:"method"`
		Params struct {
			Client struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"clientInfo"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &message) != nil || message.Method != "initialize" {
		return
	}
	said := model.NewSession(message.Params.Client.Name, message.Params.Client.Version, nil)
	if said == nil {
		return
	}
	text, err := json.Marshal([]string{string(said.Client), string(said.Version)})
	id := s.gate.Pipeline.Sys.NewID("mcp") + "." + base64.RawURLEncoding.EncodeToString(text)
	if err == nil && len(id) <= maxSession {
		w.Header().Set(sessionHeader, id)
	}
}

// remembered is what the id of a call says; nil if it says nothing.
func remembered(r *http.Request) *model.Session {
	id := r.Header.Get(sessionHeader)
	_, coded, _ := strings.Cut(id, ".")
	text, err := base64.RawURLEncoding.DecodeString(coded)
	var said [2]string
	if len(id) > maxSession || err != nil || json.Unmarshal(text, &said) != nil {
		return nil
	}
	return model.NewSession(said[0], said[1], nil)
}
