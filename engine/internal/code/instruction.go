// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

// maxInstructions bounds the answers about single instructions of a Machine.
const maxInstructions = 1 << 10

// An instructionKey has all that an answer about an instruction depends on.
type instructionKey struct {
	address         uint64
	code, processor string
	lanes           uint32
}

// Instruction asks the plugin for the instruction that begins the code of a request; nil: none
// does. Answers are remembered: a program crashes at the same place again and again.
func (m *Machine) Instruction(ctx context.Context, request *sdk.DisassembleRequest) (*sdk.Instruction, error) {
	key := instructionKey{request.Address, string(request.Code), request.Processor, request.Lanes}
	if known, ok := m.instructions.find(key); ok {
		return known, nil
	}
	answer, err := m.Plugin.Disassemble(ctx, request)
	if err != nil || len(answer.Instructions) == 0 || answer.Instructions[0].Address != request.Address {
		return nil, err
	}
	first := answer.Instructions[0]
	if m.requested.Add(1)%maxInstructions == 0 {
		m.instructions.forget()
	}
	m.instructions.add(key, &first, 0)
	return &first, nil
}
