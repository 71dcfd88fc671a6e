package fake_test

import (
	"fmt"

	"writ/connector/npm/fake"
)

// failed is the body of an error.
func failed(code int, message string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q}}`, code, message)
}

func accessRows() []row {
	login := func(body string, status int, want string) step {
		return step{do: "POST /tokens", as: "-", send: body, status: status, want: want}
	}
	get := func(path, as string, status int, want string) step {
		return step{do: "GET " + path, as: as, status: status, want: want}
	}
	change := `{"forward_port":1}`
	return []row{
		{name: "the root tells no version that helps", steps: []step{
			get("/", "-", 200, `{"status":"OK","setup":true,"version":{"major":2,"minor":0,"revision":0}}`),
		}},
		{name: "login", steps: []step{
			login(`{"identity":"ADMIN@example.test","secret":"made-up password"}`, 200, `{"token":"*","expires":"*"}`),
			login(`{"identity":"admin@example.test","secret":"made-up password","scope":"user"}`, 200, `{"token":"*"}`),
			login(`{"identity":"totp@example.test","secret":"made-up password"}`, 200, `{"requires_2fa":true,"challenge_token":"*"}`),
			login(`{"identity":"admin@example.test","secret":"wrong"}`, 400, `{"error":{"code":400,"message":"Invalid email or password","message_i18n":"error.invalid-auth"}}`),
			login(`{"identity":"nobody@example.test","secret":"x"}`, 400, failed(400, "Invalid email or password")),
			login(`{"identity":"gone@example.test","secret":"made-up password"}`, 400, failed(400, "Invalid email or password")),
			login(`{"identity":"admin@example.test"}`, 400, failed(400, "data must have required property 'secret'")),
			login(`{"identity":"admin@example.test","secret":"x","expiry":"10y"}`, 400, failed(400, "data must NOT have additional properties")),
			login(`{"identity":"admin@example.test","secret":"x","scope":"admin"}`, 400, failed(400, "data/scope must be equal to one of the allowed values")),
			login(`{"identity":"","secret":"x"}`, 400, failed(400, "data/identity must NOT have fewer than 1 characters")),
			login(`{bad`, 400, failed(400, "Internal Error")),
		}},
		{name: "refresh", steps: []step{
			get("/tokens?expiry=banana", "", 400, failed(400, "Invalid expiry time: banana")),
			get("/tokens?expiry=", "", 200, `{"token":"*"}`),
			get("/tokens", "-", 400, failed(400, "Existing token contained invalid user data")),
		}},
		{name: "no token is a path that does not exist", steps: []step{
			get("/nginx/proxy-hosts", "-", 404, failed(404, "Not Found - /nginx/proxy-hosts")),
			get("/nginx/proxy-hosts/1?expand=owner", "-", 404, failed(404, "Not Found - /nginx/proxy-hosts/1")),
			get("/users/me", "-", 404, failed(404, "Not Found - /users/me")),
			get("/audit-log", "-", 404, failed(404, "Not Found - /audit-log")),
			get("/nginx/access-lists", "-", 404, failed(404, "Not Found - /nginx/access-lists")),
			{do: "POST /nginx/proxy-hosts", as: "-", send: `{"domain_names":["x.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts")},
			{do: "PUT /nginx/proxy-hosts/1", as: "-", send: change, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1")},
			{do: "POST /nginx/proxy-hosts/1/disable", as: "-", status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1/disable")},
			{do: "DELETE /nginx/proxy-hosts/1", as: "-", status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1")},
			{do: "POST /nginx/access-lists", as: "-", send: `{"name":"x"}`, status: 404, want: failed(404, "Not Found - /nginx/access-lists")},
			{do: "DELETE /nginx/access-lists/1", as: "-", status: 404, want: failed(404, "Not Found - /nginx/access-lists/1")},
			get("/nope", "", 404, failed(404, "Not Found - /nope")),
			{do: "PATCH /nginx/proxy-hosts/1", send: change, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1")},
			{do: "PUT /nginx/proxy-hosts", send: change, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts")},
			{do: "PUT /nginx/proxy-hosts/1/enable", send: change, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1/enable")},
		}},
		{name: "a token that is none of ours is a broken server", steps: []step{
			get("/nginx/proxy-hosts", "raw garbage", 500, failed(500, "Internal Error")),
			{do: "PUT /nginx/proxy-hosts/1", as: "raw fake.a.b", send: change, status: 500, want: failed(500, "Internal Error")},
		}},
		{name: "no permission is a path that does not exist", steps: []step{
			get("/nginx/proxy-hosts/1", "viewer@example.test", 200, `{"id":1}`),
			{do: "PUT /nginx/proxy-hosts/1", as: "viewer@example.test", send: change, status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1")},
			{do: "POST /nginx/proxy-hosts/1/disable", as: "viewer@example.test", status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1/disable")},
			get("/nginx/access-lists", "viewer@example.test", 404, failed(404, "Not Found - /nginx/access-lists")),
			get("/audit-log", "viewer@example.test", 404, failed(404, "Not Found - /audit-log")),
			get("/nginx/proxy-hosts/1", "", 200, `{"forward_port":8081}`),
		}},
		{name: "other owners' hosts are not there", steps: []step{
			get("/nginx/proxy-hosts", "owner@example.test", 200, `[]`),
			get("/nginx/proxy-hosts/1", "owner@example.test", 404, failed(404, "Not Found - 1")),
			{do: "PUT /nginx/proxy-hosts/1", as: "owner@example.test", send: change, status: 404, want: failed(404, "Not Found - 1")},
			{do: "POST /nginx/proxy-hosts", as: "owner@example.test", send: `{"domain_names":["own.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 201, want: `{"id":2,"owner_user_id":3}`},
			get("/nginx/proxy-hosts", "owner@example.test", 200, `[{"id":2}]`),
		}, audit: 1},
		{name: "rights change under a token", steps: []step{
			{do: "PUT /nginx/proxy-hosts/1", as: "viewer@example.test", send: `{"forward_port":8082}`, status: 200, want: `{"forward_port":8082}`, before: func(s *fake.Server) { s.SetUser(2, "all", "manage") }},
		}, audit: 1},
		{name: "who am I, and what may I do", steps: []step{
			get("/users/me", "", 200, `{"id":1,"email":"admin@example.test","roles":["admin"],"is_disabled":false}`),
			get("/users/me?expand=permissions", "", 200, `{"permissions":{"visibility":"all","proxy_hosts":"manage","access_lists":"manage","streams":"manage"}}`),
			get("/users/me?expand=permissions", "viewer@example.test", 200, `{"roles":[],"permissions":{"visibility":"all","proxy_hosts":"view","access_lists":"hidden","streams":"hidden"}}`),
		}},
		{name: "the audit log keeps rows", steps: []step{
			{do: "PUT /nginx/proxy-hosts/1", send: `{"forward_port":8082}`, status: 200, want: `{}`},
			get("/audit-log?expand=user", "", 200, `[{"id":1,"user_id":1,"object_type":"proxy-host","object_id":1,"action":"updated","meta":{"id":1,"forward_port":8082,"forward_host":"127.0.0.1"},"user":{"id":1,"is_deleted":false}}]`),
		}, audit: 1},
	}
}
