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

// pluginName is the name under which go-plugin dispenses a peer.
const pluginName = "plugin"

// handshake is the configuration by which go-plugin recognises plugins.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion: sdk.ProtocolVersion, MagicCookieKey: sdk.Cookie, MagicCookieValue: sdk.CookieValue,
	}
}

// clientPlugins has the engine's side of plugins' services, by protocol version.
// Dispense(pluginName) gives a peer.
func clientPlugins() map[int]goplugin.PluginSet {
	return map[int]goplugin.PluginSet{sdk.ProtocolVersion: {pluginName: &clientPlugin{}}}
}

// clientPlugin makes the engine's side of a connection for go-plugin. Plugins themselves
// do not use go-plugin: see sdk.Serve.
type clientPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
}

// attachTimeout is the time in which a plugin must be ready to call the engine.
const attachTimeout = time.Minute

func (*clientPlugin) GRPCClient(ctx context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return peer{sdk.NewClient(ctx, conn, attachTimeout), sdk.NewRuntimeClient(ctx, conn, attachTimeout)}, nil
}

func (*clientPlugin) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.ErrUnsupported
}

// soleSocket is the one connection to a plugin, until gRPC takes it.
type soleSocket struct{ atomic.Pointer[net.UnixConn] }

// connect makes the connection and checks the process at its other end.
func (s *soleSocket) connect(path string, pid int) error {
	socket, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	s.Store(socket)
	return checkPeer(path, pid)
}

// take is the dialer of gRPC: it returns the one connection, whose peer has been checked,
// and none after it.
func (s *soleSocket) take(context.Context, string) (net.Conn, error) {
	if socket := s.Swap(nil); socket != nil {
		return socket, nil
	}
	return nil, errors.New("the plugin ended the connection")
}

// close closes the connection unless it was taken.
func (s *soleSocket) close() {
	if socket := s.Swap(nil); socket != nil {
		socket.Close()
	}
}
