package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"writ"
	"writ/fault"
)

// Scope is what the expressions of an action may see. Its fields fill up as a
// step goes on: System, Params and Settings first, Resolved, Observed, then
// Backup (the named observations as they were before anything was written; for
// a preview, what was just observed), Applied, and Probed.
type Scope struct {
	System   string
	Params   writ.Object
	Settings writ.Object
	Resolved writ.Object
	Observed map[string]Seen
	Backup   map[string]Seen
	Applied  map[string]Seen
	Probed   map[string]Seen
}

// view is a scope as CEL asks for it, with the answer that is looked at if there is one.
type view struct {
	*Scope
	response *Seen
}

// ResolveName implements cel.Activation.
func (v view) ResolveName(name string) (any, bool) {
	switch name {
	case "system":
		return v.System, true
	case "params":
		return plain(v.Params), true
	case "settings":
		return plain(v.Settings), true
	case "resolved":
		return plain(v.Resolved), true
	case "observed":
		return seenMap(v.Observed), true
	case "backup":
		return seenMap(v.Backup), true
	case "applied":
		return seenMap(v.Applied), true
	case "probed":
		return seenMap(v.Probed), true
	case "response":
		if v.response != nil {
			return seenFields(*v.response), true
		}
	}
	return nil, false
}

// Parent implements cel.Activation.
func (v view) Parent() cel.Activation { return nil }

func seenMap(all map[string]Seen) map[string]any {
	m := make(map[string]any, len(all))
	for name, s := range all {
		m[name] = seenFields(s)
	}
	return m
}

func seenFields(s Seen) map[string]any {
	return map[string]any{"found": s.Found, "status": int64(s.Status), "data": s.Data, "text": s.Text, "etag": s.ETag}
}

// refuse is the one error of an evaluation: the step is refused.
func refuse(cause error, format string, args ...any) error {
	return fault.Wrap(fault.Refused, cause, format, args...).Because("expression_failed")
}

// maxValue bounds what an expression may give, in bytes.
const maxValue = 1 << 20

// native turns a CEL value into nil, bool, int64, float64, string, []any or map[string]any.
func native(v ref.Val) (any, error) {
	left := maxValue
	return nativeWithin(v, &left)
}

func nativeWithin(v ref.Val, left *int) (any, error) {
	if *left -= 8; *left < 0 {
		return nil, fmt.Errorf("the value has more than %d bytes", maxValue)
	}
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if int64(v) < 0 {
			return nil, fmt.Errorf("the number %d is too large", uint64(v))
		}
		return int64(v), nil
	case types.Double:
		return float64(v), nil
	case types.String:
		if *left -= len(v); *left < 0 {
			return nil, fmt.Errorf("the value has more than %d bytes", maxValue)
		}
		return string(v), nil
	case *types.Optional:
		if v.HasValue() {
			return nativeWithin(v.GetValue(), left)
		}
		return nil, fmt.Errorf("the value is absent")
	case traits.Mapper:
		return nativeMap(v, left)
	case traits.Lister:
		l := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			e, err := nativeWithin(it.Next(), left)
			if err != nil {
				return nil, err
			}
			l = append(l, e)
		}
		return l, nil
	}
	return nil, fmt.Errorf("a value of type %s cannot be used", v.Type())
}

func nativeMap(v traits.Mapper, left *int) (any, error) {
	m := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		name, ok := k.(types.String)
		if !ok {
			return nil, fmt.Errorf("a mapping has a key that is no text")
		}
		*left -= len(name)
		e, err := nativeWithin(v.Get(k), left)
		if err != nil {
			return nil, err
		}
		m[string(name)] = e
	}
	return m, nil
}

// stableJSON writes a value as JSON with sorted keys. It may hold numbers that
// are not whole, which package writ's canonical form may not.
func stableJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// StableDigest returns a digest of observed data, which may hold numbers that
// are not whole. The same data always has the same digest; a value that JSON
// cannot hold has the empty one, which is not valid.
func StableDigest(v any) writ.Digest {
	b, err := stableJSON(v)
	if err != nil {
		return ""
	}
	return writ.DigestBytes(b)
}
