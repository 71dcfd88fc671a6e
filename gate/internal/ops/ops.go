// Package ops is the one table of what can be asked of the gate: who may ask,
// what is taken, what is answered, and whether an agent may be given it as a
// tool. Every way in is rendered from it, and the check of roles is made here,
// so that no way in can forget it.
package ops

import (
	"context"
	"reflect"
	"slices"

	"writ/api"
	"writ/fault"
	"writ/gate/internal/audit"
	"writ/gate/internal/auth"
	"writ/gate/internal/model"
	"writ/gate/internal/pipeline"
	"writ/ledger"
)

// Gate is what operations act on.
type Gate struct {
	Pipeline *pipeline.Pipeline
	Record   Record
	// Executors returns the public keys that receipts were signed with.
	Executors func() ledger.Signers
	Version   string
	// Limits is how much each principal may ask; nil sets no limit.
	Limits *auth.Limits
}

// Record is the audit as others may look at it.
type Record interface {
	// Checkpoint returns a signed checkpoint of all events.
	Checkpoint() ([]byte, error)
	// Prove proves the events with these sequences.
	Prove(ctx context.Context, sequences []int64) (*audit.Proof, error)
	// Read records that somebody was handed all that proves a change.
	Read(ctx context.Context, user, changeID string) error
	// CopyState returns where the newest checkpoint is copied to, "" for nowhere,
	// and why the last copy failed.
	CopyState() (string, error)
	// WitnessStates returns what each witness has signed, and why the last call
	// of it failed.
	WitnessStates() []audit.WitnessState
}

// Op is one operation.
type Op struct {
	api.Operation
	// Roles is who may ask: any of them is enough; none means every principal.
	// What a caller may see and do of a certain change is the pipeline's to say.
	Roles []model.Role
	// Tool is the name under which an agent may be given the operation as a
	// tool; "" if it may not.
	Tool string
	// Live says that Gate.Follow takes the same input and goes on with what is new.
	Live bool
	// Original says that the path is of the system that came before, whose every
	// refusal is a bad request.
	Original bool
	// In is a struct whose fields are tagged with where a way in finds them:
	// path, query or header and the name there, and with tool where a tool has
	// another name for it; the field Body is the body.
	In, Out reflect.Type

	do func(ctx context.Context, g *Gate, who model.Caller, in any) (any, error)
}

// Allow fails with fault.Denied if who has no role that may ask. A way in asks
// before it reads anything else; Call asks again.
func (o *Op) Allow(who model.Caller) error {
	if len(o.Roles) > 0 && !slices.ContainsFunc(o.Roles, who.Has) {
		return fault.New(fault.Denied, "%s may not do this: it takes one of the roles %v.", who.User(), o.Roles).Because("role_missing")
	}
	return nil
}

// Call asks for the operation. In is a pointer to a value of type Op.In; the
// answer is a value of type Op.Out.
func (o *Op) Call(ctx context.Context, g *Gate, who model.Caller, in any) (any, error) {
	if err := o.Allow(who); err != nil {
		return nil, err
	}
	return o.do(ctx, g, who, in)
}

// All is the table, in the order of api.Operations.
func All() []Op {
	table := map[string]Op{
		api.PolicyGet:      tool("get_policy", define(policyGet)),
		api.ActionList:     tool("list_actions", define(actionList)),
		api.ActionGet:      tool("describe_action", define(actionGet)),
		api.SystemList:     tool("list_systems", define(systemList)),
		api.FactsGet:       tool("get_facts", define(factsGet)),
		api.ChangePropose:  tool("propose_change", define(changePropose, model.Requester)),
		api.ChangeList:     tool("list_changes", define(changeList)),
		api.ChangeGet:      tool("get_change", define(changeGet)),
		api.ChangeWait:     tool("wait_change", define(changeWait)),
		api.ChangeReview:   define(changeReview),
		api.ChangeApprove:  define(changeApprove, model.Approver),
		api.ChangeReject:   define(changeReject, model.Approver),
		api.ChangeLift:     define(changeLift, model.Approver),
		api.ChangeCancel:   tool("cancel_change", define(changeCancel, model.Requester, model.Operator)),
		api.ChangeExecute:  tool("execute_change", define(changeExecute, model.Requester, model.Operator)),
		api.ChangeRollback: tool("propose_rollback", define(changeRollback, model.Requester, model.Operator)),
		api.ChangeProbe:    define(changeProbe, model.Approver, model.Operator),
		api.ChangeSettle:   define(changeSettle, model.Approver),
		api.ChangeArtifact: tool("get_artifact", define(changeArtifact)),
		api.ChangeEvidence: define(changeEvidence),
		api.ChangeEvents:   live(define(changeEvents)),
		api.EventList:      define(eventList),
		api.CheckpointGet:  define(checkpointGet),
		api.LockList:       define(lockList),
		api.HaltList:       define(haltList),
		api.HaltSet:        define(haltSet, model.Approver, model.Operator),
		api.HaltLift:       define(haltLift, model.Approver),
		api.HealthGet:      define(healthGet),
	}
	var all []Op
	for _, o := range api.Operations() {
		op := table[o.Name]
		op.Operation = o
		all = append(all, op)
	}
	return all
}

func define[I, O any](do func(context.Context, *Gate, model.Caller, *I) (O, error), roles ...model.Role) Op {
	return Op{
		Roles: roles,
		In:    reflect.TypeFor[I](),
		Out:   reflect.TypeFor[O](),
		do: func(ctx context.Context, g *Gate, who model.Caller, in any) (any, error) {
			i, ok := in.(*I)
			if !ok {
				return nil, otherInput()
			}
			return do(ctx, g, who, i)
		},
	}
}

func otherInput() error {
	return fault.New(fault.Internal, "An operation was called with the input of another.")
}

func tool(name string, o Op) Op {
	o.Tool = name
	return o
}

func live(o Op) Op {
	o.Live = true
	return o
}
