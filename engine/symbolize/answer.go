// SPDX-License-Identifier: Apache-2.0

package symbolize

import "github.com/unwindd/unwindd/engine/symbol"

// An Answer is what is known at one address, or of one name.
type Answer struct {
	Module string // as the question has it
	// Address is what was asked for; HasAddress is false where a Symbol was, or
	// where the question could not be understood.
	Address    uint64
	HasAddress bool
	Symbol     string
	// Error is what is wrong with the question or the file. In JSON an answer
	// with an error is nothing else.
	Error string

	Kind   AnswerKind
	Frames []symbol.Frame // of Code and Named, innermost first
	Data   Datum          // of Data
	Locals []symbol.Local // of Frame
}

// AnswerKind says what was asked for.
type AnswerKind int

// The kinds.
const (
	AnswerCode  AnswerKind = iota // functions at an address
	AnswerNamed                   // the position of each function of a name
	AnswerData                    // a variable
	AnswerFrame                   // the variables of a frame
)
