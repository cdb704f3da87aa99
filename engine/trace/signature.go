// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
)

// SignatureVersion is the newest version of the rules by which signatures are made;
// FirstSignatureVersion can still be requested. Any change to the signature of a stack, an entry
// of a table too, needs another version.
const (
	FirstSignatureVersion = 1
	SignatureVersion      = 2
)

// Signature is the text that crashes are grouped by.
type Signature struct {
	// Version is the version of the rules.
	Version int
	// Frames are the normalized names of the innermost functions, innermost first, at
	// most 5. A name in brackets stands for functions of a run-time library that failed in
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
