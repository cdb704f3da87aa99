// SPDX-License-Identifier: Apache-2.0

package sdk

// The sizes of messages in bytes. The engine trusts its own messages; a plugin's
// messages are bounded so that a hostile one cannot exhaust the engine. Because messages
// have columns, a decoded message is only a small multiple of its size.
const (
	maxRequest     = 1 << 30
	maxAnswer      = 64 << 20
	maxDescription = 4 << 20
	// maxEngineRequest bounds the messages of a plugin on ServeEngine.
	maxEngineRequest = 1 << 20
	// partSize is how much of a section, of memory, or of register data goes in
	// one message.
	partSize = 1 << 20
	// maxParts is how many parts of memory one request asks for.
	maxParts = 1 << 16
	// maxEngineRequests is how many requests of a plugin are answered at once. Further
	// ones are read later.
	maxEngineRequests = 64
	// maxStrays is how many requests in a row a plugin may make for calls that are over.
	maxStrays = 1 << 16
	// partRows is how many rows of a table go in one message.
	partRows = 1 << 15
	// maxMessage bounds the text of an error, which travels in a header.
	maxMessage = 8 << 10
)
