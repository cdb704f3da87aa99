// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// bind describes a thread by its registers.
func bind(t *sdk.ThreadState) sdk.ThreadBinding {
	b := sdk.ThreadBinding{Lanes: warpLanes, Maps: maps(t.Spaces)}
	if t.Lanes != 0 && t.Lanes != warpLanes {
		b.Lanes, b.Problem = 0, fmt.Sprintf("a warp of %d lanes, expected %d", t.Lanes, warpLanes)
		return b
	}
	if mask, ok := t.Registers.Get(active); ok && len(mask) == warpLanes/8 {
		b.ActiveLanes = append([]byte(nil), mask...)
	}
	b.ActiveUnknown = b.ActiveLanes == nil
	at, ok := t.Registers.Uint64(pc, sdk.LittleEndian)
	if !ok {
		b.Problem = "the PC, register PC, is not among the thread's registers"
	}
	b.PC = at
	return b
}
