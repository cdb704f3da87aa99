// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/sdk"
)

const (
	// maxMessage bounds one message from a plugin, in bytes, before it is decoded. Large
	// answers come as streams of smaller ones.
	maxMessage = 64 << 20
	// MaxSocketBase bounds the length of the path of a directory in which a private one
	// is made: the address of a Unix socket has 107 bytes, and go-plugin's names inside
	// take up to 59.
	MaxSocketBase = 48
	// pipeGrace is the time for which the output of a dead process is still read, where
	// another process has its pipes open.
	pipeGrace = time.Second
)

// launch has the parameters of the start of a plugin's process.
type launch struct {
	name    string
	self    string   // the executable of unwindd
	build   string   // that self must have; "": any
	sha256  string   // of a vendor's executable; "": not checked
	command []string // the executable and its arguments; of a bundled plugin the arguments of self
	// isBundled means that the plugin is in self, which confines itself. A vendor's is
	// started by `self plugin exec`.
	isBundled bool
	isThis    bool   // self is the executable of this process
	data      string // the folder of a vendor's data, which it may read; "": there is none
	waiting   func(text string)
	memory    uint64   // bytes that it may have
	threads   uint64   // that it may have; 0: confine.MaxThreads
	limit     deadline // until it has described itself
	logger    hclog.Logger
}

// process is a running plugin that has shaken hands.
type process struct {
	child    *child
	client   *goplugin.Client
	peer     peer
	log      *stderrLog
	dir      *directory
	socket   soleSocket // to the plugin, until conn has it
	conn     atomic.Pointer[grpc.ClientConn]
	once     sync.Once
	clock    processorClock
	isBlamed bool         // a call failed with it; guarded by the supervisor's mutex
	ignored  atomic.Int32 // how many members of its answers are known to be ignored
}

// start starts the process, as a child with the ctx of limit, and connects to it. It ends
// with ctx at the latest, whatever the process does. The error tells the user what
// happened.
func (l *launch) start(ctx context.Context, c *child) (*process, error) {
	if l.self == "" {
		return nil, errors.New("could not be started: Options.Self, the unwindd executable that sandboxes it, is not set")
	}
	secure, certificates, err := l.security()
	if err != nil {
		return nil, err
	}
	p := &process{child: c, clock: processorClock{read: c.processorTime}, log: &stderrLog{logger: l.logger}}
	if err := p.open(); err != nil {
		return nil, err
	}
	p.client = goplugin.NewClient(&goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: clientPlugins(),
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		TLSConfig:        secure,
		SkipHostEnv:      true,
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: p.dir.path},
		StartTimeout:     l.limit.wall + time.Minute, // the context ends first, so that the error is always the same
		Stderr:           p.log,
		SyncStdout:       p.log,
		SyncStderr:       p.log,
		Logger:           hclog.NewNullLogger(), // the errors have all that matters
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
			grpc.WithChainStreamInterceptor(p.keepConnection),
			grpc.WithContextDialer(p.socket.take),
			grpc.WithIdleTimeout(0), // a plugin ends when its connection does
		},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, socketDir string) (runner.Runner, error) {
			p.child.prepare(l, socketDir, append(spec.Env, certificates...))
			return p.child, nil
		},
	})

	// Steps after the handshake have no deadline of their own in go-plugin.
	// The death of the process ends them all.
	stop := context.AfterFunc(ctx, func() { _ = p.child.Kill(context.Background()) })
	err = p.connect()
	if stop() && err == nil {
		return p, nil
	}
	err = p.explain(ctx, err, l.limit)
	p.stop()
	return nil, err
}

// security returns the TLS configuration of the connection, and the variables that tell
// the process about it. The connection to a bundled plugin, which is the engine's own
// code, is not encrypted where the system tells the process at the other end: its socket
// is in a private directory.
func (l *launch) security() (*tls.Config, []string, error) {
	if l.isBundled && knowsPeers {
		return nil, nil, nil
	}
	return newTLS()
}

// connect makes the one connection, checks its peer, starts gRPC over it and gets the
// peer.
func (p *process) connect() error {
	p.child.await("the line with its address on standard output")
	address, err := p.client.Start()
	if err != nil {
		return err
	}
	p.child.await("an answer on its socket " + clip(printable(address.String())))
	unix, ok := address.(*net.UnixAddr)
	if !ok {
		return fmt.Errorf("listens at %s, expected a Unix socket", address)
	}
	if err := p.socket.connect(unix.Name, p.child.PID()); err != nil {
		return err
	}
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(pluginName)
	if err != nil {
		return err
	}
	if p.peer, ok = raw.(peer); !ok {
		return fmt.Errorf("the client for %q is a %T, which is no plugin's", pluginName, raw)
	}
	return nil
}

// explain turns an error of the start into a description of its cause.
func (p *process) explain(ctx context.Context, err error, limit deadline) error {
	switch {
	case p.child.PID() == 0:
		return fmt.Errorf(notStarted+"%w", err)
	case isOutOfTime(ctx):
		p.child.waitSilent(pipeGrace)
		return fmt.Errorf("did not start within %s%s", limit.passed(ctx), p.lastWords())
	case ctx.Err() != nil:
		return errClosed
	}
	// A process that is about to die explains more than its silence.
	dead := p.child.waitExit(200 * time.Millisecond)
	if !dead {
		_ = p.child.Kill(context.Background())
		<-p.child.exited
	}
	if said := p.child.sandbox(); said.Error != "" {
		return errors.New(clip(printable(said.Error)))
	}
	p.child.waitSilent(pipeGrace)
	if dead && !p.child.isKilledByUs() {
		return fmt.Errorf("%s before it was ready%s", p.child.died(), p.lastWords())
	}
	message := "nothing"
	if err != nil {
		message = err.Error()
	}
	if speaks := otherVersion().FindStringSubmatch(message); speaks != nil {
		return fmt.Errorf("speaks version %s of the plugin protocol, expected %d: %s", speaks[1], sdk.ProtocolVersion, remedy(speaks[1]))
	}
	return fmt.Errorf("%s%s", handshakeProblem(message), p.lastWords())
}

// otherVersion matches the error of go-plugin about a plugin of another version.
var otherVersion = ondemand.Regexp(`incompatible API version with plugin\. Plugin version: (\d+)`)

// remedy tells the user what to do about a plugin of another version.
func remedy(version string) string {
	if n, err := strconv.Atoi(version); err == nil && n < sdk.ProtocolVersion {
		return "it needs to be built again, with package sdk or arch.proto of this version of unwindd"
	}
	return "it is for a later version of unwindd than this one"
}

// died describes the end of the process and, where its output has it, the cause: "exited
// with status 2: panic: boom, at main.decode (decode.go:12)". It may be called once the
// process is dead.
func (p *process) died() string {
	p.child.waitSilent(pipeGrace)
	if crash := p.log.crashed(); crash != "" {
		return p.child.died() + ": " + clip(crash)
	}
	return p.child.died()
}

// lastWords is the end of standard error, for the end of a sentence.
func (p *process) lastWords() string {
	if w := p.log.lastWords(); w != "" {
		return "; its standard error: " + w
	}
	return ""
}

// keepConnection stores the connection, which go-plugin forgets when its start fails
// halfway.
func (p *process) keepConnection(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	p.conn.Store(cc)
	return streamer(ctx, desc, cc, method, opts...)
}

// stop kills the process and removes all that belongs to it: the zombie, the goroutines,
// the directory. A plugin has nothing that a gentler end would save.
func (p *process) stop() {
	p.once.Do(func() {
		if p.child.PID() != 0 {
			_ = p.child.Kill(context.Background())
			<-p.child.exited
			end := time.Now().Add(pipeGrace)
			_ = p.child.stdout.SetReadDeadline(end)
			_ = p.child.stderr.SetReadDeadline(end)
			_ = p.child.report.SetReadDeadline(end)
			p.client.Kill()
			<-p.child.read
			p.child.stdout.Close()
			p.child.stderr.Close()
		}
		p.socket.close()
		if cc := p.conn.Load(); cc != nil {
			cc.Close()
		}
		p.close()
	})
}
