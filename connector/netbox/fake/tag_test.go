package fake_test

import "writ/connector/netbox/fake"

func tagRows() []row {
	post := func(send string, status int, want string) step {
		return step{do: "POST /api/extras/tags/", send: send, status: status, want: want}
	}
	patch := func(send string, status int, want string) step {
		return step{do: "PATCH /api/extras/tags/1/", send: send, status: status, want: want}
	}
	return []row{
		{name: "a tag from birth to death", steps: []step{
			{do: "POST /api/extras/tags/", send: `{"name":"Größe","slug":"größe"}`, status: 201, heads: map[string]string{"ETag": "*"},
				want: `{"id":2,"name":"Größe","slug":"größe","color":"9e9e9e","description":"","weight":1000,"object_types":[],"tagged_items":0,"display":"Größe","url":"BASE/api/extras/tags/2/","display_url":"BASE/extras/tags/2/"}`},
			{do: "GET /api/extras/tags/2/", status: 200, want: `{"slug":"größe"}`, heads: map[string]string{"ETag": "*"}},
			{do: "PATCH /api/extras/tags/2/", send: `{"color":"00ff00"}`, status: 200, want: `{"color":"00ff00","slug":"größe"}`, heads: map[string]string{"ETag": "*"}},
			{do: "PUT /api/extras/tags/2/", send: `{"name":"b","slug":"b"}`, status: 200, want: `{"name":"b","color":"00ff00"}`, heads: map[string]string{"ETag": "*"}},
			{do: "DELETE /api/extras/tags/2/", status: 204},
			{do: "GET /api/extras/tags/2/", status: 404, want: `{"detail":"No Tag matches the given query."}`},
			{do: "DELETE /api/extras/tags/2/", status: 404, want: `{"detail":"No Tag matches the given query."}`},
			post(tag, 201, `{"id":3}`),
		}, changes: 5},
		{name: "what is wrong with a tag is said field by field", steps: []step{
			post(`{}`, 400, `{"name":["This field is required."],"slug":["This field is required."]}`),
			post(`{"name":"","slug":null}`, 400, `{"name":["This field may not be blank."],"slug":["This field may not be null."]}`),
			post(`{"name":"x","slug":"a b"}`, 400, `{"slug":["Enter a valid \"slug\" consisting of Unicode letters, numbers, underscores, or hyphens."]}`),
			post(`{"name":"x","slug":"x","color":"00FF00"}`, 400, `{"color":["Enter a valid hexadecimal RGB color code."]}`),
			post(`{"name":"x","slug":"x","color":"0000000"}`, 400, `{"color":["Ensure this field has no more than 6 characters."]}`),
			post(`{"name":"managed","slug":"managed"}`, 400, `{"name":["tag with this name already exists."],"slug":["tag with this slug already exists."]}`),
			post(`{"name":"x","slug":"x","weight":"heavy"}`, 400, `{"weight":["A valid integer is required."]}`),
			post(`{"name":"x","slug":"x","weight":-1}`, 400, `{"weight":["Ensure this value is greater than or equal to 0."]}`),
			post(`{"name":"x","slug":"x","weight":32768}`, 400, `{"weight":["Ensure this value is less than or equal to 32767."]}`),
			post(`{"name":["x"],"slug":"x"}`, 400, `{"name":["Not a valid string."]}`),
			post(`{"name":"x","slug":"x","object_types":["no.such"]}`, 400, `{"object_types":["Invalid content type: no.such"]}`),
			post(`"x"`, 400, `{"non_field_errors":["Invalid data. Expected a dictionary, but got str."]}`),
			post(`{`, 400, `{"detail":"*"}`),
			patch(`{"name":""}`, 400, `{"name":["This field may not be blank."]}`),
			{do: "PUT /api/extras/tags/1/", send: `{"name":"x"}`, status: 400, want: `{"slug":["This field is required."]}`},
			{do: "PATCH /api/extras/tags/1/", send: `[{}]`, status: 400, want: `{"non_field_errors":["Invalid data. Expected a dictionary, but got list."]}`},
			{do: "POST /api/extras/tags/", send: `name=x`, header: "Content-Type: application/x-www-form-urlencoded", status: 415, want: `{"detail":"Unsupported media type \"application/x-www-form-urlencoded\" in request."}`},
			{do: "POST /api/extras/tags/1/", send: tag, status: 405, want: `{"detail":"Method \"POST\" not allowed."}`},
		}},
		{name: "members that do not exist or are read-only are ignored in silence", steps: []step{
			patch(`{"colour":"000000","id":77,"tagged_items":5}`, 200, `{"id":1,"color":"4caf50"}`),
		}, changes: 1},
		{name: "a list makes all or none, with its errors in order", steps: []step{
			post(`[{"name":"a","slug":"a"},{"name":"b","slug":"b"}]`, 201, `[{"id":2},{"id":3}]`),
			post(`[{"name":"c","slug":"c"},{"name":"d"}]`, 400, `[{},{"slug":["This field is required."]}]`),
			{do: "GET /api/extras/tags/?slug=c", status: 200, want: `{"count":0}`},
		}, changes: 2},
		{name: "a PATCH that lost its id is a bulk update", steps: []step{
			{do: "PATCH /api/extras/tags/", send: `{"color":"000000"}`, status: 400, want: `{"non_field_errors":["Expected a list of items but got type \"dict\"."]}`},
			{do: "PATCH /api/extras/tags/", send: `[{"color":"000000"}]`, status: 400, want: `[{"id":["This field is required."]}]`},
			{do: "PATCH /api/extras/tags/", send: `[{"id":1,"color":"000000"},{"id":99,"color":"000000"}]`, status: 200, want: `[{"id":1,"color":"000000"}]`, heads: map[string]string{"ETag": ""}},
			post(tag, 201, `{"id":2}`),
			{do: "PUT /api/extras/tags/", send: `[{"id":1,"name":"m","slug":"m"},{"id":2,"name":"n"}]`, status: 400, want: `[{},{"slug":["This field is required."]}]`},
			{do: "GET /api/extras/tags/1/", status: 200, want: `{"name":"managed"}`},
			{do: "DELETE /api/extras/tags/", send: `[{"id":1},{"id":2}]`, status: 204},
		}, changes: 4},
		{name: "object_types limits what a tag is put on", steps: []step{
			post(`{"name":"net","slug":"net","object_types":["ipam.prefix"]}`, 201, `{"object_types":["ipam.prefix"]}`),
			{do: "PATCH /api/ipam/prefixes/1/", send: `{"tags":[{"slug":"net"}]}`, status: 200, want: `{"tags":[{"slug":"net","name":"net","id":2}]}`},
			{do: "PATCH /api/ipam/ip-addresses/1/", send: `{"tags":[2]}`, status: 400, want: `{"detail":"Tag net cannot be assigned to ipaddress objects."}`},
			{do: "GET /api/extras/tags/2/", status: 200, want: `{"tagged_items":1}`},
		}, changes: 2},
		{name: "a deleted tag is gone from what carried it", steps: []step{
			{do: "DELETE /api/extras/tags/1/", status: 204},
			{do: "GET /api/ipam/ip-addresses/1/", status: 200, want: `{"tags":[]}`},
		}, changes: 1},
		{name: "If-Match guards a write", steps: []step{
			{do: "PATCH /api/extras/tags/1/", send: `{"color":"000000"}`, header: `If-Match: W/"2020-01-01T00:00:00+00:00"`, status: 412, want: `{"detail":"Precondition failed."}`, heads: map[string]string{"ETag": "*"}},
			{do: "PUT /api/extras/tags/1/", send: `{"name":"m","slug":"m"}`, header: `If-Match: "x", "y"`, status: 412, want: `{"detail":"Precondition failed."}`},
			{do: "DELETE /api/extras/tags/1/", header: `If-Match: W/"x"`, status: 412, want: `{"detail":"Precondition failed."}`},
			{do: "PATCH /api/extras/tags/1/", send: `{"color":"000000"}`, header: "If-Match: *", status: 200, want: `{"color":"000000"}`},
		}, changes: 1},
		{name: "uniqueness is the tag's own", config: fake.Config{EnforceUnique: true}, steps: []step{
			patch(`{"name":"managed","slug":"managed"}`, 200, `{"name":"managed"}`),
		}, changes: 1},
	}
}
