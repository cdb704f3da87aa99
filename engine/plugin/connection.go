// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/unwindd/unwindd/sdk"
)

// pluginName is the name under which go-plugin dispenses an architecture.
const pluginName = "architecture"

// handshake is what go-plugin has to know of plugins before it talks to them.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: sdk.Cookie, MagicCookieValue: sdk.CookieValue,
	}
}

// clientPlugins is the engine's side of what plugins serve, by protocol version.
// Dispense(pluginName) gives a *sdk.Client.
func clientPlugins() map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{sdk.ProtocolVersion: {pluginName: &clientPlugin{}}}
}

// clientPlugin is what go-plugin asks for the engine's side of a connection. Plugins
// have no use for go-plugin: sdk.Serve does without.
type clientPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

// attachTimeout is how long a plugin may take to be ready to ask the engine.
const attachTimeout = time.Minute

func (*clientPlugin) GRPCClient(ctx context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return sdk.NewClient(ctx, conn, attachTimeout), nil
}

func (*clientPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.ErrUnsupported
}

// A soleSocket is the one connection to a plugin, until gRPC has it.
type soleSocket struct{ atomic.Pointer[net.UnixConn] }

// connect makes the connection and checks who is at its other end.
func (s *soleSocket) connect(path string, pid int) error {
	socket, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	s.Store(socket)
	return checkPeer(path, pid)
}

// take is how gRPC connects: there is one connection, whose peer has been
// checked, and none after it.
func (s *soleSocket) take(context.Context, string) (net.Conn, error) {
	if socket := s.Swap(nil); socket != nil {
		return socket, nil
	}
	return nil, errors.New("the plugin ended the connection")
}

// close closes the connection where nobody took it.
func (s *soleSocket) close() {
	if socket := s.Swap(nil); socket != nil {
		socket.Close()
	}
}
