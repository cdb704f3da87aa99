// SPDX-License-Identifier: Apache-2.0

package locexpr

// This file has the control flow operations (A.2.5.4.2).

func opNop(*evaluation) error { return nil }

func opSkip(ev *evaluation) error { return ev.branch() }

func opBra(ev *evaluation) error {
	i, err := ev.popIntegral()
	if err != nil {
		return err
	}
	if v, small := i.uint64(); small && v == 0 {
		return nil
	}
	return ev.branch()
}

// branch goes to the target of the current operation. A branch that is not taken may lead
// anywhere: only the updated position must be at an operation (A.2.5.4.2).
func (ev *evaluation) branch() error {
	target, err := ev.dec.target(&ev.inst)
	if err != nil {
		return illFormed{err}
	}
	if !ev.hasStarts {
		if err := ev.findStarts(); err != nil {
			return err
		}
	}
	if target != len(ev.dec.Expr) && ev.starts[target/64]&(1<<(target%64)) == 0 {
		return illFormedf("branch to offset %d, where no operation starts", target)
	}
	ev.dec.pos = target
	return nil
}

// findStarts records where operations start in the expression, as far as it can be decoded.
func (ev *evaluation) findStarts() error {
	words := len(ev.dec.Expr)/64 + 1
	if cap(ev.starts) < words {
		ev.starts = make([]uint64, words)
	}
	ev.starts = ev.starts[:words]
	clear(ev.starts)
	dec := ev.dec
	dec.pos = 0
	var instruction Instruction
	count := 0
	for dec.More() && dec.next(&instruction) == nil {
		ev.starts[instruction.Offset/64] |= 1 << (instruction.Offset % 64)
		count++
	}
	ev.hasStarts = true
	return ev.charge(count / scannedOpsPerStep)
}

func opEq(ev *evaluation) error { return ev.compareTyped(false, true, false) }
func opNe(ev *evaluation) error { return ev.compareTyped(true, false, true) }
func opLt(ev *evaluation) error { return ev.compareTyped(true, false, false) }
func opLe(ev *evaluation) error { return ev.compareTyped(true, true, false) }
func opGt(ev *evaluation) error { return ev.compareTyped(false, false, true) }
func opGe(ev *evaluation) error { return ev.compareTyped(false, true, true) }
