// Package ledger is the format of the audit, its one writer and its one reader.
// Both processes keep their account of what happened in this format.
//
// # Format, version 2
//
// A ledger is a directory:
//
//	checkpoint                    the newest signed checkpoint
//	segment/000000000000.jsonl    the events, from the first on
//	segment/000000000001.jsonl    and so on, numbered without gaps
//	tile/0/000, tile/0/001.p/17   the hashes of the events, in tiles
//	tile/1/000.p/1                and those of the tiles
//	witness/6f1c0a9d              the newest checkpoint that a witness has signed
//
// Nothing in it is secret, and none is needed to verify it: everything follows
// from the public key that the first segment names, or from a checkpoint that
// somebody has kept elsewhere.
//
// # Events
//
// An event is one line: a JSON object of at most [writ.MaxSize] bytes in the
// canonical form of package writ, ended by one newline. It has the members
//
//	"format"    "event/2"
//	"sequence"  1 in the first event, then one more in each
//
// and whatever else its writer says. The event with sequence n is leaf n-1 of a
// Merkle tree as in RFC 6962: a leaf is SHA-256 of a byte 0 and the line without
// its newline, a node SHA-256 of a byte 1 and its two children, the root of an
// empty tree SHA-256 of nothing. The root stands for every byte of every event.
//
// # Checkpoints
//
// A checkpoint is a C2SP tlog-checkpoint: a C2SP signed note with an Ed25519
// signature. Its text is the origin of the ledger, the number of events and the
// root in base64, one a line:
//
//	writ/gate/6f1c0a9d3b52e874
//	1042
//	qINS1GRFhWHwdkUeqLEoP4yEMkTBBzxBkGwGQlVlVcs=
//
//	— writ/gate/6f1c0a9d3b52e874 NGZmMQ…
//
// The origin never changes. Its last element is the start of the SHA-256 of the
// first public key.
//
// A witness signs a checkpoint as a C2SP tlog-cosignature of the version 1, when it
// is proven that it continues the one that it signed before. The file
// witness/ID, ID being the id of the witness's key, is the newest checkpoint that it
// signed, with the line of its signature after the ledger's own. All who demand
// signatures of the same witness see the same events.
//
// # Segments
//
// The first line of a segment is no event but its seam, the canonical JSON
//
//	{"format":"segment/2","note":"…"}
//
// whose note is a checkpoint of all events before, signed with the key that was
// valid for them, and three lines more:
//
//	segment 3 sha256:…                  its number, and the digest of the seam before, without
//	                                    newline; 64 zeros in segment 0
//	key writ/gate/6f1c…+34666631+AV…    the public key, as a note's, that signs from here on
//	since 2026-05-04T03:02:01.000Z      since when
//
// The seam of segment 0 is signed with the key that it names. A seam that names
// another key than the one before changes the key: a checkpoint of at most as
// many events as stand before the seam is signed with the old key, one of at
// least as many with the new.
//
// Such a seam is also shown alone, to somebody who trusts the old key and does not
// have the ledger: its note proves that the new key follows, since when, and after
// how many events of the origin. What else the old key has signed by then, as the
// receipts of the executor do, stays valid; what tells a later time, or holds a
// checkpoint of that origin with more events, is not. Nobody follows a seam to a
// key that was followed by another before.
//
// # Tiles
//
// Tiles are those of C2SP tlog-tiles: tile/L/N holds 256 hashes of level 8·L, N
// in groups of three digits (1234 is x001/234). Of the tiles that are not full,
// only those of the newest checkpoint are kept, tile/L/N.p/W with W hashes. With
// them one event is proven to be in a checkpoint without reading the others, and
// the first event that is not as it was is found by its number.
//
// # What can be said of a ledger
//
// All events that a checkpoint covers are exactly those that were written, if the
// root of the lines is the one it names. Events after the newest checkpoint are
// in order, but not signed yet. A ledger that was set back to an earlier state
// with its checkpoint of then looks intact: without a checkpoint that was kept
// elsewhere, [Verify] never says more than "prefix valid". Bytes after the last
// newline of the last segment are a torn line: its writer died before it could
// tell anybody that the line was there. They are no event.
package ledger
