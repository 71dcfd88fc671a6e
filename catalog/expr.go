package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// The limits of one expression.
const (
	maxExpr = 4096    // characters
	maxCost = 2000000 // cel's unit: about one step, or ten characters looked at
)

// variables are all names an expression may see, in the order in which they
// get their values.
func variables() []string {
	return []string{"system", "params", "settings", "resolved", "observed", "backup", "applied", "probed", "response"}
}

// The names that are known at each point of a step.
const (
	seeInput    = "system params settings"
	seeResolved = seeInput + " resolved"
	seeObserved = seeResolved + " observed"
	seeApplied  = seeObserved + " backup applied"
	seeProbed   = seeApplied + " probed"
	seeBackup   = seeResolved + " backup"
	seeAnswer   = " response"
)

// language is what all actions have in common: functions, macros and limits.
type language struct{ env *cel.Env }

func newLanguage() (*language, error) {
	noTime := env.NewLibrarySubset().AddExcludedFunctions(env.NewFunction("timestamp"), env.NewFunction("duration"))
	e, err := cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(noTime)),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(ext.ListsMaxRangeSize(maxItems)), ext.Sets(), ext.Math(), ext.Bindings(),
		cel.ParserExpressionSizeLimit(maxExpr),
		cel.ParserRecursionLimit(64),
		cel.CrossTypeNumericComparisons(true),
		cel.Function("sha256",
			cel.Overload("sha256_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(hashValue)),
			cel.Overload("sha256_bytes", []*cel.Type{cel.BytesType}, cel.StringType, cel.UnaryBinding(hashValue))),
		cel.Function("canonical",
			cel.Overload("canonical_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(canonicalValue))),
		cel.Function("chomp",
			cel.MemberOverload("string_chomp", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(chomp))),
	)
	if err != nil {
		return nil, fmt.Errorf("the expression language cannot be set up: %w", err)
	}
	return &language{e}, nil
}

// chomp takes the line ends from the end of a text: several systems add one.
func chomp(v ref.Val) ref.Val {
	return types.String(strings.TrimRight(string(v.(types.String)), "\r\n"))
}

func hashValue(v ref.Val) ref.Val {
	var sum [sha256.Size]byte
	switch v := v.(type) {
	case types.String:
		sum = sha256.Sum256([]byte(v))
	case types.Bytes:
		sum = sha256.Sum256(v)
	default:
		return types.MaybeNoSuchOverloadErr(v)
	}
	return types.String(hex.EncodeToString(sum[:]))
}

func canonicalValue(v ref.Val) ref.Val {
	n, err := native(v)
	if err != nil {
		return types.WrapErr(err)
	}
	b, err := stableJSON(n)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(b)
}

// costs charges functions for the texts that they read and make, where CEL would
// charge one step: ours, and those whose overload is only known when they run
// because the types of what the target answered are not known before.
type costs struct{}

// CallCost implements cel's ActualCostEstimator.
func (costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	if overload != "" && !slices.Contains([]string{"sha256", "canonical", "chomp"}, function) {
		return nil
	}
	n := uint64(1)
	for _, v := range append(slices.Clone(args), result) {
		switch v := v.(type) {
		case types.String:
			n += uint64(len(v)) / 10
		case types.Bytes:
			n += uint64(len(v)) / 10
		}
	}
	return &n
}

// scopeEnv is the language with the variables of one action.
type scopeEnv struct {
	env   *cel.Env
	types *typeSet
}

func (l *language) scope(params, settings *schema) (*scopeEnv, error) {
	ts := newTypeSet(l.env.CELTypeProvider())
	opts := []cel.EnvOption{cel.CustomTypeProvider(ts)}
	for _, name := range variables() {
		t := cel.StringType
		switch name {
		case "system":
		case "params":
			t = ts.addShape(name, params.root)
		case "settings":
			t = ts.addShape(name, settings.root)
		case "response":
			t = types.NewObjectType(seenType)
		default:
			t = ts.declare(name)
		}
		opts = append(opts, cel.Variable(name, t))
	}
	e, err := l.env.Extend(opts...)
	if err != nil {
		return nil, fmt.Errorf("the variables cannot be declared: %w", err)
	}
	return &scopeEnv{e, ts}, nil
}

// expr is one compiled expression.
type expr struct {
	source  string
	typ     *cel.Type
	program cel.Program
}

// compile reports to at what is wrong with the source, and returns nil then.
// see lists the variables that have a value at that point of a step.
func (s *scopeEnv) compile(at *value, source, see string) *expr {
	checked, issues := s.env.Compile(source)
	if issues.Err() != nil {
		for _, e := range issues.Errors() {
			at.fail("the expression %q is not valid: %s", cut(source, 80), cut(e.Message, 300))
		}
		return nil
	}
	if !s.checkNames(at, checked.NativeRep(), source, see) {
		return nil
	}
	program, err := s.env.Program(checked,
		cel.EvalOptions(cel.OptOptimize),
		cel.CostTracking(costs{}),
		cel.CostLimit(maxCost))
	if err != nil {
		at.fail("the expression %q is not valid: %v", cut(source, 80), err)
		return nil
	}
	return &expr{source, checked.OutputType(), program}
}

// checkNames reports variables that have no value yet, and members that may be
// absent but are reached as if they were always there.
func (s *scopeEnv) checkNames(at *value, a *ast.AST, source, see string) bool {
	ok := true
	visible := strings.Fields(see)
	var reached []string
	tested := map[string]bool{}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			name := e.AsIdent()
			if slices.Contains(variables(), name) && !slices.Contains(visible, name) {
				at.fail("the expression %q may not use %s here, only %s", cut(source, 80), name, strings.Join(visible, ", "))
				ok = false
			}
		case ast.SelectKind:
			sel := e.AsSelect()
			if !s.types.optional(a.GetType(sel.Operand().ID()), sel.FieldName()) {
				return
			}
			if path := selectPath(e); sel.IsTestOnly() {
				tested[path] = true
			} else {
				reached = append(reached, path)
			}
		}
	}))
	for _, path := range reached {
		if !tested[path] {
			at.fail("the expression %q uses %s, which may be absent: ask has(%s) in it, or reach it with ?", cut(source, 80), path, path)
			ok = false
		}
	}
	return ok
}

// selectPath writes a chain of selections as it stands in the source.
func selectPath(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		return selectPath(e.AsSelect().Operand()) + "." + e.AsSelect().FieldName()
	case ast.CallKind:
		if e.AsCall().FunctionName() == operators.Index {
			return selectPath(e.AsCall().Args()[0]) + "[]"
		}
	}
	return "…"
}

// truth compiles an expression that says yes or no.
func (s *scopeEnv) truth(v *value, see string) *expr {
	source := v.text()
	if source == "" {
		return nil
	}
	e := s.compile(v, source, see)
	if e != nil && e.typ.Kind() != types.BoolKind && e.typ.Kind() != types.DynKind {
		v.fail("the expression must be true or false, this one is %s", e.typ)
		return nil
	}
	return e
}

// eval evaluates an expression. An error never counts as a value.
func (e *expr) eval(in view) (ref.Val, error) {
	v, _, err := e.program.Eval(in)
	if err != nil {
		return nil, refuse(err, "The expression %q cannot be evaluated on what is known. Check the request against what the target holds.", cut(e.source, 200))
	}
	return v, nil
}

// holds evaluates an expression that says yes or no; only true is true.
func (e *expr) holds(in view) (bool, error) {
	v, err := e.eval(in)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, refuse(nil, "The expression %q is neither true nor false. The action must be mended.", cut(e.source, 200))
	}
	return bool(b), nil
}
