// SPDX-License-Identifier: Apache-2.0

package object

// IsShared says whether somebody else may come to the object: who has it open, or who
// opens the file by the Store that gave it.
func (o *Object) IsShared() bool { return o.forget != nil || o.uses.Load() > 1 }
