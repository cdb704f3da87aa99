// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// Serve is the main function of a plugin. It shakes hands with the engine that
// started the process, answers its calls, and returns when the engine is gone,
// however that ended. Output of the process to standard output meanwhile goes to
// standard error, which the engine reads; panics are logged there as lines of
// hclog's JSON. A process that no engine started prints that it is a plugin and exits
// with status 1, unless the variable Debug is set.
//
// It does without go-plugin, which contains both sides of two protocols: a tenth of
// the executable, and a third of the time until it is ready.
func Serve(arch Architecture) {
	serveService(architectureService(arch))
}

// ServeRuntime is the main function of the plugin of a language runtime, as Serve is the
// main function of an architecture's.
func ServeRuntime(r Runtime) {
	serveService(runtimeService(r))
}

// service is a plugin of one of the two kinds.
type service struct {
	prefix   string // of the names of such plugins' executables
	kind     string // as in Reattachment
	register func(*grpc.Server)
	// describe returns the name in the plugin's description.
	describe func(context.Context) (string, error)
}

func architectureService(arch Architecture) service {
	return service{
		prefix: ExecutablePrefix,
		register: func(s *grpc.Server) {
			pb.RegisterArchitectureServer(s, &architectureServer{arch: arch, host: host{log: os.Stderr}})
		},
		describe: func(ctx context.Context) (string, error) {
			d, err := arch.Describe(ctx)
			if err != nil || d == nil {
				return "", err
			}
			return d.Name, nil
		},
	}
}

func runtimeService(r Runtime) service {
	return service{
		prefix: RuntimePrefix, kind: "runtime",
		register: func(s *grpc.Server) {
			pb.RegisterRuntimeServer(s, &runtimeServer{runtime: r, host: host{log: os.Stderr}})
		},
		describe: func(ctx context.Context) (string, error) {
			d, err := r.Describe(ctx)
			if err != nil || d == nil {
				return "", err
			}
			return d.Name, nil
		},
	}
}

func serveService(plugin service) {
	var err error
	switch {
	case os.Getenv(Cookie) == CookieValue:
		err = serve(plugin)
	case os.Getenv(Debug) != "":
		err = serveDebug(plugin)
	default:
		err = fmt.Errorf("this is a plugin of unwindd (protocol version %d); unwindd starts it when a target needs it.\n"+
			"Put it into a folder that --plugin-dir or UNWINDD_PLUGIN_DIR names. To start it in a debugger, set %s=1.", ProtocolVersion, Debug)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// serve answers the engine that started the process, until it is gone.
func serve(plugin service) error {
	out := os.Stdout
	os.Stdout = os.Stderr // the engine reads one line of the other
	var opts []grpc.ServerOption
	secure, err := tlsConfig()
	switch {
	case err != nil:
		return err
	case secure != nil:
		opts = append(opts, grpc.Creds(credentials.NewTLS(secure)))
	}
	dir := os.Getenv(SocketDirectory)
	if dir == "" {
		return fmt.Errorf("%s is not set, expected the directory to listen in", SocketDirectory)
	}
	life := &lifeline{}
	s := newServer(plugin, append(opts, grpc.StatsHandler(life))...)
	l, err := listen(dir)
	if err != nil {
		return err
	}
	life.begin(connectTimeout, s.Stop)
	if _, err := fmt.Fprintf(out, "%d|%d|unix|%s|grpc\n", HandshakeVersion, ProtocolVersion, l.Addr()); err != nil {
		return fmt.Errorf("saying where it listens: %w", err)
	}
	return s.Serve(l)
}

// listen listens on a socket in a directory. It is removed with the listener.
func listen(dir string) (net.Listener, error) {
	return net.Listen("unix", filepath.Join(dir, fmt.Sprintf("plugin%d", os.Getpid())))
}

// window is how many bytes each side may send before the other says that it has taken some. gRPC's
// own 64 KiB cost a wait for each such part of the memory that is read.
const window = 4 << 20

// serverLimits are the limits of messages.
var serverLimits = []grpc.ServerOption{
	grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxAnswer), grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
}

// newServer returns a server with a plugin's service.
func newServer(plugin service, opts ...grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(opts, serverLimits...)...)
	plugin.register(s)
	return s
}

// tlsConfig returns the TLS configuration that the engine set; nil where it set none.
func tlsConfig() (*tls.Config, error) {
	identity, engine := os.Getenv(PluginIdentity), os.Getenv(EngineCertificate)
	switch {
	case identity == "" && engine == "":
		return nil, nil //nolint:nilnil // the engine asks for none
	case identity == "" || engine == "":
		return nil, errors.New(PluginIdentity + " and " + EngineCertificate + ": one of them is not set, expected both or none")
	}
	pair, err := tls.X509KeyPair([]byte(identity), []byte(identity))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PluginIdentity, err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM([]byte(engine)) {
		return nil, fmt.Errorf("%s: no certificate", EngineCertificate)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    trusted,
		MinVersion:   tls.VersionTLS13,
	}, nil
}

// connectTimeout is how long a plugin waits for the engine that started it.
const connectTimeout = time.Minute
