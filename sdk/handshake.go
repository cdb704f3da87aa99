// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// ProtocolVersion is the version of the wire protocol, and with it of the
// canonical dialect of expressions.
const ProtocolVersion = 2

// PluginName is the name under which go-plugin dispenses an architecture.
const PluginName = "architecture"

// EngineCertificate and PluginIdentity are the environment variables by which the
// engine tells a process how their connection is secured, in PEM: its own
// certificate, as go-plugin tells it, and a certificate with its key that was made
// for the process. Serve takes that.
const (
	EngineCertificate = "PLUGIN_CLIENT_CERT"
	PluginIdentity    = "UNWINDD_PLUGIN_IDENTITY"
)

// Handshake is what engine and plugin must have in common before they talk. Its
// cookie is no secret: it tells a plugin that an engine started it.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "UNWINDD_ARCHITECTURE_PLUGIN",
		MagicCookieValue: "5f0d7f2c9c2b4d6f8e0a1b6b3f9a4e17",
	}
}

// ClientPlugins is the engine's side of what plugins serve, by protocol
// version. Dispense(PluginName) gives a *Client.
func ClientPlugins() map[int]plugin.PluginSet {
	return versions(&grpcPlugin{})
}

func versions(p plugin.Plugin) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{ProtocolVersion: {PluginName: p}}
}

// grpcPlugin is what go-plugin asks for either side of the connection.
type grpcPlugin struct {
	plugin.NetRPCUnsupportedPlugin
	server *architectureServer // the plugin's side; nil in the engine
}

func (p *grpcPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pb.RegisterArchitectureServer(s, p.server)
	return nil
}

func (p *grpcPlugin) GRPCClient(ctx context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return newClient(ctx, conn), nil
}
