// SPDX-License-Identifier: Apache-2.0

package sdk

// ProtocolVersion is the version of the wire protocol, and with it of the
// canonical dialect of expressions.
const ProtocolVersion = 2

// HandshakeVersion is the version of the line that a plugin says with where it
// listens. It is go-plugin's, whose client the engine uses.
const HandshakeVersion = 1

// Cookie is the environment variable that tells a plugin that an engine started
// it, by the value CookieValue. It is no secret.
const (
	Cookie      = "UNWINDD_ARCHITECTURE_PLUGIN"
	CookieValue = "5f0d7f2c9c2b4d6f8e0a1b6b3f9a4e17"
)

// SocketDirectory is the environment variable by which the engine says in which
// directory a plugin has to listen.
const SocketDirectory = "PLUGIN_UNIX_SOCKET_DIR"

// EngineCertificate and PluginIdentity are the environment variables by which the
// engine tells a process how their connection is secured, in PEM: its own
// certificate, as go-plugin tells it, and a certificate with its key that was made
// for the process. Serve takes that.
const (
	EngineCertificate = "PLUGIN_CLIENT_CERT"
	PluginIdentity    = "UNWINDD_PLUGIN_IDENTITY"
)
