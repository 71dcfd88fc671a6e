package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"writ/executor/internal/config"
	"writ/executor/internal/journal"
	"writ/fault"
	"writ/ledger"
	"writ/sys"
)

// openJournal opens the journal and the audit that follows it.
func (p *process) openJournal(ctx context.Context, s sys.Sys) (*journal.Journal, error) {
	j, err := journal.Open(ctx, p.config.Path(config.JournalFile), s)
	if err != nil {
		return nil, err
	}
	if err := p.openAudit(ctx, s, j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// openAudit lets the audit follow the journal. An audit that knows more than the
// journal belongs to a newer one, of which an old copy was put back: it is set
// aside, whole, and another one begins by saying so. The gate notices that the
// executor forgot what it accounted for, and changes nothing until "writ recover".
func (p *process) openAudit(ctx context.Context, s sys.Sys, j *journal.Journal) error {
	dir := p.config.Path(config.AuditDir)
	open := func() error {
		log, err := ledger.Open(dir, ledger.Options{Name: "writ/executor/" + p.config.Executor, Key: p.key, Now: s.Now})
		if err != nil {
			return err
		}
		if err := j.Keep(ctx, log); err != nil {
			return errors.Join(err, log.Close())
		}
		return nil
	}
	err := open()
	if fault.ReasonOf(err) != ledger.StoreOlder {
		return err
	}
	signed, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "The checkpoint of the executor's audit %s cannot be read.", dir)
	}
	aside := dir + ".before-" + s.Now().Format("20060102T150405.000")
	if err := os.Rename(dir, aside); err != nil {
		return fault.Wrap(fault.Unavailable, err, "The executor's audit %s holds more than its journal, and cannot be set aside. Check the directory.", dir)
	}
	p.log.Warn("the journal is older than the audit: an old copy was put back. The audit is set aside, and the gate changes nothing until: writ recover", "audit", aside)
	if err := j.SetAside(ctx, signed); err != nil {
		return err
	}
	return open()
}
