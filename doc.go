// Package writ is the contract between the two processes: the gate, which
// decides and holds no credential, and the executor, which holds the
// credentials and decides nothing.
//
// Everything that crosses is defined here and nowhere else: the [Envelope] (all
// that was decided on), the [Writ] (the envelope with its approvals, signed by
// the gate, good for one use), the [Observation], the [Receipt] and the [Finding]
// (the executor's signed answers). None of these types holds a sentence that a
// requester wrote: a planner's reasons, a ticket's text or a page from the web
// can steer nothing on the executor's side, because they do not get there.
//
// # Canonical form
//
// All of it is JSON in the bytes of RFC 8785, restricted so that two readers
// cannot understand one text in two ways. [Parse] refuses duplicate keys,
// invalid UTF-8, lone surrogates, anything after the value, numbers that are
// not whole or lie beyond ±(2^53−1), nesting deeper than [MaxDepth] and texts
// longer than [MaxSize]. [Decode] refuses besides every member that the Go type
// does not have, spelt in another case, or left out: a text is accepted only if
// encoding the decoded value gives the same canonical bytes.
//
// # Digests and signatures
//
// A [Digest] is "sha256:" and 64 hexadecimal digits over canonical bytes.
// A sealed text is the canonical JSON object
//
//	{"key_id":"…","payload":{…},"signature":"…"}
//
// where signature is Ed25519 (RFC 8032) in standard base64 over the bytes
//
//	"writ/v1 " kind "\n" payload
//
// with kind one of "writ", "observation", "receipt", "finding", so that a text sealed as
// one kind cannot be opened as another. The text as a whole must be canonical:
// no byte of it can change without breaking either its form or its signature.
// key_id is "ed25519:" and the first 16 hexadecimal digits of the SHA-256 of
// the public key.
package writ
