package locexpr

// This file has the literal operations (A.2.5.4.3.1) and the arithmetic and
// logical ones (A.2.5.4.3.2, DWARF 5, 2.5.1.4). Integers wrap around at the size
// of the generic type.

// signed returns an integer of the generic type as a signed one.
func (ev *evaluation) signed(v uint64) int64 { return int64(signExtend(v, ev.bits)) }

func opLit(ev *evaluation) error   { return ev.pushGeneric(ev.in.Op.number) }
func opConst(ev *evaluation) error { return ev.pushGeneric(ev.in.Operands[0]) }

func opConstx(ev *evaluation) error {
	v, err := ev.ctx.Addrx(ev.in.Operands[0])
	if err != nil {
		return err
	}
	return ev.pushGeneric(v)
}

func opAbs(ev *evaluation) error {
	v, err := ev.popInteger()
	if err != nil {
		return err
	}
	if ev.signed(v) < 0 {
		v = -v
	}
	return ev.pushGeneric(v)
}

func opNeg(ev *evaluation) error {
	v, err := ev.popInteger()
	if err != nil {
		return err
	}
	return ev.pushGeneric(-v)
}

func opNot(ev *evaluation) error {
	v, err := ev.popInteger()
	if err != nil {
		return err
	}
	return ev.pushGeneric(^v)
}

func opAnd(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second & top)
}

func opOr(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second | top)
}

func opXor(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second ^ top)
}

func opPlus(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second + top)
}

func opPlusUconst(ev *evaluation) error {
	v, err := ev.popInteger()
	if err != nil {
		return err
	}
	return ev.pushGeneric(v + ev.in.Operands[0])
}

func opMinus(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second - top)
}

func opMul(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second * top)
}

// opDiv divides as signed integers.
func opDiv(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	// Go defines the one quotient that overflows as wrapping around.
	return ev.pushGeneric(uint64(ev.signed(second) / ev.signed(top)))
}

// opMod divides as unsigned integers.
func opMod(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	return ev.pushGeneric(second % top)
}

func opShl(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second << top)
}

func opShr(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(second >> top)
}

func opShra(ev *evaluation) error {
	top, second, err := ev.popIntegers()
	if err != nil {
		return err
	}
	return ev.pushGeneric(uint64(ev.signed(second) >> top))
}
