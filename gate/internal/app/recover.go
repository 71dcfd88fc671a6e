package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/config"
	"writ/gate/internal/link"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

func (p *program) recoverCommand() *cobra.Command {
	var raise bool
	cmd := &cobra.Command{
		Use:   "recover",
		Short: "Say what gate and executor do not remember alike after one was restored; with --new-epoch mend it",
		Long: `Compare what the gate and its executor remember, as JSON. The gate must be stopped, the
executor must run. With --new-epoch, runs that one of them forgot become unknown and
keep their locks, everything that was open ends, and no writ of before is taken again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := p.recover(cmd.Context(), raise)
			if err != nil {
				return err
			}
			return p.print(report)
		},
	}
	cmd.Flags().BoolVar(&raise, "new-epoch", false, "mend it, and raise the epoch")
	return cmd
}

func (p *program) recover(ctx context.Context, raise bool) (out api.Recovery, err error) {
	c, err := p.load()
	if err != nil {
		return out, err
	}
	// Whoever holds the audit is the one gate of this directory.
	log, err := p.openLedger(c)
	if err != nil {
		return out, fault.Wrap(fault.CodeOf(err), err, "The gate must be stopped for this. %s", fault.TextOf(err))
	}
	defer func() {
		if log != nil {
			err = errors.Join(err, log.Close())
		}
	}()
	memory, err := sqlite.Open(ctx, c.Path(config.StoreFile))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	held := log.Tree()
	ahead, err := newer(ctx, memory, held.Size())
	if err == nil && !ahead {
		err = p.newAudit(c, memory, log).CatchUp(ctx)
	}
	if err != nil {
		return out, err
	}
	keys, err := p.executorKeys(c.Config, nil)
	if err != nil {
		return out, err
	}
	own, err := ledger.ReadSigners(c.Audit)
	if err != nil {
		return out, err
	}
	executor := link.New(c.Executor.Socket, keys)
	pipe := pipeline.New(pipeline.Config{Sys: p.sys, Store: memory, Executor: executor, Catalog: c.actions, Policy: c.rules, Key: c.key, Former: own.Keyring(), Epoch: c.Epoch})
	found, err := pipe.Compare(ctx, executor)
	if err != nil {
		return out, err
	}
	out = recoveryOf(found)
	if out.AuditAhead = ahead; !raise {
		return out, nil
	}
	// From here on, a crash leaves what another recovery ends.
	if err := setEpoch(c.Path(config.File), found.Next); err != nil {
		return out, err
	}
	seam := writ.Object{}
	if ahead {
		out.AuditAside = fmt.Sprintf("%s.before-epoch-%d", c.Audit, found.Next)
		err, log = log.Close(), nil
		if err == nil {
			err = setAside(c.Audit, out.AuditAside)
		}
		if err == nil {
			log, err = p.openLedger(c)
		}
		if err == nil {
			err = refill(ctx, memory, log)
		}
		if err != nil {
			return out, err
		}
		seam = writ.Object{"set_aside": filepath.Base(out.AuditAside), "events": held.Size(), "root": fmt.Sprint(held.Root())}
	}
	told, err := pipe.Recover(ctx, executor, found, seam)
	if err != nil {
		return out, err
	}
	out.Raised, out.ExecutorTold = true, told == nil
	if told != nil {
		p.sys.Log.Warn("the executor was not told of the new epoch; it learns of it with the next writ", "error", told)
	}
	return out, nil
}

// newer reports whether an audit of so many events holds more than the store.
func newer(ctx context.Context, s *sqlite.Store, events int64) (ahead bool, err error) {
	if events == 0 {
		return false, nil
	}
	err = s.View(ctx, func(r store.Reader) error {
		last, err := r.Events(store.EventFilter{After: events - 1, Limit: 1})
		ahead = len(last) == 0
		return err
	})
	return ahead, err
}

// setAside gives the audit that belongs to a newer store another name. It stays
// whole, and can be verified by itself.
func setAside(path, aside string) error {
	if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Conflict, "%s is there already. Move it away, then run this again.", aside)
	}
	if err := disk.Rename(path, aside); err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be renamed to %s.", path, aside)
	}
	return nil
}

// refill writes all that the store holds into a new audit: the beginning of the
// one that was set aside.
func refill(ctx context.Context, s *sqlite.Store, log *ledger.Log) error {
	for after := int64(0); ; {
		var lines [][]byte
		err := s.View(ctx, func(r store.Reader) error {
			page, err := r.Events(store.EventFilter{After: after, Limit: 256})
			for _, l := range page {
				lines, after = append(lines, l.Bytes), l.Sequence
			}
			return err
		})
		if err != nil || len(lines) == 0 {
			return err
		}
		if err := log.Append(lines...); err != nil {
			return err
		}
	}
}

var epochLine = regexp.MustCompile(`(?m)^epoch:[ \t]*[0-9]+`)

// setEpoch writes the epoch into gate.yaml and leaves the rest of it as it is.
func setEpoch(path string, epoch int64) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s cannot be read.", path)
	}
	said := fmt.Sprintf("epoch: %d", epoch)
	if epochLine.Match(text) {
		text = epochLine.ReplaceAllLiteral(text, []byte(said))
	} else {
		text = fmt.Appendf(text, "\n%s\n", said)
	}
	if err := disk.Replace(path, text); err != nil {
		return err
	}
	c, err := config.Load(filepath.Dir(path))
	if err == nil && c.Epoch != epoch {
		err = fault.New(fault.Invalid, "%s does not say epoch: %d in a way that can be changed. Write it by hand, then run this again.", path, epoch)
	}
	return err
}

func recoveryOf(found *pipeline.Comparison) api.Recovery {
	out := api.Recovery{Epoch: found.Epoch, Next: found.Next, Spent: found.Spent, Foreign: found.Foreign, Differences: []api.Difference{}}
	for _, d := range found.Differences {
		out.Differences = append(out.Differences, api.Difference{
			Kind: string(d.Kind), ChangeID: d.ChangeID, RunID: d.RunID, Was: string(d.Was), Entities: append([]string{}, d.Entities...),
		})
	}
	return out
}
