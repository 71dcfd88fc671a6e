package fake_test

import "writ/connector/netbox/fake"

func prefixRows() []row {
	post := func(send string, status int, want string) step {
		return step{do: "POST /api/ipam/prefixes/", send: send, status: status, want: want}
	}
	again := `{"prefix":"192.0.2.0/24"}`
	return []row{
		{name: "a prefix is made and nested", steps: []step{
			{do: "POST /api/ipam/prefixes/", send: `{"prefix":"192.0.2.128/25","status":"reserved"}`, status: 201, heads: map[string]string{"ETag": "*"},
				want: `{"id":2,"prefix":"192.0.2.128/25","family":{"value":4,"label":"IPv4"},"status":{"value":"reserved","label":"Reserved"},"vrf":null,"_depth":1,"children":0,"tags":[],"custom_fields":{}}`},
			{do: "GET /api/ipam/prefixes/1/", status: 200, want: `{"_depth":0,"children":1,"status":{"value":"active","label":"Active"}}`},
			post(`{"prefix":"2001:db8::/64"}`, 201, `{"family":{"value":6,"label":"IPv6"}}`),
			{do: "DELETE /api/ipam/prefixes/2/", status: 204},
		}, changes: 3},
		{name: "prefixes that are none", steps: []step{
			post(`{"prefix":"192.0.2.1/24"}`, 400, `{"prefix":["192.0.2.1/24 is not a valid prefix. Did you mean 192.0.2.0/24?"]}`),
			post(`{"prefix":"0.0.0.0/0"}`, 400, `{"prefix":["Cannot create prefix with /0 mask."]}`),
			post(`{"prefix":"x"}`, 400, `{"prefix":["Invalid IP prefix format: x"]}`),
			post(`{"prefix":""}`, 400, `{"prefix":["This field may not be blank."]}`),
			post(`{}`, 400, `{"prefix":["This field is required."]}`),
			post(`{"prefix":"198.51.100.0/24","status":"bogus"}`, 400, `{"status":["bogus is not a valid choice."]}`),
			post(`{"prefix":"198.51.100.0/24","status":""}`, 400, `{"status":["This field may not be blank."]}`),
			post(`{"prefix":"198.51.100.0/24","is_pool":"maybe"}`, 400, `{"is_pool":["Must be a valid boolean."]}`),
			post(`{"prefix":"198.51.100.0/24","tenant":5}`, 400, `{"tenant":["Related object not found using the provided numeric ID: 5"]}`),
			post(`{"prefix":"198.51.100.0/24","scope_type":"dcim.nope"}`, 400, `{"scope_type":["Invalid content type: dcim.nope"]}`),
			post(`{"prefix":"198.51.100.0/24","custom_fields":{"x":1}}`, 400, `{"__all__":["Unknown field name 'x' in custom field data."]}`),
		}},
		{name: "what was read of a choice cannot be written back", steps: []step{
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"status":{"value":"active","label":"Active"}}`, status: 400,
				want: `{"status":["Value must be passed directly (e.g. \"foo\": 123); do not use a dictionary or list."]}`},
		}},
		{name: "duplicates are accepted in silence where uniqueness is off", steps: []step{post(again, 201, `{"id":2,"prefix":"192.0.2.0/24"}`)}, changes: 1},
		{name: "duplicates are refused where uniqueness is on", config: fake.Config{EnforceUnique: true}, steps: []step{
			post(again, 400, `{"prefix":["Duplicate prefix found in global table: 192.0.2.0/24"]}`),
			{do: "PATCH /api/ipam/prefixes/1/", send: again, status: 200, want: again},
			{do: "POST /api/ipam/vrfs/", send: `{"name":"blue","rd":"65000:1"}`, status: 201, want: `{"id":1,"enforce_unique":true,"prefix_count":0,"ipaddress_count":0}`},
			{do: "POST /api/ipam/vrfs/", send: `{"name":"blue","rd":"65000:1"}`, status: 400, want: `{"rd":["VRF with this route distinguisher already exists."]}`},
			post(`{"prefix":"192.0.2.0/24","vrf":{"name":"blue"}}`, 201, `{"id":3,"vrf":{"id":1,"name":"blue","rd":"65000:1","prefix_count":1}}`),
			post(`{"prefix":"192.0.2.0/24","vrf":1}`, 400, `{"prefix":["Duplicate prefix found in VRF blue (65000:1): 192.0.2.0/24"]}`),
		}, changes: 3},
		{name: "a VRF that is used stays", steps: []step{
			{do: "POST /api/ipam/vrfs/", send: `{"name":"blue","enforce_unique":false}`, status: 201, want: `{"id":1,"rd":null}`},
			post(`{"prefix":"198.51.100.0/24","vrf":1}`, 201, `{"id":2}`), post(`{"prefix":"198.51.100.0/24","vrf":1}`, 201, `{"id":3}`),
			{do: "DELETE /api/ipam/vrfs/1/", status: 409, want: `{"detail":"Unable to delete object. 2 dependent objects were found: 198.51.100.0/24 (2), 198.51.100.0/24 (3)"}`},
			{do: "GET /api/ipam/prefixes/?vrf_id=1", status: 200, want: `{"count":2}`}, {do: "GET /api/ipam/prefixes/?vrf_id=null", status: 200, want: `{"count":1}`},
		}, changes: 3},
		{name: "tags replace the whole set, add_tags and remove_tags do not", steps: []step{
			{do: "POST /api/extras/tags/", send: tag, status: 201, want: `{"id":2}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"tags":[{"slug":"managed"}]}`, status: 200, want: `{"tags":[{"slug":"managed"}]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"tags":[{"name":"new"}]}`, status: 200, want: `{"tags":[{"slug":"new"}]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"add_tags":[1]}`, status: 200, want: `{"tags":[{"slug":"new"},{"slug":"managed"}]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"remove_tags":[{"slug":"new"}]}`, status: 200, want: `{"tags":[{"slug":"managed"}]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"description":"kept"}`, status: 200, want: `{"tags":[{"slug":"managed"}]}`},
			post(`{"prefix":"198.51.100.0/24","add_tags":[2]}`, 201, `{"tags":[{"slug":"new"}]}`),
		}, changes: 7},
		{name: "tags that do not work", steps: []step{
			post(`{"prefix":"198.51.100.0/24","tags":[{"slug":"x"}]}`, 400, `{"tags":[["Related object not found using the provided attributes: {'slug': 'x'}"]]}`),
			post(`{"prefix":"198.51.100.0/24","tags":[1,"x"]}`, 400, `{"tags":[{},["Related objects must be referenced by numeric ID or by dictionary of attributes. Received an unrecognized value: x"]]}`),
			post(`{"prefix":"198.51.100.0/24","tags":[{"object_types":[]}]}`, 400, `{"tags":[["*"]]}`),
			post(`{"prefix":"198.51.100.0/24","tags":[{"id":1,"slug":"managed"},{}]}`, 400, `{"tags":[{},["Related object not found using the provided attributes: {}"]]}`),
			post(`{"prefix":"198.51.100.0/24","tags":[77]}`, 400, `{"tags":[["Related object not found using the provided numeric ID: 77"]]}`),
			post(`{"prefix":"198.51.100.0/24","tags":"managed"}`, 400, `{"tags":["Expected a list of items but got type \"str\"."]}`),
			post(`{"prefix":"198.51.100.0/24","remove_tags":[1]}`, 400, `{"remove_tags":["*"]}`),
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"tags":[1],"add_tags":[1]}`, status: 400, want: `{"tags":["*"]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"add_tags":[1],"remove_tags":[1]}`, status: 400, want: `{"remove_tags":["*"]}`},
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"tags":[],"add_tags":[1]}`, status: 200, want: `{"tags":[{"slug":"managed"}]}`},
		}, changes: 1},
	}
}

func addressRows() []row {
	post := func(send string, status int, want string) step {
		return step{do: "POST /api/ipam/ip-addresses/", send: send, status: status, want: want}
	}
	take := func(send string, status int, want string) step {
		return step{do: "POST /api/ipam/prefixes/1/available-ips/", send: send, status: status, want: want, heads: map[string]string{"ETag": ""}}
	}
	unique := fake.Config{EnforceUnique: true}
	return []row{
		{name: "an address from birth to death", steps: []step{
			{do: "POST /api/ipam/ip-addresses/", send: `{"address":"192.0.2.9/24","dns_name":"WWW.Lab.Example","role":"vip","nat_inside":1}`, status: 201, heads: map[string]string{"ETag": "*"},
				want: `{"id":2,"address":"192.0.2.9/24","dns_name":"www.lab.example","status":{"value":"active","label":"Active"},"role":{"value":"vip","label":"VIP"},"family":{"value":4,"label":"IPv4"},"assigned_object":null,"nat_inside":{"id":1,"address":"192.0.2.1/24","family":4}}`},
			{do: "GET /api/ipam/ip-addresses/1/", status: 200, want: `{"nat_outside":[{"id":2}],"nat_inside":null}`},
			{do: "PATCH /api/ipam/ip-addresses/2/", send: `{"role":null,"dns_name":"","nat_inside":null}`, status: 200, want: `{"role":null,"dns_name":"","nat_inside":null}`},
			{do: "DELETE /api/ipam/ip-addresses/2/", status: 204},
		}, changes: 3},
		{name: "addresses that are none", steps: []step{
			post(`{"address":"192.0.2.9/0"}`, 400, `{"address":["Cannot create IP address with /0 mask."]}`),
			post(`{"address":"192.0.2.300"}`, 400, `{"address":["Invalid IP address format: 192.0.2.300"]}`),
			post(`{"address":""}`, 400, `{"address":["This field may not be blank."]}`),
			post(`{"address":"192.0.2.9/24","dns_name":"a b"}`, 400, `{"dns_name":["Only alphanumeric characters, asterisks, hyphens, periods, and underscores are allowed in DNS names"]}`),
			post(`{"address":"192.0.2.9/24","assigned_object_type":"dcim.nope","assigned_object_id":1}`, 400, `{"assigned_object_type":["Invalid content type: dcim.nope"]}`),
		}},
		{name: "an address without a mask is a host", steps: []step{post(`{"address":"192.0.2.9"}`, 201, `{"address":"192.0.2.9/32"}`)}, changes: 1},
		{name: "a second equal address is accepted where uniqueness is off", steps: []step{post(`{"address":"192.0.2.1/24"}`, 201, `{"id":2}`)}, changes: 1},
		{name: "a host is refused twice, whatever its mask", config: unique, steps: []step{
			post(`{"address":"192.0.2.1/32"}`, 400, `{"address":["Duplicate IP address found in global table: 192.0.2.1/24"]}`),
			post(`{"address":"192.0.2.1/24","role":"vip"}`, 400, `{"address":["*"]}`),
			post(`{"address":"192.0.2.5/24","role":"vip"}`, 201, `{"id":4}`), post(`{"address":"192.0.2.5/24","role":"vrrp"}`, 201, `{"id":5}`),
			{do: "POST /api/ipam/vrfs/", send: `{"name":"red"}`, status: 201, want: `{"id":1}`},
			post(`{"address":"192.0.2.1/24","vrf":1}`, 201, `{"id":6}`), post(`{"address":"192.0.2.1/24","vrf":1}`, 400, `{"address":["Duplicate IP address found in VRF red: 192.0.2.1/24"]}`),
		}, changes: 4},
		{name: "available addresses are listed without network and broadcast", steps: []step{
			{do: "GET /api/ipam/prefixes/1/available-ips/?limit=2", status: 200, want: `[{"family":4,"address":"192.0.2.2/24","vrf":null},{"address":"192.0.2.3/24"}]`, heads: map[string]string{"ETag": ""}},
			{do: "POST /api/ipam/prefixes/", send: `{"prefix":"198.51.100.0/30"}`, status: 201, want: `{"id":2}`},
			{do: "GET /api/ipam/prefixes/2/available-ips/", status: 200, want: `[{"address":"198.51.100.1/30"},{"address":"198.51.100.2/30"}]`},
			{do: "POST /api/ipam/prefixes/", send: `{"prefix":"198.51.100.8/30","is_pool":true}`, status: 201, want: `{"id":3}`},
			{do: "GET /api/ipam/prefixes/3/available-ips/?limit=1", status: 200, want: `[{"address":"198.51.100.8/30"}]`},
			{do: "PATCH /api/ipam/prefixes/2/", send: `{"mark_utilized":true}`, status: 200, want: `{"mark_utilized":true}`},
			{do: "GET /api/ipam/prefixes/2/available-ips/", status: 200, want: `[]`},
			{do: "POST /api/ipam/prefixes/", send: `{"prefix":"2001:db8::/64"}`, status: 201, want: `{"id":4}`},
			{do: "GET /api/ipam/prefixes/4/available-ips/?limit=1", status: 200, want: `[{"family":6,"address":"2001:db8::1/64"}]`},
			{do: "GET /api/ipam/prefixes/99/available-ips/", status: 404, want: `{"detail":"No Prefix matches the given query."}`},
			{do: "DELETE /api/ipam/prefixes/1/available-ips/", status: 405, want: `{"detail":"Method \"DELETE\" not allowed."}`},
		}, changes: 4},
		{name: "one dict takes one address, a list takes as many", config: unique, steps: []step{
			take(`{"description":"first","dns_name":"A.example","tags":[{"slug":"managed"}],"address":"203.0.113.1/24"}`, 201, `{"id":2,"address":"192.0.2.2/24","description":"first","dns_name":"a.example","tags":[{"slug":"managed"}]}`),
			take(`[{},{"prefix_length":32}]`, 201, `[{"address":"192.0.2.3/24"},{"address":"192.0.2.4/32"}]`),
			take(`{"status":"bogus"}`, 400, `{"status":["bogus is not a valid choice."]}`),
			take(`[{},{"status":"bogus"}]`, 400, `[{},{"status":["*"]}]`),
			take(`{`, 400, `{"detail":"*"}`),
			{do: "GET /api/ipam/prefixes/1/available-ips/?limit=1", status: 200, want: `[{"address":"192.0.2.5/24"}]`},
		}, changes: 3},
		{name: "a full prefix is a conflict", steps: []step{
			{do: "POST /api/ipam/vrfs/", send: `{"name":"red"}`, status: 201, want: `{"id":1}`},
			{do: "POST /api/ipam/prefixes/", send: `{"prefix":"198.51.100.0/31","vrf":1}`, status: 201, want: `{"id":2}`},
			{do: "POST /api/ipam/prefixes/2/available-ips/", send: `[{},{},{}]`, status: 409, want: `{"detail":"Insufficient resources are available to satisfy the request"}`},
			{do: "POST /api/ipam/prefixes/2/available-ips/", send: `[{},{}]`, status: 201, want: `[{"address":"198.51.100.0/31","vrf":{"name":"red"}},{"address":"198.51.100.1/31"}]`},
			{do: "POST /api/ipam/prefixes/2/available-ips/", send: `{}`, status: 409, want: `{"detail":"Insufficient resources are available to satisfy the request"}`},
		}, changes: 4},
	}
}
