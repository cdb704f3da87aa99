// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// WaveState is the state of a wave that a reader of the files must find.
type WaveState struct {
	Queue    uint32 `json:"queue"`
	XCC      int    `json:"xcc"`
	Ordinal  int    `json:"ordinal"` // among the waves of the queue, XCC after XCC
	GPU      uint32 `json:"gpu"`
	Machine  string `json:"machine"`
	Lanes    int    `json:"lanes"`
	IsStop   bool   `json:"stopped"`
	IsHalted bool   `json:"halted"` // for a stopped wave: before it was stopped
	// Reasons has the reasons of its stop, sorted, in the words of AMD's debugger
	// library.
	Reasons []string `json:"reasons"`
	PC      string   `json:"pc"`
	// Dispatch, Group and Position are nil where the trap temporaries lack them.
	Dispatch *DispatchState `json:"dispatch"`
	Group    *[3]uint32     `json:"group"`
	Position *int           `json:"wave_in_group"`
	// Registers are the bytes of each, in hexadecimal, least significant first.
	Registers map[string]string `json:"registers"`
	// LDS and Scratch are the bytes of these memories, Scratch as they are in memory.
	LDS            string `json:"lds"`
	Scratch        string `json:"scratch"`
	ScratchAddress string `json:"scratch_address"`
	Record         string `json:"record"` // the address of the record's end
}

// DispatchState is the state of a packet that a reader must find.
type DispatchState struct {
	Packet       uint64    `json:"packet"`
	Dimensions   uint16    `json:"dimensions"`
	Group        [3]uint16 `json:"group_size"`
	Grid         [3]uint32 `json:"grid_size"`
	PrivateBytes uint32    `json:"private_size"`
	LDSBytes     uint32    `json:"lds_size"`
	KernelObject string    `json:"kernel_object"`
	Arguments    string    `json:"kernarg"`
	Completion   string    `json:"completion"`
}

// CodeObjectState is an entry of the runtime's list.
type CodeObjectState struct {
	URI  string `json:"uri"`
	Load string `json:"load"`
}

// Queues are the laid out queues in the order of the note.
func (im *Image) Queues() []*QueuePlan { return im.queues }

// RDebug is the address of r_debug.
func (im *Image) RDebug() uint64 { return im.rdebug }

// Note is the body of the GPU's note.
func (im *Image) Note() []byte { return im.note }

// CodeObjects returns the entries that a reader must find in the runtime's list.
func (im *Image) CodeObjects() []CodeObjectState {
	var list []CodeObjectState
	for i := range im.objects {
		list = append(list, CodeObjectState{im.objects[i].uri, fmt.Sprintf("%#x", im.objects[i].object.Load)})
	}
	return list
}

// Waves calls f with the state of each wave that a reader must find.
func (im *Image) Waves(f func(*WaveState) error) error {
	for _, q := range im.queues {
		n := 0
		for i := range q.xccs {
			end := q.Save + uint64(i)*q.AreaSize + q.boundary + q.xccs[i].records
			for j := range q.xccs[i].waves {
				p := &q.xccs[i].waves[j]
				s := im.waveState(q, p)
				s.XCC, s.Ordinal, s.Record = i, n, fmt.Sprintf("%#x", end-q.machine.Gap)
				if err := f(s); err != nil {
					return err
				}
				end -= p.bytes
				n++
			}
		}
	}
	return nil
}

func (im *Image) waveState(q *QueuePlan, p *wavePlan) *WaveState {
	w, r := p.wave, im.registersOf(q, p)
	s := &WaveState{
		Queue: q.queue.ID, GPU: q.agent.GPUID, Machine: q.machine.Name, Lanes: p.shape.lanes,
		IsStop: w.Stopped, IsHalted: w.Stopped && w.SavedHalt || !w.Stopped && w.Halted,
		Reasons: []string{}, PC: fmt.Sprintf("%#x", w.SavedPC(im.core.RuntimeVersion)),
		Registers: map[string]string{},
		LDS:       hex.EncodeToString(padTo(slices.Clone(p.group.LDS), p.shape.lds)),
	}
	if w.Stopped {
		s.Reasons = reasons(q.machine, w, r)
	}
	if !w.NoTTMPs {
		s.Group, s.Position = &p.group.ID, &p.position
		s.Dispatch = im.dispatchState(q, &q.queue.Dispatches[p.group.Dispatch])
	}
	if w.HasScratch && q.queue.Scratch.Waves != 0 {
		s.ScratchAddress = fmt.Sprintf("%#x", q.scratchOf(p))
		s.Scratch = hex.EncodeToString(padTo(slices.Clone(w.Scratch), int(q.queue.Scratch.WaveBytes)))
	}
	p.nameRegisters(q.machine, r, s.Registers)
	return s
}

func (im *Image) dispatchState(q *QueuePlan, d *Dispatch) *DispatchState {
	kernel := d.KernelObject
	if kernel == 0 {
		kernel = q.descriptors[d]
	}
	return &DispatchState{
		Packet: d.ID, Dimensions: max(d.Dimensions, 1), Group: d.Group, Grid: d.Grid,
		PrivateBytes: d.PrivateBytes, LDSBytes: d.LDSBytes, KernelObject: fmt.Sprintf("%#x", kernel),
		Arguments: fmt.Sprintf("%#x", d.Arguments), Completion: fmt.Sprintf("%#x", d.Completion),
	}
}

// reasonNames are the exceptions' names in AMD's debugger library
// (amdgcn_architecture_t::wave_get_state); exceptions without a name are not reasons.
var reasonNames = map[Exception]string{
	FPInvalid: "fp_invalid_operation", FPInputDenormal: "fp_input_denormal", FPDivideByZero: "fp_divide_by_0",
	FPOverflow: "fp_overflow", FPUnderflow: "fp_underflow", FPInexact: "fp_inexact",
	IntDivideByZero: "int_divide_by_0", AddrWatch0: "watchpoint", AddrWatch1: "watchpoint",
	AddrWatch2: "watchpoint", AddrWatch3: "watchpoint", MemViol: "address_error",
	IllegalInstruction: "illegal_instruction", XNACKError: "memory_violation", WaveBegin: "trap", WaveEnd: "trap",
	TrapAfterInst: "single_step",
}

func reasons(m *Machine, w *Wave, r *registers) []string {
	list := []string{}
	for _, e := range w.Exceptions {
		enable := m.Exceptions[e].Enable
		isEnabled := enable.Width == 0 || r[enable.Reg]>>enable.Low&1 != 0
		if name := reasonNames[e]; name != "" && isEnabled {
			list = append(list, name)
		}
	}
	if slices.Contains(w.Exceptions, XNACKError) {
		list = slices.DeleteFunc(list, func(s string) bool { return s == "address_error" })
	}
	switch w.TrapID {
	case 0:
	case 1:
		list = append(list, "breakpoint")
	case 2:
		list = append(list, "assert_trap")
	case 3:
		list = append(list, "debug_trap")
	default:
		list = append(list, "trap")
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// regNames are the names of the registers of the hardware block.
var regNames = [TTMP0]string{
	M0: "m0", Status: "status", TrapSts: "trapsts", Mode: "mode", StatePriv: "state_priv",
	ExcpFlagPriv: "excp_flag_priv", ExcpFlagUser: "excp_flag_user", TrapCtrl: "trap_ctrl",
}

func word(v uint32) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, v))
}

func (p *wavePlan) nameRegisters(m *Machine, r *registers, into map[string]string) {
	for _, reg := range m.Hwregs {
		if n := regNames[reg]; n != "" {
			into[n] = word(r[reg])
		}
	}
	for i := range Reg(16) {
		into[fmt.Sprintf("ttmp%d", i)] = word(r[TTMP0+i])
	}
	wide := word(uint32(p.wave.Exec >> 32))
	vcc := word(uint32(p.wave.VCC))
	into["exec"] = word(uint32(p.wave.Exec))
	if p.shape.lanes == 64 {
		into["exec"] += wide
		vcc += word(uint32(p.wave.VCC >> 32))
	}
	into["vcc"] = vcc
	into["flat_scratch"] = word(r[FlatScratchLo]) + word(r[FlatScratchHi])
	into["xnack_mask"] = word(r[XNACKLo])
	if slices.Contains(m.Hwregs, XNACKHi) {
		into["xnack_mask"] += word(r[XNACKHi])
	}
	general := min(m.AliasEnd, p.shape.sgprs) - m.Aliases
	nameWords(into, "s", 0, p.wave.SGPRs, general, 1)
	if m.NoVGPRs.Width != 0 && r[m.NoVGPRs.Reg]>>m.NoVGPRs.Low&1 != 0 {
		return
	}
	nameWords(into, "v", 0, p.wave.VGPRs, p.shape.vgprs, p.shape.lanes)
	nameWords(into, "a", 0, p.wave.AGPRs, p.shape.agprs, 64)
	nameWords(into, "v", p.shape.vgprs, p.wave.SharedVGPRs, p.shape.shared, 32)
}

// nameWords adds n registers of some words each; registers beyond the end of values are
// zero.
func nameWords(into map[string]string, prefix string, first int, values []uint32, n, words int) {
	b := make([]byte, 0, 4*words)
	for i := range n {
		b = b[:0]
		for j := i * words; j < (i+1)*words; j++ {
			v := uint32(0)
			if j < len(values) {
				v = values[j]
			}
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		into[fmt.Sprintf("%s%d", prefix, first+i)] = hex.EncodeToString(b)
	}
}
