package http_test

import (
	"testing"

	"writ"
	"writ/catalog"
	"writ/connector/connectortest"
	"writ/connector/http"
)

func TestDriver(t *testing.T) {
	t.Parallel()
	for auth, secrets := range map[string]func(token string) map[string]string{
		"bearer": func(token string) map[string]string { return map[string]string{"token": token} },
		"header": func(token string) map[string]string { return map[string]string{"token": token} },
		"basic": func(token string) map[string]string {
			return map[string]string{"username": "someone", "password": token}
		},
	} {
		options := map[string]string{"auth": auth, "check": "/status"}
		if auth == "header" {
			options["header"] = "X-Fake-Key"
		}
		t.Run(auth, func(t *testing.T) {
			t.Parallel()
			connectortest.Run(t, connectortest.Suite{
				Driver: http.New(http.Generic()),
				World: func(*testing.T) connectortest.World {
					fake, recorded := newFakeAPI()
					return connectortest.World{Options: options, Secrets: secrets(fullToken), Fake: recorded,
						Written: func() bool { return fake.has("second") }}
				},
				Read:   catalog.Call{Verb: "get", Path: "/things/first"},
				Write:  catalog.Call{Verb: "put", Path: "/things/second", JSON: map[string]any{"size": int64(5)}},
				Absent: catalog.Call{Verb: "get", Path: "/things/none"},
				HTTP: &connectortest.HTTP{
					BasePath:  "/api",
					Wrong:     secrets("fake-token-of-nobody"),
					Powerless: secrets(poorToken),
					Privilege: "/status",
					Answers:   answers,
				},
			})
		})
	}
}

// answers is what a status means for a write, as REST APIs in general mean it.
var answers = []connectortest.Answer{
	{Status: 301, Outcome: writ.NotExecuted, Reason: "redirect_refused"},
	{Status: 302, Outcome: writ.Unknown, Reason: "redirect_refused"},
	{Status: 303, Outcome: writ.Unknown, Reason: "redirect_refused"},
	{Status: 304, Outcome: writ.Unknown, Reason: "redirect_refused"},
	{Status: 307, Outcome: writ.NotExecuted, Reason: "redirect_refused"},
	{Status: 400, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 401, Outcome: writ.NotExecuted, Reason: "unauthenticated"},
	{Status: 403, Outcome: writ.NotExecuted, Reason: "permission_denied"},
	{Status: 404, Outcome: writ.NotExecuted, Reason: "not_found"},
	{Status: 405, Outcome: writ.NotExecuted, Reason: "method_not_allowed"},
	{Status: 408, Outcome: writ.Unknown, Reason: "unexpected_status"},
	{Status: 409, Outcome: writ.NotExecuted, Reason: "conflict"},
	{Status: 410, Outcome: writ.NotExecuted, Reason: "gone"},
	{Status: 412, Outcome: writ.NotExecuted, Reason: "precondition_failed"},
	{Status: 413, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 415, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 422, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 423, Outcome: writ.Failed, Reason: "locked"},
	{Status: 428, Outcome: writ.Failed, Reason: "rejected"},
	{Status: 429, Outcome: writ.NotExecuted, Reason: "rate_limited"},
	{Status: 499, Outcome: writ.Unknown, Reason: "unexpected_status"},
	{Status: 500, Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 501, Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 502, Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 503, Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 595, Phrase: "no route to host", Outcome: writ.Unknown, Reason: "server_error"},
	{Status: 599, Outcome: writ.Unknown, Reason: "server_error"},
}
