// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// This file has the operations of GNU that no standard has taken over.

// opUninit says that the object has its place already, but no value yet.
func opUninit(ev *evaluation) error {
	if ev.in.Offset+1 != len(ev.dec.Expr) || ev.calls > 0 {
		return illFormedf("it is not the last operation")
	}
	ev.isUninit = true
	return nil
}

func opParameterRef(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	ctx, ok := ev.ctx.(ParameterContext)
	if !ok {
		return noContext("calling frame")
	}
	v, err := ctx.ParameterValue(ev.in.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

func opVariableValue(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	ctx, ok := ev.ctx.(VariableContext)
	if !ok {
		return noContext("compilation unit")
	}
	v, err := ctx.VariableValue(ev.in.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

// opEncodedAddr pushes the location that an address in a pointer encoding
// names.
func opEncodedAddr(ev *evaluation) error {
	encoding, address := uint8(ev.in.Operands[0]), ev.in.Operands[1]
	base := ev.bias
	if application := encoding & ehpe.ApplicationMask; application != 0 {
		ctx, ok := ev.ctx.(BaseContext)
		if !ok {
			return noContext(fmt.Sprintf("base of encoding 0x%02x", encoding))
		}
		var err error
		if base, err = ctx.EncodedBase(application, ev.in.Offset+2); err != nil {
			return err
		}
	}
	if err := ev.pushAddress(address + base); err != nil {
		return err
	}
	if encoding&ehpe.Indirect != 0 {
		return ev.deref(nil, ev.bits)
	}
	return nil
}
