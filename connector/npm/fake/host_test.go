package fake_test

import "writ/connector/npm/fake"

func bodyRows() []row {
	put := func(body string, status int, want string) step {
		return step{do: "PUT /nginx/proxy-hosts/1", send: body, status: status, want: want}
	}
	post := func(body string, status int, want string) step {
		return step{do: "POST /nginx/proxy-hosts", send: body, status: status, want: want}
	}
	whole := func(more string) string {
		return `{"domain_names":["new.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1` + more + `}`
	}
	return []row{
		{name: "a PUT is partial", steps: []step{
			put(`{"forward_port":8082}`, 200, `{"forward_port":8082,"forward_host":"127.0.0.1","domain_names":["app.example.test"]}`),
			put(`{}`, 400, failed(400, "data must NOT have fewer than 1 properties")),
		}, audit: 1},
		{name: "what was read cannot be written back", steps: []step{
			put(`{"id":1,"created_on":"x","modified_on":"x","owner_user_id":1,"forward_port":1,"locations":null}`, 400,
				failed(400, "data must NOT have additional properties, data must NOT have additional properties, data must NOT have additional properties, data must NOT have additional properties, data/locations must be array")),
			put(`{"owner":{},"certificate":null,"access_list":null}`, 400, failed(400, "data must NOT have additional properties, data must NOT have additional properties, data must NOT have additional properties")),
			put(`{"locations":[]}`, 200, `{"locations":[]}`),
			put(`{"locations":[{"path":"/x","forward_scheme":"http","forward_host":"h","forward_port":1,"owner":1}]}`, 400, failed(400, "data/locations/0 must NOT have additional properties")),
			put(`{"locations":[{"path":"/x"}]}`, 400, failed(400, "data/locations/0 must have required property 'forward_scheme', data/locations/0 must have required property 'forward_host', data/locations/0 must have required property 'forward_port'")),
			put(`{"locations":["/x"]}`, 400, failed(400, "data/locations/0 must be object")),
		}, audit: 1},
		{name: "values are coerced", steps: []step{
			put(`{"forward_port":"8083"}`, 200, `{"forward_port":8083}`),
			put(`{"forward_host":5,"caching_enabled":"true","block_exploits":1}`, 200, `{"forward_host":"5","caching_enabled":true,"block_exploits":true}`),
			put(`{"caching_enabled":null}`, 200, `{"caching_enabled":false}`),
			{do: "PUT /nginx/proxy-hosts/1", send: "forward_port=8084", form: true, status: 200, want: `{"forward_port":8084}`},
		}, audit: 4},
		{name: "values out of bounds", steps: []step{
			put(`{"forward_port":0}`, 400, failed(400, "data/forward_port must be >= 1")),
			put(`{"forward_port":70000}`, 400, failed(400, "data/forward_port must be <= 65535")),
			put(`{"forward_port":80.5}`, 400, failed(400, "data/forward_port must be integer")),
			put(`{"forward_scheme":"ftp"}`, 400, failed(400, "data/forward_scheme must be equal to one of the allowed values")),
			put(`{"forward_host":""}`, 400, failed(400, "data/forward_host must NOT have fewer than 1 characters")),
			put(`{"forward_host":["h"]}`, 400, failed(400, "data/forward_host must be string")),
			put(`{"caching_enabled":"yes"}`, 400, failed(400, "data/caching_enabled must be boolean")),
			put(`{"access_list_id":-1}`, 400, failed(400, "data/access_list_id must be >= 0")),
			put(`{"certificate_id":"old"}`, 400, failed(400, `data/certificate_id must be integer, data/certificate_id must match pattern "^new$", data/certificate_id must match a schema in anyOf`)),
			put(`{"domain_names":[]}`, 400, failed(400, "data/domain_names must NOT have fewer than 1 items")),
			put(`{"domain_names":["a.test","a.test"]}`, 400, failed(400, "data/domain_names must NOT have duplicate items (items ## 0 and 1 are identical)")),
			put(`{"domain_names":["a b"]}`, 400, failed(400, `data/domain_names/0 must match pattern "^[^&| @!#%^();:/\\}{=+?<>,~`+"`"+`'"]+$"`)),
			put(`{"meta":1}`, 400, failed(400, "data/meta must be object")),
			put(`{bad`, 400, failed(400, "Internal Error")),
		}},
		{name: "a create says what is missing", steps: []step{
			post(`{"domain_names":["x.example.test"]}`, 400, failed(400, "data must have required property 'forward_scheme', data must have required property 'forward_host', data must have required property 'forward_port'")),
			post(whole(`,"bogus":1`), 400, failed(400, "data must NOT have additional properties")),
			post(whole(``), 201, `{"id":2,"meta":{},"locations":null,"enabled":true,"access_list":null,"certificate":null,"owner":{"id":1}}`),
			{do: "GET /nginx/proxy-hosts/2", status: 200, want: `{"meta":{"nginx_online":true,"nginx_err":null}}`},
		}, audit: 1},
		{name: "ordering a certificate fails, after the row of a create", steps: []step{
			put(`{"certificate_id":"new","forward_port":9}`, 500, failed(500, "Internal Error")),
			{do: "GET /nginx/proxy-hosts/1", status: 200, want: `{"forward_port":8081,"certificate_id":0}`},
			post(whole(`,"certificate_id":"new"`), 500, failed(500, "Internal Error")),
			{do: "GET /nginx/proxy-hosts/2", status: 200, want: `{"domain_names":["new.example.test"]}`},
		}},
	}
}

func hostRows() []row {
	put := func(body string, status int, want string) step {
		return step{do: "PUT /nginx/proxy-hosts/1", send: body, status: status, want: want}
	}
	get := func(path string, status int, want string) step {
		return step{do: "GET /nginx/proxy-hosts" + path, status: status, want: want}
	}
	return []row{
		{name: "reading hosts", steps: []step{
			get("/1", 200, `{"id":1,"owner_user_id":1,"locations":null,"meta":{"nginx_online":true,"nginx_err":null}}`),
			get("/", 200, `[{"id":1}]`), get("?query=app.ex", 200, `[{"id":1}]`), get("?query=zzz", 200, `[]`),
			get("/1?expand=owner,certificate,access_list", 200, `{"owner":{"id":1,"roles":["admin"]},"certificate":null,"access_list":null}`),
			get("?expand=owner", 200, `[{"owner":{"id":1}}]`),
			get("/1?expand=bogus", 500, failed(500, "Internal Error")), get("?expand=bogus", 500, failed(500, "Internal Error")),
			get("?expand=access_list.clients", 500, failed(500, "Internal Error")),
			get("/9999", 404, failed(404, "Not Found - 9999")), get("/abc", 400, failed(400, "Internal Error")),
			{do: "PUT /nginx/proxy-hosts/9999", send: `{"forward_port":81}`, status: 404, want: failed(404, "Not Found - 9999")},
		}},
		{name: "a domain is used once, in any case", steps: []step{
			{do: "POST /nginx/proxy-hosts", send: `{"domain_names":["b.example.test","APP.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 400, want: failed(400, "APP.example.test is already in use")},
			{do: "POST /nginx/proxy-hosts", send: `{"domain_names":["a.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 201, want: `{"id":2}`},
			put(`{"domain_names":["app.example.test","a.example.test"]}`, 400, failed(400, "a.example.test is already in use")),
			put(`{"domain_names":["app.example.test","c.example.test"]}`, 200, `{"domain_names":["app.example.test","c.example.test"]}`),
			get("", 200, `[{"id":2},{"id":1}]`),
		}, audit: 2},
		{name: "without a certificate TLS switches are off in silence", steps: []step{
			put(`{"ssl_forced":true,"http2_support":true,"hsts_enabled":true,"hsts_subdomains":true}`, 200, `{"ssl_forced":false,"http2_support":false,"hsts_enabled":false,"hsts_subdomains":false}`),
			put(`{"certificate_id":77,"ssl_forced":true,"hsts_enabled":true}`, 200, `{"certificate_id":77,"certificate":null,"ssl_forced":true,"hsts_enabled":true}`),
		}, audit: 2},
		{name: "meta is replaced, and nginx adds its word", steps: []step{
			put(`{"meta":{"change_ref":"CHG-1"}}`, 200, `{"meta":{"change_ref":"CHG-1","nginx_online":true,"nginx_err":null}}`),
			put(`{"forward_port":5}`, 200, `{"meta":{"change_ref":"CHG-1"}}`),
		}, audit: 2},
		{name: "enable and disable", steps: []step{
			{do: "POST /nginx/proxy-hosts/1/enable", status: 400, want: failed(400, "Host is already enabled")},
			{do: "POST /nginx/proxy-hosts/1/disable", status: 200, want: `true`},
			{do: "POST /nginx/proxy-hosts/1/disable", status: 400, want: failed(400, "Host is already disabled")},
			put(`{"forward_port":8085}`, 200, `{"enabled":false,"forward_port":8085}`),
			{do: "POST /nginx/proxy-hosts/1/enable", status: 200, want: `true`},
			{do: "POST /nginx/proxy-hosts/9/enable", status: 404, want: failed(404, "Not Found - 9")},
			{do: "POST /nginx/proxy-hosts/1/explode", status: 404, want: failed(404, "Not Found - /nginx/proxy-hosts/1/explode")},
		}, audit: 3},
		{name: "a deleted id is gone for good, its domain is free", steps: []step{
			{do: "DELETE /nginx/proxy-hosts/1", status: 200, want: `true`},
			{do: "DELETE /nginx/proxy-hosts/1", status: 404, want: failed(404, "Not Found - 1")},
			get("", 200, `[]`),
			{do: "POST /nginx/proxy-hosts", send: `{"domain_names":["app.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 201, want: `{"id":2}`},
		}, audit: 2},
		{name: "the last writer wins: there is no version to hold on to", steps: []step{
			put(`{"forward_port":1}`, 200, `{"forward_port":1}`), put(`{"caching_enabled":true}`, 200, `{"forward_port":1,"caching_enabled":true}`),
		}, audit: 2},
	}
}

func nginxRows() []row {
	const emerg = "[emerg] 1#1: host not found in upstream\nnginx: configuration file /etc/nginx/nginx.conf test failed\n"
	put := func(body string, status int, want string) step {
		return step{do: "PUT /nginx/proxy-hosts/1", send: body, status: status, want: want}
	}
	get := func(want string) step { return step{do: "GET /nginx/proxy-hosts/1", status: 200, want: want} }
	after := func(s step, f func(*fake.Server)) step { s.before = f; return s }
	return []row{
		{name: "200 does not mean working", steps: []step{
			after(put(`{"forward_port":8082}`, 200, `{"forward_port":8082,"meta":{"nginx_online":false,"nginx_err":"[emerg] 1#1: host not found in upstream\nnginx: configuration file /etc/nginx/nginx.conf test failed\n"}}`),
				func(s *fake.Server) { s.BreakNginx(1, emerg) }),
			get(`{"forward_port":8082,"meta":{"nginx_online":false}}`),
			after(put(`{"forward_port":8081}`, 200, `{"meta":{"nginx_online":true,"nginx_err":null}}`), (*fake.Server).Repair),
			put(`{"advanced_config":"add_header X y;\nbogus_directive on;"}`, 200, `{"meta":{"nginx_online":false,"nginx_err":"*"}}`),
			put(`{"advanced_config":"add_header X y;"}`, 200, `{"meta":{"nginx_online":true}}`),
		}, audit: 4},
		{name: "500 does not mean unchanged", steps: []step{
			after(put(`{"forward_port":8090}`, 500, failed(500, "Internal Error")), (*fake.Server).BreakOther),
			get(`{"forward_port":8090,"meta":{"nginx_online":true,"nginx_err":null}}`),
			{do: "POST /nginx/proxy-hosts/1/disable", status: 500, want: failed(500, "Internal Error")}, get(`{"enabled":false}`),
			{do: "POST /nginx/proxy-hosts/1/enable", status: 500, want: failed(500, "Internal Error")}, get(`{"enabled":true}`),
			{do: "POST /nginx/proxy-hosts", send: `{"domain_names":["n.example.test"],"forward_scheme":"http","forward_host":"h","forward_port":1}`, status: 500, want: failed(500, "Internal Error")},
			{do: "DELETE /nginx/proxy-hosts/2", status: 500, want: failed(500, "Internal Error")},
			{do: "GET /nginx/proxy-hosts/2", status: 404, want: failed(404, "Not Found - 2")},
			after(put(`{"forward_port":8081}`, 200, `{"forward_port":8081}`), (*fake.Server).Repair),
		}, audit: 2},
		{name: "a break of one host leaves the others alone", steps: []step{
			after(put(`{"forward_port":8082}`, 200, `{"meta":{"nginx_online":true}}`), func(s *fake.Server) { s.BreakNginx(7, emerg) }),
		}, audit: 1},
		{name: "any forward_host and any id is taken", steps: []step{
			put(`{"forward_host":"127.0.0.1\"; return 418; #"}`, 200, `{"forward_host":"127.0.0.1\"; return 418; #","meta":{"nginx_online":true}}`),
			put(`{"access_list_id":55}`, 200, `{"access_list_id":55,"access_list":null}`),
		}, audit: 2},
	}
}

func listRows() []row {
	list := `{"name":"lan-only","satisfy_any":false,"pass_auth":false,"items":[],"clients":[{"address":"10.0.0.0/8","directive":"allow"}]}`
	return []row{
		{name: "access lists", steps: []step{
			{do: "GET /nginx/access-lists", status: 200, want: `[]`},
			{do: "POST /nginx/access-lists", send: list, status: 201, want: `{"id":1,"name":"lan-only","proxy_host_count":0,"clients":[{"address":"10.0.0.0/8","directive":"allow"}],"items":[]}`},
			{do: "POST /nginx/access-lists", send: `{"name":"a"}`, status: 201, want: `{"id":2}`},
			{do: "POST /nginx/access-lists", send: `{"nam":"x"}`, status: 400, want: failed(400, "data must have required property 'name', data must NOT have additional properties")},
			{do: "PUT /nginx/proxy-hosts/1", send: `{"access_list_id":1}`, status: 200, want: `{"access_list":{"id":1,"is_deleted":false,"clients":[{"address":"10.0.0.0/8"}],"items":[]}}`},
			{do: "GET /nginx/access-lists", status: 200, want: `[{"name":"a","proxy_host_count":0},{"name":"lan-only","proxy_host_count":1}]`},
			{do: "GET /nginx/proxy-hosts/1?expand=access_list.clients", status: 200, want: `{"access_list":{"name":"lan-only","clients":[{"id":1}]}}`},
			{do: "DELETE /nginx/access-lists/1", status: 200, want: `true`},
			{do: "DELETE /nginx/access-lists/1", status: 404, want: failed(404, "Not Found - 1")},
			{do: "DELETE /nginx/access-lists/x", status: 400, want: failed(400, "Internal Error")},
			{do: "GET /nginx/proxy-hosts/1", status: 200, want: `{"access_list_id":0}`},
		}, audit: 4},
	}
}
