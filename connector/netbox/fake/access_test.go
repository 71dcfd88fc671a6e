package fake_test

import (
	"net/netip"
	"strings"

	"writ/connector/netbox/fake"
)

// tag is a body that creates a tag.
const tag = `{"name":"new","slug":"new"}`

// denied is what an authentication failure looks like: always 403.
func denied(as, text string) step {
	return step{do: "GET /api/extras/tags/", as: as, status: 403, want: `{"detail":"` + text + `"}`,
		heads: map[string]string{"WWW-Authenticate": "", "X-Request-ID": "*", "API-Version": "4.6"}}
}

func accessRows() []row {
	bad := fake.Config{Tokens: []fake.Token{
		{User: "late", Secret: "nbt_latelatelate.1", Write: true, Expired: true},
		{User: "off", Secret: "nbt_offoffoffoff.1", Write: true, Disabled: true},
		{User: "far", Secret: "nbt_farfarfarfar.1", Write: true, From: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}},
		{User: "near", Secret: "nbt_nearnearnear.1", From: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	}}
	mayNot := `{"detail":"You do not have permission to perform this action."}`
	ok := func(as string) step {
		return step{do: "GET /api/extras/tags/1/", as: as, status: 200, want: `{"slug":"managed"}`}
	}
	return []row{
		{name: "every authentication failure is a 403", config: bad, steps: []step{
			denied("-", "Authentication credentials were not provided."),
			denied("Basic d3JpdGVyOng=", "Authentication credentials were not provided."),
			denied("Token", `Invalid authorization header: Must be in the form \"Bearer <key>.<token>\" or \"Token <token>\"`),
			denied("Token "+strings.Repeat("f", 40), "Invalid v1 token"),
			denied("Bearer "+strings.Repeat("f", 40), "Invalid v1 token"),
			denied("Bearer nbt_unknownunkno.1", "Invalid v2 token"),
			denied("Bearer nbt_readreadread.1", "Invalid v2 token"),
			denied("Bearer nbt_readreadread", "Invalid authorization header: Could not parse key from v2 token. Did you mean to use 'Token' instead of 'Bearer'?"),
			denied("Bearer nbt_latelatelate.1", "Token expired"),
			denied("Bearer nbt_offoffoffoff.1", "Token disabled"),
			denied("Bearer nbt_farfarfarfar.1", "Source IP 127.0.0.1 is not permitted to authenticate using this token."),
		}},
		{name: "the prefix tells the version, not the word", config: bad, steps: []step{
			ok(writer), ok("bearer " + secret(writer)), ok(reader), ok("Token " + secret(reader)), ok("Bearer nbt_nearnearnear.1"),
		}},
		{name: "a token without write_enabled writes nothing", steps: []step{
			{do: "POST /api/extras/tags/", as: reader, send: tag, status: 403, want: mayNot},
			{do: "PATCH /api/extras/tags/1/", as: reader, send: `{"color":"000000"}`, status: 403, want: mayNot},
			{do: "DELETE /api/extras/tags/1/", as: reader, status: 403, want: mayNot},
			{do: "POST /api/ipam/prefixes/1/available-ips/", as: reader, send: `{}`, status: 403, want: mayNot},
			{do: "GET /api/ipam/prefixes/1/available-ips/?limit=1", as: reader, status: 200, want: `[{"address":"192.0.2.2/24"}]`},
		}},
		{name: "a user without the permission", steps: []step{
			{do: "POST /api/extras/tags/", as: narrow, send: tag, status: 201, want: `{"name":"new"}`},
			{do: "DELETE /api/extras/tags/2/", as: narrow, status: 403, want: mayNot},
		}, changes: 1},
		{name: "an object outside the constraint does not exist", steps: []step{
			{do: "GET /api/extras/tags/1/", as: narrow, status: 404, want: `{"detail":"No Tag matches the given query."}`},
			{do: "GET /api/extras/tags/", as: narrow, status: 200, want: `{"count":0,"results":[]}`},
			{do: "PATCH /api/ipam/prefixes/1/", as: narrow, send: `{"description":"x"}`, status: 404, want: `{"detail":"No Prefix matches the given query."}`},
			{do: "POST /api/ipam/prefixes/1/available-ips/", as: narrow, send: `{}`, status: 404, want: `{"detail":"No Prefix matches the given query."}`},
		}},
		{name: "a write that would leave the constraint is rolled back", steps: []step{
			{do: "POST /api/extras/tags/", as: narrow, send: `{"name":"private","slug":"private"}`, status: 403, want: mayNot},
			{do: "POST /api/extras/tags/", as: narrow, send: tag, status: 201, want: `{"id":3}`},
			{do: "PATCH /api/extras/tags/3/", as: narrow, send: `{"name":"private"}`, status: 403, want: mayNot},
			{do: "GET /api/extras/tags/3/", status: 200, want: `{"name":"new"}`},
		}, changes: 1},
		{name: "maintenance mode reads, and writes nothing", config: fake.Config{Maintenance: true}, steps: []step{
			ok(writer),
			{do: "POST /api/extras/tags/", send: tag, status: 503, want: `{"error":"NetBox is currently operating in maintenance mode and is unable to perform write operations. Please try again later.","exception":"InternalError"}`},
			{do: "DELETE /api/extras/tags/1/", status: 503, want: `{"exception":"InternalError"}`},
			{do: "GET /api/extras/tags/?slug=new", status: 200, want: `{"count":0}`},
		}},
		{name: "a path without its slash is redirected, and the body is lost on the way", steps: []step{
			{do: "POST /api/extras/tags", send: tag, status: 301, heads: map[string]string{"Location": "/api/extras/tags/"}},
			{do: "GET /api/extras/tags/1?brief=true", status: 301, heads: map[string]string{"Location": "/api/extras/tags/1/?brief=true"}},
			{do: "GET /api/no/such", status: 404}, {do: "GET /api/no/such/", status: 404}, {do: "GET /extras/tags/", status: 404},
			{do: "GET /api/extras/tags/1/available-ips/", status: 404},
		}},
		{name: "status needs a token", steps: []step{
			{do: "GET /api/status/", as: "-", status: 403, want: `{"detail":"Authentication credentials were not provided."}`},
			{do: "GET /api/status/", as: reader, status: 200, want: `{"netbox-version":"4.6.8"}`, heads: map[string]string{"API-Version": "4.6", "X-Request-ID": "*"}},
			{do: "POST /api/status/", status: 405, want: `{"detail":"Method \"POST\" not allowed."}`},
		}},
		{name: "what the fake cannot do it does not pretend", steps: []step{
			{do: "POST /api/dcim/sites/", send: `{"name":"x","slug":"x"}`, status: 501, want: `{"detail":"This fake does not write dcim/sites."}`},
			{do: "PATCH /api/virtualization/virtual-machines/1/", send: `{"name":"x"}`, status: 501, want: `{"detail":"*"}`},
		}},
	}
}
