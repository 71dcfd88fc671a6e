package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"writ"
	"writ/api"
	"writ/catalog"
	"writ/disk"
	"writ/fault"
	"writ/gate/internal/audit"
	"writ/gate/internal/auth"
	"writ/gate/internal/config"
	"writ/gate/internal/link"
	"writ/gate/internal/mcp"
	"writ/gate/internal/model"
	"writ/gate/internal/ops"
	"writ/gate/internal/pipeline"
	"writ/gate/internal/policy"
	"writ/gate/internal/rest"
	"writ/gate/internal/store"
	"writ/gate/internal/store/sqlite"
	"writ/ledger"
)

// grace is how long calls that are being answered may take when the gate stops.
const grace = 5 * time.Second

func (p *program) runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Answer until told to stop",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			syscall.Umask(0o077)
			// A core file would hold the key that signs writs.
			if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
				return fault.Wrap(fault.Internal, err, "Core files cannot be switched off.")
			}
			return p.run(cmd.Context())
		},
	}
}

func (p *program) run(ctx context.Context) (err error) {
	c, err := p.load()
	if err != nil {
		return err
	}
	// The audit is locked by the one gate that writes it, so it is first.
	log, err := p.openLedger(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	memory, err := sqlite.Open(ctx, c.Path(config.StoreFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()

	record := p.newAudit(c, memory, log)
	// The audit is caught up before what is new in the store is added to it.
	keys, err := p.executorKeys(c.Config, func(t model.EventType, detail writ.Object) error {
		if err := record.CatchUp(ctx); err != nil {
			return err
		}
		if err := p.recorder(ctx, memory)(t, detail); err != nil {
			return err
		}
		return record.CatchUp(ctx)
	})
	own, e := ledger.ReadSigners(c.Audit)
	if err := errors.Join(err, e); err != nil {
		return err
	}
	pipe := pipeline.New(pipeline.Config{
		Former: own.Keyring(), Sys: p.sys, Store: memory, Audit: record, Executor: link.New(c.Executor.Socket, keys),
		Catalog: c.actions, Policy: c.rules, Key: c.key, Epoch: c.Epoch, FirstAnswer: c.FirstAnswer, MaxOpen: int(c.Limits.OpenChanges),
		Settings: c.Digest,
	})
	gate := &ops.Gate{Pipeline: pipe, Record: record, Executors: keys.All, Version: api.Version, Limits: auth.NewLimits(p.sys, c.Limits.Rates)}
	tools, err := mcp.New(gate, p.sys.Log, c.MCP.TypedTools)
	if err != nil {
		return err
	}
	p.sys.Log.Info("the list of tools is made", "digest", tools.Digest())
	handler, err := rest.New(rest.Config{
		Gate: gate, Who: c.principals, Hosts: c.Hosts, Origins: c.Origins, Log: p.sys.Log,
		More: map[string]rest.Way{mcp.Path: tools.Serve},
	})
	if err != nil {
		return err
	}
	listeners, err := p.listen(c.Listen, c.Limits)
	if err != nil {
		return err
	}
	if err := pipe.Start(ctx); err != nil {
		return err
	}
	if err := c.principals.Follow(p.recorder(ctx, memory)); err != nil {
		return err
	}
	signing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var signer sync.WaitGroup
	signer.Go(func() { record.Run(signing) })
	signer.Go(func() { c.principals.KeepUsed(signing) })
	defer func() { // the last signature covers all that the pipeline did
		pipe.Stop()
		if e := record.Drained(context.WithoutCancel(ctx)); e != nil {
			p.sys.Log.Error("that the gate was drained is not recorded", "error", e, "cause", errors.Unwrap(e))
		}
		stop()
		signer.Wait()
	}()
	for _, l := range listeners {
		fmt.Fprintf(p.stdout, "writ-gate is ready on %s\n", l.Addr())
	}
	return rest.Serve(ctx, handler, p.sys.Log, grace, listeners...)
}

// executorKeys reads the keys of the executor that were taken so far. With a record,
// those that are new are written down.
func (p *program) executorKeys(c *config.Config, record auth.Record) (*link.Keys, error) {
	named, err := c.ExecutorKey()
	if err != nil {
		return nil, err
	}
	path := c.Path(config.ExecutorKeysFile)
	if err := checkFile(path); err != nil && fault.CodeOf(err) != fault.NotFound {
		return nil, err
	}
	keys, err := link.ReadKeys(path, named, writ.At(p.sys.Now()))
	if err == nil && record != nil {
		err = keys.Keep(record)
	}
	return keys, err
}

// recorder returns what makes an event durable that no change is the cause of.
func (p *program) recorder(ctx context.Context, memory *sqlite.Store) auth.Record {
	ctx = context.WithoutCancel(ctx)
	return func(t model.EventType, detail writ.Object) error {
		return memory.Update(ctx, func(tx store.Tx) error {
			return tx.Append(&model.Event{ID: p.sys.NewID("evt"), Type: t, Timestamp: writ.At(p.sys.Now()), User: model.Writ, Detail: detail})
		})
	}
}

// openLedger opens the ledger of the audit.
func (p *program) openLedger(c *loaded) (*ledger.Log, error) {
	return ledger.Open(c.Audit, ledger.Options{Name: "writ/gate", Key: c.key, Now: p.sys.Now})
}

// newAudit returns the way from the store to the ledger.
func (p *program) newAudit(c *loaded, memory *sqlite.Store, log *ledger.Log) *audit.Audit {
	k := c.Checkpoint
	return audit.New(audit.Config{
		Sys: p.sys, Store: memory, Log: log, Every: k.Every, Witnesses: witnesses(c.Config),
		Copy: audit.Copy{Path: k.Path, URL: k.URL, Required: k.Required},
	})
}

// witnesses returns who is asked to sign checkpoints.
func witnesses(c *config.Config) (all []audit.Witness) {
	for _, w := range c.Checkpoint.Witnesses {
		if known, err := ledger.ParseWitness(w.Key); err == nil { // config has looked at it
			all = append(all, audit.Witness{Witness: known, URL: w.URL})
		}
	}
	return all
}

// loaded is all that the gate reads before it starts.
type loaded struct {
	*config.Config
	key        []byte
	actions    *catalog.Catalog
	rules      *policy.Policy
	principals *auth.Principals
}

// load reads and checks the gate's directory.
func (p *program) load() (*loaded, error) {
	if err := checkDir(p.dir); err != nil {
		return nil, err
	}
	c, err := config.Load(p.dir)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{p.dir, auditDisk(c)} {
		if err := disk.Sound(dir); err != nil {
			return nil, err
		}
	}
	for _, path := range []string{c.Path(config.File), c.Policy, c.Path(config.PrincipalsFile)} {
		if err := checkFile(path); err != nil {
			return nil, err
		}
	}
	l := &loaded{Config: c}
	if l.key, err = readKey(c.Path(config.KeyFile)); err != nil {
		return nil, err
	}
	if l.rules, err = policy.Load(c.Policy); err != nil {
		return nil, err
	}
	if l.principals, err = auth.Open(p.sys, c.Path(config.PrincipalsFile)); err != nil {
		return nil, err
	}
	l.actions, err = loadCatalog(c.Catalog)
	return l, err
}

func loadCatalog(dir string) (*catalog.Catalog, error) {
	files := catalog.Builtin()
	if dir != "" {
		if err := disk.Trusted(dir); err != nil {
			return nil, err
		}
		files = os.DirFS(dir)
	}
	c, err := catalog.Load(files)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The catalog cannot be used. See all that is wrong with it: writ catalog check %s\n%s", dir, err)
	}
	return c, nil
}

// listen opens the places where the gate answers.
func (p *program) listen(where config.Listen, limits config.Limits) ([]net.Listener, error) {
	var all []net.Listener
	if where.Socket != "" {
		// What lies there is left over: another gate would hold the audit file.
		if info, err := os.Lstat(where.Socket); err == nil && info.Mode().Type() == fs.ModeSocket {
			_ = os.Remove(where.Socket)
		}
		l, err := net.Listen("unix", where.Socket)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The gate cannot listen on %s. Is there a directory for it, and is no other file in its place?", where.Socket)
		}
		all = append(all, p.crowd(l, limits))
		if err := os.Chmod(where.Socket, 0o600); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The socket %s cannot be made private.", where.Socket)
		}
	}
	if where.TCP != "" {
		l, err := net.Listen("tcp", where.TCP)
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "The gate cannot listen on %s. Is something else there?", where.TCP)
		}
		l = p.crowd(l, limits)
		if where.TLS.Cert != "" {
			if l, err = p.encrypted(l, where.TLS); err != nil {
				return nil, err
			}
		} else if where.Insecure {
			p.sys.Log.Warn("the gate listens without TLS, as listen.insecure says: whoever is on the way can read the tokens", "tcp", where.TCP)
		}
		all = append(all, l)
	}
	return all, nil
}

// crowd bounds the connections of a listener. Each has its own bound: whatever
// is open over TCP, the socket of this machine answers.
func (p *program) crowd(l net.Listener, limits config.Limits) net.Listener {
	return &rest.Crowd{Listener: l, All: int(limits.Connections), PerAddress: int(limits.ConnectionsPerAddress), Log: p.sys.Log}
}
