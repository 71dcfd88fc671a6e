package app

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"writ"
	"writ/catalog"
	"writ/disk"
	"writ/executor/internal/admit"
	"writ/executor/internal/backup"
	"writ/executor/internal/config"
	"writ/executor/internal/datadir"
	"writ/executor/internal/journal"
	"writ/executor/internal/run"
	"writ/executor/internal/serve"
	"writ/executor/internal/vault"
	"writ/fault"
	"writ/ledger"
	"writ/redact"
	"writ/sys"
)

func runCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Take writs until SIGTERM; then finish the step under way and end",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			p, err := start(ctx, *dir, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return p.serve(ctx, stop, cmd.OutOrStdout())
		},
	}
}

// process is a running executor.
type process struct {
	config  *config.Config
	log     *slog.Logger
	key     ed25519.PrivateKey
	vault   *vault.Vault
	systems *systems
	journal *journal.Journal
	door    *admit.Door
	runner  *run.Runner

	changing sync.Mutex // one unlock, lock or reload at a time
	settled  atomic.Bool
	redactor atomic.Pointer[redact.Redactor]
	hashKey  []byte
	signers  ledger.Signers // the keys that it signed with, and the present one
	release  func() error   // of the data directory
}

// harden makes the process keep to itself what it holds: no core file, no
// debugger, no file that others may read.
func harden() error {
	syscall.Umask(0o077)
	none := unix.Rlimit{}
	return errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &none), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// start makes everything ready but the sockets. What is wrong with the data
// directory stops it here.
func start(ctx context.Context, dir string, stderr io.Writer) (*process, error) {
	if err := harden(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "The process could not be shielded against debuggers and core files.")
	}
	c, err := config.Load(dir)
	if err != nil {
		return nil, err
	}
	p := &process{config: c}
	p.redactor.Store(new(redact.Redactor))
	p.log = slog.New(slog.NewTextHandler(redact.Whole(stderr, p.redactor.Load), nil))
	if p.key, err = readKey(c.Path(config.KeyFile)); err != nil {
		return nil, err
	}
	if err := disk.Sound(c.Dir); err != nil {
		return nil, err
	}
	if p.release, err = datadir.Lock(c.Dir, "lock"); err != nil {
		return nil, err
	}
	if p.hashKey, err = hashKey(c); err != nil {
		return nil, errors.Join(err, p.release())
	}
	p.redactor.Store(redact.New(p.hashKey))
	s := sys.Real(p.log)
	if p.journal, err = p.openJournal(ctx, s); err != nil {
		return nil, errors.Join(err, p.release())
	}
	if p.signers, err = ledger.ReadSigners(c.Path(config.AuditDir)); err != nil {
		return nil, errors.Join(err, p.journal.Close(), p.release())
	}
	p.vault = vault.New(vaultConfig(c))
	p.systems = newSystems(s, p.vault)
	p.door = admit.New(s, readiness{p}, p.journal, admit.Rules{Executor: c.Executor})
	p.runner = run.New(run.Parts{
		Sys: s, Executor: c.Executor, Key: p.key, Keys: p.signers.Keyring(), Door: p.door, Journal: p.journal,
		Backups: backup.New(c.Path(c.Backups), c.Executor), Systems: p.systems, Redactor: p.redactor.Load,
	})
	if err := p.journal.Ready(); err != nil {
		p.log.Warn("every writ is refused", "error", err)
	}
	if err := p.begin(ctx); err != nil {
		return nil, errors.Join(err, p.journal.Close(), p.release())
	}
	return p, nil
}

// anchor signs the audit from time to time.
func (p *process) anchor(ctx context.Context) {
	ticker := time.NewTicker(anchorEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := p.journal.Anchor(context.WithoutCancel(ctx)); err != nil {
			p.log.Error("the audit of the executor was not signed", "error", err, "cause", errors.Unwrap(err))
		}
	}
}

// anchorEvery is how long events of the executor may wait for a signature beside
// them. Those that matter outside are signed in receipts, at once.
const anchorEvery = 10 * time.Second

// begin loads what reload loads, and unlocks a vault that needs no passphrase.
func (p *process) begin(ctx context.Context) error {
	if err := p.use(ctx, p.config, journal.Started); err != nil {
		return err
	}
	if p.vault.NeedsPassphrase() {
		p.log.Warn("the vault is locked; run: writ vault unlock")
		return nil
	}
	return p.Unlock(ctx, "")
}

// use puts a configuration in force, once it is recorded.
func (p *process) use(ctx context.Context, c *config.Config, act journal.Act) error {
	actions, err := loadCatalog(c)
	if err != nil {
		return err
	}
	keys, former, err := c.Keys()
	if err != nil {
		return err
	}
	if err := p.systems.configure(c.Systems, act == journal.Reloaded); err != nil {
		return err
	}
	if err := p.journal.Act(ctx, act, c.Digest, digest(actions)); err != nil {
		return err
	}
	p.config = c
	p.door.Use(admit.Rules{
		Executor: c.Executor, Keys: writ.NewKeyring(keys...), Former: writ.NewKeyring(former...), Approvers: c.Approvers, Systems: p.systems.infos(),
		Catalog: actions, ObservePerMinute: c.Limits.ObservePerMinute,
	})
	return nil
}

// readiness is what the door asks for: credentials can be used, and whatever an
// earlier process left unfinished is settled.
type readiness struct{ *process }

// Locked reports whether nothing may be done yet.
func (r readiness) Locked() bool { return r.vault.Locked() || !r.settled.Load() }

// Unlock opens the vault and, the first time, settles what was cut off.
func (p *process) Unlock(ctx context.Context, passphrase string) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	if err := p.vault.Unlock(passphrase); err != nil {
		return err
	}
	p.redactor.Store(hiding(p.hashKey, p.vault))
	ctx = context.WithoutCancel(ctx)
	err := p.journal.Act(ctx, journal.Unlocked, "", "")
	if err == nil && !p.settled.Load() {
		err = p.runner.Recover(ctx)
	}
	if err != nil {
		p.vault.Lock()
		return err
	}
	p.settled.Store(true)
	return nil
}

// Lock forgets the secrets. The redactor keeps them, for answers under way.
func (p *process) Lock() {
	p.changing.Lock()
	defer p.changing.Unlock()
	p.vault.Lock()
	if err := p.systems.configure(p.config.Systems, true); err != nil {
		p.log.Error("a system cannot be opened again", "error", err)
	}
	if err := p.journal.Act(context.Background(), journal.Locked, "", ""); err != nil {
		p.log.Error("that the vault was locked is not recorded", "error", err, "cause", errors.Unwrap(err))
	}
}

// Reload reads configuration, catalog and vault again. On an error everything
// stays as it was.
func (p *process) Reload(ctx context.Context) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	c, err := config.Load(p.config.Dir)
	if err != nil {
		return err
	}
	if old := p.config; c.Executor != old.Executor || c.Socket != old.Socket || c.Backups != old.Backups || c.Vault != old.Vault {
		return fault.New(fault.Unsupported, "The name, the socket, the vault and the backups change only at a start. Start the executor again.")
	}
	if err := p.vault.Reload(); err != nil {
		return err
	}
	if !p.vault.Locked() {
		p.redactor.Store(hiding(p.hashKey, p.vault))
	}
	return p.use(context.WithoutCancel(ctx), c, journal.Reloaded)
}

// Status is what the operator is told.
func (p *process) Status() serve.Status {
	p.changing.Lock()
	defer p.changing.Unlock()
	s := serve.Status{Executor: p.config.Executor, Locked: p.vault.Locked(), Catalog: digest(p.door.Rules().Catalog)}
	if err := p.refuses(); err != nil {
		s.Closed = fault.TextOf(err)
	}
	return s
}

// refuses returns why every writ would be refused now.
func (p *process) refuses() error {
	if err := p.door.Closed(); err != nil {
		return err
	}
	return p.journal.Ready()
}

func (p *process) hello(ctx context.Context) (writ.Hello, error) {
	epoch, err := p.journal.Epoch(ctx)
	if err != nil {
		return writ.Hello{}, err
	}
	last, err := p.journal.Last(ctx)
	rules := p.door.Rules()
	var refusal *writ.Refusal
	if err := p.refuses(); err != nil {
		refusal = &writ.Refusal{Code: fault.CodeOf(err), Reason: fault.ReasonOf(err), Text: fault.TextOf(err)}
	}
	return writ.Hello{
		Executor: rules.Executor, KeyID: writ.KeyID(p.key.Public().(ed25519.PublicKey)),
		GateKeyIDs: slices.Sorted(maps.Keys(rules.Keys)), CatalogDigest: rules.Catalog.Digest(), Epoch: epoch, Locked: p.vault.Locked(), Last: last,
		Systems: rules.Systems, Refuses: refusal, Former: former(p.signers),
	}, err
}

// serve answers until ctx ends. Then nothing more is admitted, the step under
// way is finished, and its receipt can still be fetched.
func (p *process) serve(ctx context.Context, second func(), stdout io.Writer) error {
	link := &serve.Link{Log: p.log, Door: p.door, Runner: p.runner, Journal: p.journal, Hello: p.hello}
	socket := p.config.Path(p.config.Socket)
	if filepath.Dir(socket) == filepath.Join(p.config.Dir, "run") {
		if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fault.Wrap(fault.Unavailable, err, "The directory of the socket %s cannot be made.", socket)
		}
	}
	admin, err := serve.Listen(ctx, p.config.Path(config.AdminSocket), 0o600)
	if err != nil {
		return errors.Join(err, p.close())
	}
	gate, err := serve.Listen(ctx, socket, 0o660)
	if err != nil {
		return errors.Join(err, admin.Close(), p.close())
	}
	servers := []*http.Server{serve.Server(serve.Admin(p, p.log)), serve.Server(link.Handler())}
	failed := make(chan error, len(servers))
	for i, l := range []net.Listener{admin, gate} {
		servers[i].ErrorLog = slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)
		go func() { failed <- servers[i].Serve(l) }()
	}
	signing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var signer sync.WaitGroup
	signer.Go(func() { p.anchor(signing) })
	fmt.Fprintf(stdout, "writ-executor %s is ready on %s\n", p.config.Executor, socket)
	err = nil
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fault.Wrap(fault.Unavailable, err, "The socket of the executor failed.")
	}
	second() // another signal ends the process at once; the next start settles what that cuts off
	p.door.Close(admit.Draining())
	p.log.Info("stopping: no more writs are taken, the step under way is finished")
	p.runner.Wait()
	for _, s := range servers {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		_ = s.Shutdown(grace) // whoever still waits asks again after the next start
		cancel()
	}
	p.runner.Wait() // for a writ that was being admitted when the door was closed
	if e := p.journal.Drained(context.WithoutCancel(ctx)); e != nil {
		p.log.Error("that the executor was drained is not recorded", "error", e, "cause", errors.Unwrap(e))
	}
	stop()
	signer.Wait()
	return errors.Join(err, p.close())
}

func (p *process) close() error { return errors.Join(p.journal.Close(), p.release()) }

func loadCatalog(c *config.Config) (*catalog.Catalog, error) {
	files, place := catalog.Builtin(), "that is shipped"
	if c.Catalog != "" {
		files, place = os.DirFS(c.Path(c.Catalog)), c.Path(c.Catalog)
		if err := disk.Trusted(place); err != nil {
			return nil, err
		}
	}
	actions, err := catalog.Load(files)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "The catalog %s is not valid:\n%v", place, err)
	}
	return actions, nil
}

// digest covers the definitions of a catalog and its settings.
func digest(c *catalog.Catalog) writ.Digest {
	all := writ.Object{"": string(c.Digest())}
	for _, name := range c.Names() {
		all[name] = c.Settings(name)
	}
	d, err := writ.DigestOf(all)
	if err != nil {
		return "" // a setting that no text can hold: the same on both sides
	}
	return d
}

func readKey(file string) (ed25519.PrivateKey, error) {
	text, err := datadir.Read(file)
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		// The cause may quote the key.
		return nil, fault.New(fault.Unavailable, "%s holds no key of an executor. Restore it from a copy.", file)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// hashKey reads the key of the hashes that stand in the places of secrets. A
// directory that has none yet gets one.
func hashKey(c *config.Config) ([]byte, error) {
	file := c.Path(config.HashKeyFile)
	text, err := datadir.Read(file)
	if fault.CodeOf(err) == fault.NotFound {
		text = []byte(sys.Real(nil).NewSecret(32) + "\n")
		err = datadir.Create(file, text)
	}
	if key := bytes.TrimSpace(text); err != nil || len(key) >= 32 {
		return key, err
	}
	return nil, fault.New(fault.Unavailable, "%s holds no key. Restore it from a copy, or remove it: then equal secrets in old and new records no longer look equal.", file)
}

// hiding knows every secret of the vault.
func hiding(key []byte, v *vault.Vault) *redact.Redactor { return redact.New(key, v.Values()...) }

func asFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }
