// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Serve is the main function of a plugin. It shakes hands with the engine that
// started the process, answers its calls, and returns when the engine is gone,
// however that ended. Logs go to standard error as JSON lines, which the engine
// reads. A process that no engine started says what it is and exits with
// status 1.
func Serve(arch Architecture) {
	handshake := Handshake()
	if os.Getenv(handshake.MagicCookieKey) != handshake.MagicCookieValue {
		name := filepath.Base(os.Args[0])
		fmt.Fprintf(os.Stderr, "%s is an architecture plugin of unwindd (protocol version %d); unwindd starts it when a target needs it.\n"+
			"Put it into a folder that --plugin-dir or UNWINDD_PLUGIN_DIR names.\n",
			name, ProtocolVersion)
		os.Exit(1)
	}
	plugin.Serve(serveConfig(arch))
}

func serveConfig(arch Architecture) *plugin.ServeConfig {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: os.Stderr, JSONFormat: true})
	server := &architectureServer{arch: arch, logger: logger}
	return &plugin.ServeConfig{
		HandshakeConfig:  Handshake(),
		VersionedPlugins: versions(&grpcPlugin{server: server}),
		Logger:           logger,
		TLSProvider:      tlsConfig,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			life := &lifeline{}
			s := newServer(append(opts, grpc.StatsHandler(life))...)
			life.begin(connectTimeout, s.Stop)
			return s
		},
	}
}

// newServer is a server of an architecture.
func newServer(opts ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxAnswer))...)
}

// tlsConfig secures the connection as the engine said; nil where it said nothing,
// or left it to go-plugin.
func tlsConfig() (*tls.Config, error) {
	identity, engine := os.Getenv(PluginIdentity), os.Getenv(EngineCertificate)
	if identity == "" || engine == "" {
		return nil, nil //nolint:nilnil // go-plugin's way to say so
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
		RootCAs:      trusted,
		MinVersion:   tls.VersionTLS13,
		ServerName:   "localhost",
	}, nil
}

// connectTimeout is how long a plugin waits for the engine that started it.
const connectTimeout = time.Minute
