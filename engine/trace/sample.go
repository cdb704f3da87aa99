// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"github.com/unwindd/unwindd/sdk"
)

// Sample is the data that a profiler keeps of one moment of a thread.
type Sample struct {
	Arch      string // of the thread and of its modules
	ThreadID  string
	Registers sdk.Registers
	// Stack is the bytes from StackStart on, which nearly always is the stack pointer. A walk
	// that leaves them ends with StopEndOfStack.
	StackStart uint64
	Stack      []byte
}
