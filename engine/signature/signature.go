// SPDX-License-Identifier: Apache-2.0

// Package signature makes a short text of a crash's stack by which crashes are grouped: the
// same for the same crash, whatever addresses, builds and compilers differ, as far as possible.
package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Version is the version of the rules by which signatures are made; FirstVersion can still be
// requested. Any change to the signature of a stack, an entry of a table too, needs another
// version.
const (
	FirstVersion = 1
	Version      = 2
)

// MaxFrames bounds the names in a signature. Fewer would join crashes in functions that many
// others call, more would separate crashes that were reached by different paths.
const MaxFrames = 5

// Signature is the text that crashes are grouped by.
type Signature struct {
	// Version is the version of the rules.
	Version int
	// Frames are the normalized names of the innermost functions, innermost first, at most
	// MaxFrames. A name in brackets stands for functions of a run-time library that failed in
	// one style: [abort]. Empty where nothing is known of a stack.
	Frames []string
	// Hash is the SHA-256 of the version and the frames, as hexadecimal.
	Hash string
	// RestsOnGuess is true where one of the frames is a guess, or rests on one.
	RestsOnGuess bool
	// HasOffsets is true where a frame is an offset in a module none of whose functions has a
	// name: name@0x1234. Another build has another signature.
	HasOffsets bool
}

// shortHash is how many digits of the hash are in the text of a signature.
const shortHash = 16

// String returns the signature as it is written: unwindd-2:6f1a0e6d0c0a4b58, which has the
// version and the first 64 bits of the hash.
func (s *Signature) String() string {
	return fmt.Sprintf("unwindd-%d:%s", s.Version, s.Hash[:shortHash])
}

// newSignature returns the signature of names. The hash is of a line with the version, and one
// for each name: names have no line breaks.
func newSignature(version int, names []string) Signature {
	h := sha256.New()
	fmt.Fprintf(h, "unwindd-%d\n", version)
	for _, n := range names {
		_, _ = io.WriteString(h, n+"\n")
	}
	return Signature{Version: version, Frames: names, Hash: hex.EncodeToString(h.Sum(nil))}
}
