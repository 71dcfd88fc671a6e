package catalog

import (
	"maps"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// The names of the types that expressions are checked against. A name with a
// dot cannot clash with a variable.
const (
	seenType    = "writ.seen"
	structTypes = "writ." // the prefix of the type of a variable: "writ.params"
)

// typeSet tells the type checker which members the variables have, so that a
// misspelt name or a wrong comparison is found when the catalog is loaded. The
// values themselves are plain maps.
type typeSet struct {
	types.Provider // the types of the language itself
	structs        map[string]map[string]member
}

type member struct {
	typ      *types.Type
	optional bool // may be absent: only has() or ? may reach it
}

func newTypeSet(base types.Provider) *typeSet {
	return &typeSet{base, map[string]map[string]member{seenType: {
		"found":  {typ: types.BoolType},
		"status": {typ: types.IntType},
		"data":   {typ: types.DynType},
		"text":   {typ: types.StringType},
		"etag":   {typ: types.StringType},
	}}}
}

// declare adds a struct type with no members and returns it.
func (ts *typeSet) declare(variable string) *types.Type {
	name := structTypes + variable
	if ts.structs[name] == nil {
		ts.structs[name] = map[string]member{}
	}
	return types.NewObjectType(name)
}

// add adds a member to the type of a variable.
func (ts *typeSet) add(variable, name string, typ *types.Type, optional bool) {
	ts.structs[structTypes+variable][name] = member{typ, optional}
}

// addShape declares the type of a schema, all levels of it.
func (ts *typeSet) addShape(path string, s *shape) *types.Type {
	switch s.kind {
	case "object":
		t := ts.declare(path)
		for name, p := range s.properties {
			ts.add(path, name, ts.addShape(path+"."+name, p), s.optional(name))
		}
		return t
	case "array":
		if s.items == nil {
			return types.NewListType(types.DynType)
		}
		return types.NewListType(ts.addShape(path+".items", s.items))
	case "integer":
		return types.IntType
	case "boolean":
		return types.BoolType
	}
	return types.StringType
}

// optional says whether a member of a struct type may be absent.
func (ts *typeSet) optional(t *types.Type, field string) bool {
	return t != nil && t.Kind() == types.StructKind && ts.structs[t.TypeName()][field].optional
}

// FindStructType implements types.Provider.
func (ts *typeSet) FindStructType(name string) (*types.Type, bool) {
	if _, ok := ts.structs[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return ts.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (ts *typeSet) FindStructFieldNames(name string) ([]string, bool) {
	if s, ok := ts.structs[name]; ok {
		return slices.Sorted(maps.Keys(s)), true
	}
	return ts.Provider.FindStructFieldNames(name)
}

// FindStructFieldType implements types.Provider.
func (ts *typeSet) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if s, ok := ts.structs[name]; ok {
		m, ok := s[field]
		return &types.FieldType{Type: m.typ}, ok
	}
	return ts.Provider.FindStructFieldType(name, field)
}

// NewValue implements types.Provider. Expressions read these types and never make one.
func (ts *typeSet) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := ts.structs[name]; ok {
		return types.NewErr("a value of type %s cannot be made", name)
	}
	return ts.Provider.NewValue(name, fields)
}
