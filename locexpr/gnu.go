// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"context"

	"github.com/unwindd/unwindd/internal/ehpe"
)

// This file has GNU's operations that no standard has adopted.

// opUninit marks an object that has its place already, but no value yet.
func opUninit(ev *evaluation) error {
	if ev.inst.Offset+1 != len(ev.dec.Expr) || ev.calls > 0 {
		return illFormedf("it is not the last operation")
	}
	ev.isUninit = true
	return nil
}

// ParameterContext knows the parameters that a call passed, for
// DW_OP_GNU_parameter_ref.
type ParameterContext interface {
	// ParameterValue returns the value that the call of the current frame gave
	// to the formal parameter at an offset of the compilation unit.
	ParameterValue(ctx context.Context, offset uint64) (Value, error)
}

func opParameterRef(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	c, ok := ev.context.(ParameterContext)
	if !ok {
		return noContext(callerElement)
	}
	v, err := c.ParameterValue(ev.ctx, ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

// VariableContext knows the values of variables, for DW_OP_GNU_variable_value.
type VariableContext interface {
	// VariableValue returns the value of the variable that the debugging
	// information entry at an offset of .debug_info describes.
	VariableValue(ctx context.Context, entry uint64) (Value, error)
}

func opVariableValue(ev *evaluation) error {
	if err := ev.charge(entryValueSteps); err != nil {
		return err
	}
	c, ok := ev.context.(VariableContext)
	if !ok {
		return noContext(unitElement)
	}
	v, err := c.VariableValue(ev.ctx, ev.inst.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushValue(v)
}

// BaseContext knows the bases of encoded addresses, for DW_OP_GNU_encoded_addr.
type BaseContext interface {
	// EncodedBase returns the base of an application of a pointer encoding,
	// DW_EH_PE_pcrel to DW_EH_PE_funcrel. offset is that of the
	// encoded address in the expression.
	EncodedBase(application uint8, offset int) (uint64, error)
}

// opEncodedAddr pushes the location that an address in a pointer encoding
// names.
func opEncodedAddr(ev *evaluation) error {
	encoding, address := uint8(ev.inst.Operands[0]), ev.inst.Operands[1]
	base := ev.bias
	if application := encoding & ehpe.ApplicationMask; application != 0 {
		c, ok := ev.context.(BaseContext)
		if !ok {
			return noContext("base of encoded addresses")
		}
		var err error
		if base, err = c.EncodedBase(application, ev.inst.Offset+2); err != nil {
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
