// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"github.com/unwindd/unwindd/engine/internal/symbol"

	"github.com/unwindd/unwindd/engine/trace"
)

// Answer is the known facts about one address or one name.
type Answer struct {
	Module string // as the question has it
	// Address is the address of the question; HasAddress is false where the question had a
	// Symbol, or could not be parsed.
	Address    uint64
	HasAddress bool
	Symbol     string
	// Error is the problem of the question or the file. In JSON an answer with an error has
	// nothing else.
	Error string

	Kind   AnswerKind
	Frames []trace.Symbol // of Code and Named, innermost first
	Data   Datum          // of Data
	Locals []symbol.Local // of Frame
}

// AnswerKind is the kind of a question.
type AnswerKind int

// The kinds.
const (
	AnswerCode  AnswerKind = iota // functions at an address
	AnswerNamed                   // the position of each function of a name
	AnswerData                    // a variable
	AnswerFrame                   // the variables of a frame
)
