// SPDX-License-Identifier: Apache-2.0

package sdk

// The sizes of messages in bytes. What the engine sends is its own; what a
// plugin sends is bounded so that a hostile one cannot exhaust the engine.
// Columns keep what a message decodes to within a small multiple of its size.
const (
	maxRequest     = 1 << 30
	maxAnswer      = 64 << 20
	maxDescription = 4 << 20
	// partSize is how much of a section, of memory, or of register data goes in
	// one message.
	partSize = 1 << 20
	// partRows is how many rows of a table go in one message.
	partRows = 1 << 15
	// maxMessage bounds the text of an error, which travels in a header.
	maxMessage = 8 << 10
)
