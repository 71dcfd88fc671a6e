package api

import (
	"crypto/sha256"
	"encoding/hex"
)

// TokenDigest is all that the gate keeps of a token: its SHA-256, in hexadecimal.
func TokenDigest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenID names a token without telling it, by the beginning of its digest.
// Whoever holds the token can compute the name.
func TokenID(digest string) string { return "tok_" + digest[:min(12, len(digest))] }
