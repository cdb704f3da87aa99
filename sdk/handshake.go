// SPDX-License-Identifier: Apache-2.0

package sdk

// ProtocolVersion is the version of the wire protocol, and with it of the
// canonical dialect of expressions.
const ProtocolVersion = 2

// Feature is the number of the features of the protocol's version that this package knows:
// members that were added later have a higher number (docs/plugin-protocol.md has the table).
const Feature = 3

// HandshakeVersion is the version of the line in which a plugin writes its address. It
// is go-plugin's, whose client the engine uses.
const HandshakeVersion = 1

// Cookie is the environment variable with which an engine starts a plugin, with the
// value CookieValue. It is no secret.
const (
	Cookie      = "UNWINDD_ARCHITECTURE_PLUGIN"
	CookieValue = "5f0d7f2c9c2b4d6f8e0a1b6b3f9a4e17"
)

// SocketDirectory is the environment variable with the directory in which a plugin has
// to listen.
const SocketDirectory = "PLUGIN_UNIX_SOCKET_DIR"

// EngineCertificate and PluginIdentity are the environment variables that secure the
// connection of engine and process, in PEM: the engine's certificate, in go-plugin's
// variable, and a certificate with its key that was generated for the process, and that
// Serve uses.
const (
	EngineCertificate = "PLUGIN_CLIENT_CERT"
	PluginIdentity    = "UNWINDD_PLUGIN_IDENTITY"
)
