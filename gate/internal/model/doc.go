// Package model holds the words of the deciding side: what a requester asks
// for, what becomes of it, and which moves are allowed. It has no behaviour
// beyond its own rules, and knows no store, no network and no clock.
package model
