package journal

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"writ"
)

// Last names the run that sent something last; its zero value is none. What only
// reads is no mark to remember by: it may go on beside a memory that is too old.
func (j *Journal) Last(ctx context.Context) (writ.LastRun, error) {
	var last writ.LastRun
	var sealed []byte
	err := j.db.QueryRowContext(ctx, `SELECT run, sealed FROM writs WHERE purpose = 'execute'
		AND run = (SELECT run FROM entries INDEXED BY entries_sent WHERE kind = 'sent' ORDER BY id DESC LIMIT 1)`).Scan(&last.Run, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return writ.LastRun{}, nil
	}
	if err != nil {
		return last, broken(err)
	}
	w, err := read(sealed)
	last.KeyID, last.ChangeID = w.KeyID, w.Payload.Envelope.ChangeID
	return last, err
}

// admitted is a sealed writ whose signature was checked when it was admitted.
type admitted struct {
	KeyID   string    `json:"key_id"`
	Payload writ.Writ `json:"payload"`
}

func read(sealed []byte) (w admitted, err error) {
	err = json.Unmarshal(sealed, &w)
	return w, broken(err)
}

// Admitted returns up to limit execute writs that were ever admitted, by their
// run, from the one after a run on.
func (j *Journal) Admitted(ctx context.Context, after string, limit int) ([]writ.Admitted, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT run, admitted_at, finished_at IS NOT NULL, sealed FROM writs
		WHERE purpose = 'execute' AND run > ? ORDER BY run LIMIT ?`, after, limit)
	if err != nil {
		return nil, broken(err)
	}
	defer rows.Close()
	list := []writ.Admitted{}
	for rows.Next() {
		var a writ.Admitted
		var at string
		if err := rows.Scan(&a.Run, &at, &a.Finished, &a.Sealed); err != nil {
			return nil, broken(err)
		}
		if err := a.AdmittedAt.UnmarshalJSON([]byte(at)); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return list, broken(rows.Err())
}

// Envelope returns the digest of the envelope that a run was admitted with, ""
// if no such run was admitted.
func (j *Journal) Envelope(ctx context.Context, run string) (writ.Digest, error) {
	var sealed []byte
	err := j.db.QueryRowContext(ctx, `SELECT sealed FROM writs WHERE run = ? AND purpose = 'execute'`, run).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", broken(err)
	}
	w, err := read(sealed)
	if err != nil {
		return "", err
	}
	return w.Payload.Envelope.Digest()
}
