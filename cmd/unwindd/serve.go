// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/internal/garbage"
	"github.com/unwindd/unwindd/internal/host"
)

// serveFlags are the flags of `unwindd serve`.
type serveFlags struct {
	*globals
	debuginfodFlags
	symbolFlags
	fleet       queueFlags // of a server: the fleet for requests that have no place
	relay       relayFlags // likewise: profiles that are passed on
	listen      []string
	sysroot     string
	debugDirs   []string
	state       string
	hosts       []string
	tokens      string
	certificate string
	key         string
	clientCA    string
	drain       time.Duration
	logJSON     bool
	logLevel    string
	isCheck     bool
	limits      service.Limits
	body        byteSize
	answer      byteSize
	unpack      byteSize
	memory      byteSize
	spool       byteSize
	objects     byteSize
	reports     optionalSize

	set    *pflag.FlagSet // all flags
	isOpen bool           // other machines reach it

	isEnding bool // by a signal
}

// newServeFlags returns the flags with their defaults.
func newServeFlags(g *globals) *serveFlags {
	f := &serveFlags{globals: g, limits: service.DefaultLimits}
	d := &service.DefaultLimits
	f.body, f.answer, f.unpack = byteSize(d.Body), byteSize(d.Answer), byteSize(d.Unpack)                                         //nolint:gosec // positive
	f.memory, f.spool, f.objects, f.limits.Workers = byteSize(d.Memory), byteSize(d.Spool), byteSize(d.Objects), runtime.NumCPU() //nolint:gosec // positive
	f.reports = optionalSize(d.Reports)                                                                                           //nolint:gosec // positive
	return f
}

func newServe(g *globals) *cobra.Command {
	f := newServeFlags(g)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer requests by gRPC and HTTP, with symbols that stay warm",
		Long: `Answer requests about stacks by gRPC and by HTTP with JSON, on one listener. Symbols
stay warm, and plugins up, between requests; what is sent is read by processes of their
own, which are confined, so that a hostile file costs its own request only.

It listens at a Unix socket that only its user can open, or at an address of this machine.
Another address takes --tls-cert and --tls-key, and --tokens or --client-ca.

No file of this machine is opened because a request names it: what a target needs is
looked up under --sysroot, where there is one, among the objects that were put by build
ID, and at the servers of --debuginfod and --symbols.

SIGTERM ends it when the requests that are under way are answered, within --drain; SIGHUP
has it read its tokens, its certificates and the configuration file again.

With --otlp-listen it takes profiles of OpenTelemetry's profilers and collectors, names
their native frames, and passes them on to the collector of --otlp-to.

With --queue, the workers of a fleet ('unwindd worker') do what there is no place for.

What its flags say can be in the table [serve] of the configuration file too, by the
same names; flags count more.`,
		Example: `  unwindd serve
  unwindd serve --listen localhost:8080 --sysroot /srv/roots/debian-12
  curl --unix-socket $XDG_RUNTIME_DIR/unwindd.sock --data-binary @core \
      http://localhost/v1/stack`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.set = cmd.Flags()
			if f.isCheck {
				return f.checkServer(cmd.Context())
			}
			return f.run(cmd.Context())
		},
	}
	f.add(cmd.Flags())
	f.addFleet(cmd.Flags())
	f.relay.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.isCheck, "check", false, "ask the server that listens there whether it takes requests, and end")
	forCommandLine(cmd.Flags(), "check")
	return cmd
}

// add adds the flags of a server, which a worker of a fleet has, too.
func (f *serveFlags) add(flags *pflag.FlagSet) {
	d := service.DefaultLimits
	flags.StringArrayVar(&f.listen, "listen", nil, "listen at `ADDRESS`: unix:PATH or HOST:PORT; may be repeated (default unix:$XDG_RUNTIME_DIR/unwindd.sock, or the sockets of systemd)")
	flags.StringVar(&f.sysroot, "sysroot", "", "look up the files of targets under `DIR`; the default is nowhere")
	flags.StringArrayVar(&f.debugDirs, "debug-dir", nil, "look for separate debug files under `DIR`; may be repeated")
	f.debuginfodFlags.add(flags)
	f.symbolFlags.add(flags)
	flags.StringVar(&f.state, "state", "", "keep objects that are put, and reports that are to be kept, in `DIR` (default $XDG_STATE_HOME/unwindd)")
	flags.StringArrayVar(&f.hosts, "host", nil, "requests may be for the host `NAME`, too; may be repeated")
	flags.StringVar(&f.tokens, "tokens", "", "let in who has a token of `FILE`, which has a name and a token on each line")
	flags.StringVar(&f.certificate, "tls-cert", "", "speak TLS with the certificate in `FILE`")
	flags.StringVar(&f.key, "tls-key", "", "the certificate's key is in `FILE`")
	flags.StringVar(&f.clientCA, "client-ca", "", "let in who has a certificate of an authority in `FILE`")
	flags.DurationVar(&f.drain, "drain", 30*time.Second, "on SIGTERM, answer what is under way for up to `DURATION`")
	flags.BoolVar(&f.logJSON, "log-json", false, "write the log as lines of JSON")
	flags.StringVar(&f.logLevel, "log-level", "info", "log from `LEVEL` on: debug, info, warn or error; -v is debug")
	flags.IntVar(&f.limits.Workers, "workers", f.limits.Workers, "work on `N` requests at a time")
	flags.IntVar(&f.limits.Waiting, "max-waiting", d.Waiting, "let `N` requests wait; more are told to come again")
	flags.IntVar(&f.limits.Connections, "max-connections", d.Connections, "let `N` connections be open, and N requests be under way (default a quarter of the descriptors that it may have, 4096 at most)")
	flags.IntVar(&f.limits.PerUser, "max-waiting-each", d.PerUser, "let `N` requests of one caller wait")
	flags.IntVar(&f.limits.Frames, "max-frames", d.Frames, "keep at most `N` frames of a stack, whatever a request asks for")
	flags.DurationVar(&f.limits.Time, "max-time", d.Time, "a request may be worked on for `DURATION`")
	flags.DurationVar(&f.limits.Idle, "max-idle", d.Idle, "a caller may send, or take, less than 64 KiB for `DURATION`")
	for _, size := range []struct {
		value       *byteSize
		name, usage string
	}{
		{&f.body, "max-body", "a request may send `SIZE` bytes"},
		{&f.answer, "max-answer", "a report may have `SIZE` bytes"},
		{&f.unpack, "max-unpacked", "a packed target may unpack to `SIZE` bytes"},
		{&f.memory, "max-memory", "a request may need `SIZE` bytes of memory"},
		{&f.spool, "max-spool", "all requests that are under way may have `SIZE` bytes on disk"},
		{&f.objects, "max-objects", "the objects that are kept may have `SIZE` bytes"},
	} {
		flags.Var(size.value, size.name, size.usage)
	}
	flags.Var(&f.reports, "max-reports", "the reports that are kept may have `SIZE` bytes; 0: none are kept")
}

// addFleet adds the flags for a fleet. A worker has other flags for its queue.
func (f *serveFlags) addFleet(flags *pflag.FlagSet) {
	f.fleet.add(flags)
	flags.Lookup("queue").Usage = "have the fleet whose queue is at `URL` do the stacks, profiles and snapshots that are over --max-waiting; UNWINDD_QUEUE does not turn this on"
	flags.IntVar(&f.limits.Handed, "max-handed-over", service.DefaultLimits.Handed, "with --queue, let the fleet have `N` requests at a time")
}

// queue returns the options of the fleet's queue; nil: there is none.
func (f *serveFlags) queue() (*fleet.Options, error) {
	switch {
	case f.fleet.url == "" && (f.fleet.credentials != "" || f.fleet.ca != "" || f.fleet.certificate != "" || f.fleet.key != ""):
		return nil, usageError{errors.New("--queue-creds, --queue-ca, --queue-cert and --queue-key: expected --queue too")}
	case f.fleet.url == "":
		return nil, nil
	case f.limits.Handed < 1:
		return nil, usageError{fmt.Errorf("--max-handed-over %d: expected 1 or more", f.limits.Handed)}
	}
	o := f.fleet.options()
	return &o, f.fleet.check()
}

// optionalSize is a byteSize that may be 0, too.
type optionalSize byteSize

func (s *optionalSize) String() string { return (*byteSize)(s).String() }

// Type implements pflag.Value.
func (s *optionalSize) Type() string { return (*byteSize)(s).Type() }

// Set implements pflag.Value.
func (s *optionalSize) Set(text string) error {
	if text == "0" {
		*s = 0
		return nil
	}
	return (*byteSize)(s).Set(text)
}

// needsLinux refuses a command on another system.
func needsLinux(command string) error {
	if host.IsLinux {
		return nil
	}
	return fmt.Errorf("%s needs Linux, whose Landlock and seccomp confine its processes: run it there, and use it from here (stack --server, submit --queue)", command)
}

func (f *serveFlags) run(ctx context.Context) error {
	if err := needsLinux("serve"); err != nil {
		return err
	}
	o, end, err := f.serverOptions()
	if err != nil {
		return err
	}
	defer end()
	secure, err := f.security()
	if err != nil {
		return err
	}
	listeners, err := f.listeners(ctx, secure != nil, o.Tokens != nil)
	if err != nil {
		return err
	}
	defer func() { closeListeners(listeners) }()
	profiles, err := f.listenForProfiles(ctx, secure != nil, o.Tokens != nil)
	if err != nil {
		return err
	}
	listeners = append(listeners, profiles...)
	spans, endTraces, err := traces(o.Log)
	if err != nil {
		return err
	}
	defer endTraces()
	o.Traces = spans
	garbage.CollectSeldom()
	s, err := service.New(o)
	if err != nil {
		return err
	}
	ended := make(chan syscall.Signal, 1)
	takeSignals(func(sig syscall.Signal) bool {
		if f.onSignal(sig, s, secure, ended) {
			return true
		}
		closeListeners(listeners)
		s.Abandon()
		return false
	})
	failed := make(chan error, len(listeners))
	ready := report.NewLinePrinter(stdout)
	for i, l := range listeners {
		serve, what := s.Serve, ""
		if i >= len(listeners)-len(profiles) {
			serve, what = s.ServeProfiles, " for profiles"
		}
		go func() { failed <- serve(l, secure.config()) }()
		ready.Printf("listening %s%s\n", addressOf(l), what)
	}
	if err := ready.Flush(); err != nil {
		return err
	}
	notify("READY=1")
	select {
	case err := <-failed:
		s.Abandon()
		return err
	case sig := <-ended:
		s.Refuse() // connections that are open ask further when the listeners are closed
		o.Log.Info("draining", "signal", sig.String(), "for", f.drain.String())
	}
	notify("STOPPING=1")
	closeListeners(listeners)
	ctx, cancel := context.WithTimeout(ctx, f.drain)
	defer cancel()
	return s.Drain(ctx)
}

// onSignal handles a signal of a server: the first SIGINT or SIGTERM drains it, SIGHUP
// reloads. Others, and a second one, end it at once.
func (f *serveFlags) onSignal(sig syscall.Signal, s *service.Server, secure *security, ended chan<- syscall.Signal) bool {
	switch sig {
	case syscall.SIGHUP:
		f.reload(s, secure)
		return true
	case syscall.SIGINT, syscall.SIGTERM:
		if !f.isEnding {
			f.isEnding = true
			ended <- sig
			return true
		}
	}
	return false
}

// serverOptions returns the options of the server; end closes their clients.
func (f *serveFlags) serverOptions() (o service.Options, end func(), err error) {
	if err := f.checkFormat("text"); err != nil {
		return o, nil, err
	}
	if err := errors.Join(f.checkLimits(), keepCachesOfService()); err != nil {
		return o, nil, err
	}
	if err := checkDirs("debug-dir", f.debugDirs...); err != nil {
		return o, nil, err
	}
	if f.sysroot != "" {
		if err := checkDirs("sysroot", f.sysroot); err != nil {
			return o, nil, err
		}
	}
	plugins, err := f.plugins()
	if err != nil {
		return o, nil, err
	}
	if err := f.checkPlugins(plugins); err != nil {
		return o, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return o, nil, err
	}
	o = service.Options{
		Limits: f.allLimits(), Self: self, Starter: plugins.Self, Sysroot: absolutePath(f.sysroot), DebugDirs: absolutePaths(f.debugDirs),
		PluginDirs: absolutePaths(plugins.Dirs), Pins: plugins.Pins, Choice: plugins.Choice, InProcess: f.inProcess, Hosts: f.hosts, Log: f.logger(),
		State: f.stateDir(), Run: runDir(),
	}
	if o.Tokens, err = f.readTokens(); err != nil {
		return o, nil, err
	}
	if o.Queue, err = f.queue(); err != nil {
		return o, nil, err
	}
	if o.Collector, err = f.relay.collector(); err != nil {
		return o, nil, err
	}
	d := f.downloads(func(text string) { o.Log.Debug(text) })
	f.symbolFlags.addTo(&d)
	d.Debuginfod.Headers, d.Stores.Headers = fromServer(d.Debuginfod.Headers), fromServer(d.Stores.Headers)
	d.MaxFiles = -1 // workers bound the files of each request
	r, err := d.Connect()
	if err != nil {
		return o, nil, serverUsage(err, f.origin())
	}
	o.Remote, o.Symbols = r.Debuginfod, r.Stores
	if d.Debuginfod.Cache != "" {
		o.Caches = append(o.Caches, d.Debuginfod.Cache)
	}
	o.Caches = append(o.Caches, d.Stores.Cache)
	return o, r.Close, nil
}

// fromServer returns headers of requests with the mark of a server's own.
func fromServer(h http.Header) http.Header {
	marked := http.Header{"Via": {service.Via}}
	maps.Copy(marked, h)
	return marked
}

// checkLimits refuses invalid limits, and an invalid level of the log.
func (f *serveFlags) checkLimits() error {
	if f.limits.Workers < 1 || f.limits.Waiting < 0 || f.limits.PerUser < 0 || f.limits.Connections < 0 || f.limits.Frames < 1 || f.limits.Time <= 0 || f.limits.Idle <= 0 {
		return usageError{errors.New("--workers, --max-frames, --max-time and --max-idle are 1 or more, --max-connections, --max-waiting and --max-waiting-each not below 0")}
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, f.logLevel) {
		return usageError{fmt.Errorf("--log-level %s: expected debug, info, warn or error", f.logLevel)}
	}
	return nil
}

// level returns the level of the log.
func (f *serveFlags) level() hclog.Level {
	if f.verbose {
		return hclog.Debug
	}
	return hclog.LevelFromString(f.logLevel)
}

// allLimits returns the limits, with the sizes of the flags.
func (f *serveFlags) allLimits() service.Limits {
	l := f.limits
	l.Body, l.Answer, l.Spool, l.Objects = int64(f.body), int64(f.answer), int64(f.spool), int64(f.objects) //nolint:gosec // at most 1<<62
	l.Reports = int64(f.reports)                                                                            //nolint:gosec // likewise
	l.Unpack, l.Memory = uint64(f.unpack), uint64(f.memory)
	return l
}

// logger writes the log to standard error.
func (f *serveFlags) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "unwindd", Level: f.level(), Output: stderr, JSONFormat: f.logJSON})
}

func (f *serveFlags) readTokens() (service.Tokens, error) {
	if f.tokens == "" {
		return nil, nil
	}
	file, err := os.Open(f.tokens)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tokens, err := service.ReadTokens(file)
	if err != nil {
		return nil, fmt.Errorf("--tokens: %s: %w", f.tokens, err)
	}
	return tokens, nil
}

// security has the certificates of a server, which may be read again while it serves; nil:
// it speaks no TLS.
type security struct {
	flags *serveFlags
	now   atomic.Pointer[tls.Config]
}

// security reads the certificates.
func (f *serveFlags) security() (*security, error) {
	switch {
	case (f.certificate == "") != (f.key == ""):
		return nil, usageError{errors.New("--tls-cert and --tls-key: expected both")}
	case f.certificate == "" && f.clientCA != "":
		return nil, usageError{errors.New("--client-ca: expected --tls-cert and --tls-key too")}
	case f.certificate == "":
		return nil, nil
	}
	s := &security{flags: f}
	return s, s.load()
}

func (s *security) load() error {
	if s == nil {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(s.flags.certificate, s.flags.key)
	if err != nil {
		return err
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if s.flags.clientCA != "" {
		pem, err := os.ReadFile(s.flags.clientCA)
		if err != nil {
			return err
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: no certificate", s.flags.clientCA)
		}
		if s.flags.tokens != "" {
			c.ClientAuth = tls.VerifyClientCertIfGiven // a token does too
		}
	}
	s.now.Store(c)
	return nil
}

// config returns the settings of connections; nil: they are not TLS.
func (s *security) config() *tls.Config {
	if s == nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, Certificates: s.now.Load().Certificates,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.now.Load(), nil },
	}
}

// listeners listens at the addresses, or takes the sockets that systemd has opened.
func (f *serveFlags) listeners(ctx context.Context, isSecure, hasTokens bool) (list []net.Listener, err error) {
	defer func() {
		if err != nil {
			closeListeners(list)
		}
	}()
	if list, err = activated(); err != nil {
		return list, err
	}
	addresses := f.listen
	if len(addresses) == 0 && len(list) == 0 {
		addresses = []string{"unix:" + socketPath()}
	}
	for _, a := range addresses {
		l, err := listenAt(ctx, "--listen", a)
		if err != nil {
			return list, err
		}
		list = append(list, l)
	}
	return list, f.mayListen("--listen", list, isSecure, hasTokens)
}

// mayListen refuses addresses that others reach where it is not known who they are.
func (f *serveFlags) mayListen(flag string, list []net.Listener, isSecure, hasTokens bool) error {
	for _, l := range list {
		f.isOpen = f.isOpen || !service.IsLocal(l.Addr())
		if !service.IsLocal(l.Addr()) && (!isSecure || !hasTokens && f.clientCA == "") {
			return usageError{fmt.Errorf("%s %s: others reach this address: expected --tls-cert and --tls-key, and --tokens or --client-ca", flag, l.Addr())}
		}
	}
	return nil
}

// listenAt listens at unix:PATH or HOST:PORT of a flag. It replaces a socket that a dead server left.
func listenAt(ctx context.Context, flag, address string) (net.Listener, error) {
	var c net.ListenConfig
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, usageError{fmt.Errorf("%s %s: expected unix:PATH or HOST:PORT: %w", flag, address, err)}
		}
		if host == "" {
			address = "localhost" + address
		}
		return c.Listen(ctx, "tcp", address)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		var d net.Dialer
		if live, err := d.DialContext(ctx, "unix", path); err == nil {
			_ = live.Close()
			return nil, fmt.Errorf("%s %s: a server listens there already", flag, address)
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	defer host.OnlyOwner()() // only its user opens it
	return c.Listen(ctx, "unix", path)
}

// firstSocket is the descriptor of systemd's first socket (sd_listen_fds(3)).
const firstSocket = 3

// activated returns the sockets that systemd has opened for this process.
func activated() (list []net.Listener, err error) {
	if pid, err := strconv.Atoi(os.Getenv("LISTEN_PID")); err != nil || pid != os.Getpid() {
		return nil, nil //nolint:nilerr // they are not for this process
	}
	count, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || count < 0 || count > 64 {
		return nil, fmt.Errorf("LISTEN_FDS is %q, expected a number of sockets", os.Getenv("LISTEN_FDS"))
	}
	for fd := firstSocket; fd < firstSocket+count; fd++ {
		host.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "socket")
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return list, fmt.Errorf("descriptor %d of systemd: %w", fd, err)
		}
		list = append(list, l)
	}
	return list, nil
}

func closeListeners(list []net.Listener) {
	for _, l := range list {
		_ = l.Close()
	}
}

// addressOf returns the address of a listener in the syntax of --listen.
func addressOf(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// runtimeDir returns the folder of this user's sockets.
func runtimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("unwindd-%d", os.Getuid()))
}

// xdg returns this user's folder in one of the XDG base directories.
func xdg(variable, usual string) string {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			home = runtimeDir()
		}
		dir = filepath.Join(home, usual)
	}
	return filepath.Join(dir, "unwindd")
}

func absolutePath(path string) string {
	if path == "" {
		return ""
	}
	if all, err := filepath.Abs(path); err == nil {
		return all
	}
	return path
}

func absolutePaths(paths []string) (list []string) {
	for _, p := range paths {
		list = append(list, absolutePath(p))
	}
	return list
}

// workerPlugins returns the options for plugins of a process that reads the files that were sent
// to a server.
func workerPlugins(dirs []string, inProcess bool) (plugin.Options, error) {
	g := globals{inProcess: inProcess, pluginDir: dirs}
	return g.plugins()
}
