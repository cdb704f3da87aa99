package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// scanBytes is how much of a stack is searched for a return address. A frame
// without call frame information is rarely larger, and the further the word,
// the likelier it is a leftover.
const scanBytes = 16 << 10

// errNoCode says that a PC is not in executable memory.
var errNoCode = errors.New("the PC is not in executable memory")

// withoutRow goes on where no row is known, as far as that can be justified.
func (w *walker) withoutRow(ctx context.Context, f *frame, err error) (*frame, Stopped) {
	switch {
	case errors.Is(err, errNoCode) && f.exact && f.callee == nil:
		// A call through a bad pointer: the call pushed its return address, and
		// not one instruction was executed since.
		if caller, ok := w.returnAtSP(ctx, f); ok {
			return caller, Stopped{}
		}
		return nil, Stopped{StopNoModule, err.Error()}
	case errors.Is(err, errNoCode):
		return nil, Stopped{StopNoModule, err.Error()}
	case isNoRow(err):
		return w.guess(ctx, f, err)
	}
	return nil, w.stopFor(err)
}

func isNoRow(err error) bool {
	var none *noRow
	return errors.As(err, &none)
}

// guess finds the caller by the frame-pointer convention, else by scanning.
// Its result is marked as what it is.
func (w *walker) guess(ctx context.Context, f *frame, cause error) (*frame, Stopped) {
	stop := Stopped{StopNoRow, cause.Error()}
	if f.module == nil {
		stop.Reason = StopNoModule
	}
	f.forget()
	caller, err := w.byFramePointer(ctx, f)
	if caller == nil && err == nil {
		f.forget()
		caller, err = w.byScan(ctx, f)
	}
	if err != nil {
		return nil, w.stopFor(err)
	}
	if caller == nil {
		f.forget()
		return nil, stop
	}
	return caller, Stopped{}
}

// byFramePointer applies the architecture's frame-pointer rule. It is believed
// when the frame lies above the stack pointer and the return address follows a
// call, or is in code that a runtime made and nobody kept: runtimes have frame
// pointers so that their stacks can be walked.
func (w *walker) byFramePointer(ctx context.Context, f *frame) (*frame, error) {
	row := w.machine.desc.FramePointer
	if row == nil {
		return nil, nil
	}
	f.source = &rowSource{row: row, by: ByFramePointer, defaults: w.machine.defaults}
	caller, err := w.recover(f, f.source)
	if err != nil || caller == nil {
		return nil, nil //nolint:nilerr // the convention does not hold here: no failure
	}
	sp, err := f.value(uint64(w.machine.desc.SP))
	if err != nil || f.cfa <= sp {
		return nil, nil //nolint:nilerr // nor here
	}
	after, err := w.afterCall(ctx, caller.pc)
	if err != nil || !after[0] && !w.unkept(caller.pc-1) {
		return nil, err
	}
	return caller, nil
}

// unkept says whether an address is in executable memory of no module whose bytes
// are not in the target.
func (w *walker) unkept(address uint64) bool {
	if w.segmentAt(address) != nil {
		return false
	}
	if _, executable := w.state.Mapped(address); !executable {
		return false
	}
	n, _ := w.state.ReadMemory(locexpr.DefaultSpace, address, w.scratch[:1])
	return n == 0
}

// byScan takes the first word of the stack that is a return address.
func (w *walker) byScan(ctx context.Context, f *frame) (*frame, error) {
	sp, err := f.value(uint64(w.machine.desc.SP))
	if err != nil || w.machine.desc.StackAlign == 0 {
		return nil, nil //nolint:nilerr // without a stack pointer there is nothing to scan
	}
	word := uint64(w.machine.desc.AddressBits+7) / 8
	step := uint64(w.machine.desc.StackAlign)
	sp = (sp + step - 1) / step * step
	if w.scan == nil {
		w.scan = make([]byte, scanBytes)
	}
	buf := w.scan
	n, _ := w.state.ReadMemory(locexpr.DefaultSpace, sp, buf)
	var pcs, places []uint64
	for at := uint64(0); at+word <= uint64(n); at += step {
		pc := integer(buf[at:at+word], w.machine.order)
		if m := w.segmentAt(pc - 1); m != nil && !m.module.loose() {
			pcs, places = append(pcs, pc), append(places, sp+at)
		}
	}
	after, err := w.afterCall(ctx, pcs...)
	if err != nil {
		return nil, err
	}
	for i, ok := range after {
		if ok {
			return w.afterReturn(f, pcs[i], places[i]+word, cfi.Undefined), nil
		}
	}
	return nil, nil
}

// returnAtSP takes the word at the stack pointer as the return address, if it
// follows a call.
func (w *walker) returnAtSP(ctx context.Context, f *frame) (*frame, bool) {
	sp, err := f.value(uint64(w.machine.desc.SP))
	if err != nil {
		return nil, false
	}
	pc, err := w.word(sp, w.machine.desc.AddressBits)
	if err != nil {
		return nil, false
	}
	if after, err := w.afterCall(ctx, pc); err != nil || !after[0] {
		return nil, false
	}
	// Nothing of the called code ran, so every register is as at the call.
	return w.afterReturn(f, pc, sp+uint64(w.machine.desc.AddressBits+7)/8, cfi.SameValue), true
}

// afterReturn is the caller whose return address is pc, the word below sp, and
// whose stack pointer after the return is sp. Its other registers are as others
// says.
func (w *walker) afterReturn(f *frame, pc, sp uint64, others cfi.RuleKind) *frame {
	f.source = &rowSource{row: w.machine.returnRow, by: ByScan, defaults: &ruleSet{other: others}}
	f.cfa, f.cfaSpace, f.hasCFA = sp, locexpr.DefaultSpace, true
	f.settle(0)
	caller := w.frame(f.index + 1)
	caller.callee, caller.pc, caller.found = f, pc, ByScan
	w.place(caller)
	return caller
}

// afterCall says of addresses whether each is in executable memory right after
// a call instruction. What was said of the code of a module is remembered.
func (w *walker) afterCall(ctx context.Context, pcs ...uint64) ([]bool, error) {
	after := make([]bool, len(pcs))
	req := &sdk.ClassifyReturnRequest{Offsets: []uint32{0}}
	var asked []int
	for i, pc := range pcs {
		if _, executable := w.state.Mapped(pc - 1); !executable {
			continue
		}
		if s := w.segmentAt(pc - 1); s != nil {
			if known, ok := s.module.returns.Load(s.objectAddress(pc)); ok {
				after[i] = known.(bool)
				continue
			}
		}
		length := uint64(w.machine.desc.MaxInstruction)
		buf := make([]byte, length)
		n, err := w.state.ReadMemory(locexpr.DefaultSpace, pc-length, buf)
		if err != nil || n < len(buf) {
			continue
		}
		req.PCs = append(req.PCs, pc)
		req.Code = append(req.Code, buf...)
		req.Offsets = append(req.Offsets, uint32(len(req.Code)))
		asked = append(asked, i)
	}
	if len(asked) == 0 {
		return after, nil
	}
	answer, err := w.machine.arch.ClassifyReturn(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("checking return addresses: %w", err)
	}
	for k, i := range asked {
		after[i] = answer.Classes[k] == sdk.AfterDirectCall || answer.Classes[k] == sdk.AfterIndirectCall
		if s := w.segmentAt(pcs[i] - 1); s != nil && s.module.returned.Add(1) <= maxCachedRows {
			s.module.returns.Store(s.objectAddress(pcs[i]), after[i])
		}
	}
	return after, nil
}
