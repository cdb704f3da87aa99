// SPDX-License-Identifier: Apache-2.0

// Package signature makes a short text of a crash's stack by which crashes are grouped: the
// same for the same crash, whatever addresses, builds and compilers differ, as far as possible.
package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

// MaxFrames bounds the names in a signature. Fewer would join crashes in functions that many
// others call, more would separate crashes that were reached by different paths.
const MaxFrames = 5

// newSignature returns the signature of names. The hash is of a line with the version, and one
// for each name: names have no line breaks.
func newSignature(version int, names []string) trace.Signature {
	h := sha256.New()
	fmt.Fprintf(h, "unwindd-%d\n", version)
	for _, n := range names {
		_, _ = io.WriteString(h, n+"\n")
	}
	return trace.Signature{Version: version, Frames: names, Hash: hex.EncodeToString(h.Sum(nil))}
}
