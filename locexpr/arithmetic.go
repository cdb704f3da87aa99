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
	s, err := ev.unary()
	if err == nil && ev.signed(s.value.word) < 0 {
		s.value.word = -s.value.word & ev.mask
	}
	return err
}

func opNeg(ev *evaluation) error {
	s, err := ev.unary()
	if err == nil {
		s.value.word = -s.value.word & ev.mask
	}
	return err
}

func opNot(ev *evaluation) error {
	s, err := ev.unary()
	if err == nil {
		s.value.word = ^s.value.word & ev.mask
	}
	return err
}

func opAnd(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = s.value.word & top
	}
	return err
}

func opOr(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = s.value.word | top
	}
	return err
}

func opXor(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = s.value.word ^ top
	}
	return err
}

func opPlus(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = (s.value.word + top) & ev.mask
	}
	return err
}

func opPlusUconst(ev *evaluation) error {
	s, err := ev.unary()
	if err == nil {
		s.value.word = (s.value.word + ev.in.Operands[0]) & ev.mask
	}
	return err
}

func opMinus(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = (s.value.word - top) & ev.mask
	}
	return err
}

func opMul(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = (s.value.word * top) & ev.mask
	}
	return err
}

// opDiv divides as signed integers.
func opDiv(ev *evaluation) error {
	s, top, err := ev.binary()
	if err != nil {
		return err
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	// Go defines the one quotient that overflows as wrapping around.
	s.value.word = uint64(ev.signed(s.value.word)/ev.signed(top)) & ev.mask
	return nil
}

// opMod divides as unsigned integers.
func opMod(ev *evaluation) error {
	s, top, err := ev.binary()
	if err != nil {
		return err
	}
	if top == 0 {
		return ErrDivisionByZero
	}
	s.value.word %= top
	return nil
}

func opShl(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = s.value.word << top & ev.mask
	}
	return err
}

func opShr(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = s.value.word >> top
	}
	return err
}

func opShra(ev *evaluation) error {
	s, top, err := ev.binary()
	if err == nil {
		s.value.word = uint64(ev.signed(s.value.word)>>top) & ev.mask
	}
	return err
}
