// Package catalog is the action language: it parses the files of a catalog,
// checks them, and evaluates what they say. It reaches nothing: it turns values
// into calls and answers into verdicts, and leaves the calling to others. Both
// processes use it, each with its own copy of the catalog.
//
// # Files
//
// A catalog is a directory. Each *.yaml below it is one action, one document
// without anchors, aliases and tags; settings.yaml at its top holds the
// operator's values, by action name or for all of a prefix ("proxmox.*").
// Everything that is wrong is reported at once, and then there is no catalog.
//
//	action        name, e.g. proxmox.set_lxc_description
//	summary       one sentence
//	system        kind of system it acts on: a driver's word
//	class         read_only, reversible_low, config_mutation or destructive
//	forbidden     why it is never run; then it has nothing of what follows "guards"
//	params        JSON Schema of an object, closed and with every value bounded
//	settings      the same for the operator's values; each with a default
//	resolve       [{name, get|list|read…, value}] values fixed before anyone approves
//	entity        what is acted on and locked; touches: [others that are locked too]
//	observe       name → reading call: what is read before, just before, and after
//	guards        [{that, else}] what must hold, and what is said if it does not
//	fingerprint   which state this is; by default a digest of what backup names
//	backup        [names of observations] kept before anything is written
//	preview       [{field, from, to, when}], or preview_unknown: why
//	apply         [{post|put|patch|delete|write|remove…, as, when}] writing calls
//	wait          [{get…, while, done, failed, every, within}] for work that goes on
//	probe         name → reading call, made only afterwards
//	verify        [{name, that}], again every verify_every until verify_within is over
//	rollback      {action, params}, or a list of them with when; or irreversible: why
//	outputs       name → {value, type}; sensitivity: public, internal or secret
//	limits        {timeout} of the whole step
//	facts         name → {value, type, sensitivity}: what is told to planners
//	health        [{that, else}]: what holds as long as the entity is well
//	examples      [{params, accept, why, …}], evaluated when the catalog is loaded
//
// A call is its verb with a path, and query, at and host (another endpoint of
// the system, asked without credentials and by that name), absent_ok; a writing
// one has a body (form, json or text) and if_match.
//
// A writing action has a backup, calls, checks, a preview or the reason why
// there is none, and a way back or the reason why there is none.
//
// A file with facts is asked for by its entity and never proposed. It is
// read_only, has health, and an entity that can be read backwards: ${system}, then
// names between slashes, each a word or exactly one ${params.NAME}; a text at the
// end may stand for several. No entity has two sets of facts. Facts are told in
// the order in which they stand; a secret one never leaves the executor.
//
// # Expressions
//
// "that", "when", "value" and the like are CEL; in other texts ${…} stands for
// the value of an expression. A text that is exactly one ${…} keeps the type of
// the value, and where it may be absent (an optional value: params.?note) the
// whole member is left out. $${ is a literal ${.
//
// Expressions see, as a step goes on, system, params, settings; resolved;
// observed; backup, applied; probed; and response where an answer is looked at.
// All but the data in an answer has a type that is checked when the catalog is
// loaded. An answer is {found, status, data, text, etag}. There is no clock and
// no randomness. sha256(text), canonical(value) (JSON in one notation) and
// text.chomp() (without line ends) are ours. An expression that fails, costs too
// much or gives too much is a refusal, never a value.
//
// # Values
//
// A value stays a value. In the path of an HTTP verb it is one escaped segment,
// never empty, "." or "..", and holds none of / \ % ? # ; since a server may
// unescape before it splits; in the path of a file and in an entity it is a
// relative path of names; in a form or a query it is one text; in JSON it is one
// value, and no expression makes the name of a member; in a header it is one
// line.
//
// # Examples
//
// With params and accept alone an example says whether the schema takes the
// params. With observed (name → answer; also resolved, applied, probed, after
// for the observations afterwards, settings, system) all else is evaluated too:
// guards, fingerprint, preview, calls, way back, checks, outputs. expect says
// what comes out: entity, touches, fingerprint, refused, preview, reads, calls,
// verify, rollback, outputs, facts, health. resolves and waits say what single answers mean.
package catalog
