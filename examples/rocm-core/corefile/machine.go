// SPDX-License-Identifier: Apache-2.0

package corefile

// Reg names a 32-bit register of a wave's record other than SGPRs and VGPRs: the hardware
// registers and the trap temporaries.
type Reg uint8

// The hardware registers, then ttmp0 to ttmp15 as TTMP0+n.
const (
	NoReg Reg = iota
	M0
	PCLo
	PCHi
	ExecLo
	ExecHi
	Status
	TrapSts
	XNACKLo
	XNACKHi
	Mode
	FlatScratchLo
	FlatScratchHi
	StatePriv
	ExcpFlagPriv
	ExcpFlagUser
	TrapCtrl
	TTMP0

	numRegs = TTMP0 + 16
)

// Bits is a run of bits of a 32-bit word. The zero value has no bits: the
// word has no such field.
type Bits struct {
	Low, Width uint8
}

// Field is a run of bits of a register.
type Field struct {
	Reg Reg
	Bits
}

// Accumulation is the source of the number of accumulation VGPRs.
type Accumulation uint8

const (
	// NoAccumulation means that there are none.
	NoAccumulation Accumulation = iota
	// AsManyAsVGPRs means as many as VGPRs.
	AsManyAsVGPRs
	// RestOfVGPRs is the number of VGPRs in the state word, in blocks of 8, less the
	// number in its ArchVGPRs field.
	RestOfVGPRs
)

// Exception is a bit of the registers that record exceptions of a wave.
type Exception uint8

// The exceptions, named after the bits of trapsts and excp_flag_*.
const (
	FPInvalid Exception = iota
	FPInputDenormal
	FPDivideByZero
	FPOverflow
	FPUnderflow
	FPInexact
	IntDivideByZero
	AddrWatch0
	AddrWatch1
	AddrWatch2
	AddrWatch3
	MemViol
	SaveContext
	IllegalInstruction
	XNACKError
	HostTrap
	WaveBegin
	WaveEnd
	TrapAfterInst

	numExceptions
)

// ExceptionBit is the place of an exception in a machine, and of the bit that enables it
// (none: it is always enabled).
type ExceptionBit struct {
	Flag, Enable Field
}

// Machine is a processor as its context save areas show it. Every number of a
// row is named in the table's comment with the file and function it is from.
type Machine struct {
	// Name is the processor, as in gfx90a.
	Name string
	// Target is gfx_target_version of its agents: major*10000+minor*100+step.
	Target uint32

	// StateWords is the number of words of the control stack that describe a state.
	StateWords int
	// Gap is the number of unused bytes above each record.
	Gap uint64
	// Fields of the state word, and the registers or bytes of one unit.
	VGPRs        Bits
	VGPRUnit     [2]int // wave64, wave32; 0: no such wave
	Accumulation Accumulation
	ArchVGPRs    Bits // units of 4, less one
	SGPRs        Bits // units of 16
	FixedSGPRs   int  // the number that is always saved; 0: from the state word
	LDS          Bits
	LDSUnit      int
	WholeLDS     Bits // one bit: the group has all of WholeLDSSize, LDS is ignored
	WholeLDSSize int
	Wave32       Bits
	SharedVGPRs  Bits // units of 8, each 32 lanes wide
	// Fields of the wave word.
	ScratchSlot, ShaderEngine, ScratchOn, First, Last Bits

	// Hwregs are the registers of the hardware block in their order, and
	// HwregWords the block's length.
	Hwregs     []Reg
	HwregWords int
	// TTMPsInSGPRs: the trap temporaries are the last 16 words of the SGPR
	// block; otherwise they are 16 words above the hardware block.
	TTMPsInSGPRs bool
	// AliasEnd is the SGPR behind the last one that a name aliases (vcc is the last two),
	// and Aliases the number of SGPRs below it that are not general ones.
	AliasEnd, Aliases int

	// Trap temporaries.
	Mark     Field // 1: ttmp4 to ttmp6 have been initialized; none: they always are
	Packet   Field // index of the dispatch packet in the ring
	GroupIDs [3]Field
	GroupYZ  Field // 1: the group's y and z are there; none: they always are
	// Of a group in a cluster GroupIDs are the cluster's, and these are the
	// group's place in it and the cluster's last place, in x, y and z.
	InCluster, ClusterLast [3]Field
	WaveInGroup            Field
	TrapID                 Field
	ParkedPC               [2]Field // the PC of a parked wave: [31:0] and [47:32]
	ParkedFrom             uint32   // the first r_version that parks; 0: every one; NeverParked
	SPIUnset               bool     // ttmp6[31] says that the SPI set no ttmps
	Halt                   Field
	TrapEntered            Field // set by the trap handler when it halts the wave
	NoVGPRs                Field // 1: the wave has released its VGPRs; the record has their bytes still
	PCBits                 uint8
	Exceptions             [numExceptions]ExceptionBit
	TmpringWave            Bits // bytes of scratch per wave in compute_tmpring_size
	TmpringUnit            uint64
	TmpringPerSE           bool // the number of waves there is per shader engine
	FlatInHwregs           bool // flat_scratch is in the hardware block, not in SGPRs
	HasFlatAddress         bool // flat_scratch is the address of the wave's scratch
}

// NeverParked as Machine.ParkedFrom: the machine's waves can halt anywhere.
const NeverParked = ^uint32(0)

func bits(high, low uint8) Bits { return Bits{low, high - low + 1} }

func ttmp(n Reg, high, low uint8) Field { return Field{TTMP0 + n, bits(high, low)} }

func bit(r Reg, n uint8) Field { return Field{r, bits(n, n)} }

// The fields of ttmp6 that every machine has.
var (
	waveStopped = ttmp(6, 30, 30)
	savedHalt   = ttmp(6, 29, 29)
	spiUnset    = ttmp(6, 31, 31)
	waveIDLo    = ttmp(4, 31, 0)
	waveIDHi    = ttmp(5, 31, 0)
)

// Machines returns every processor of the table, oldest first.
func Machines() []*Machine {
	list := make([]*Machine, 0, len(machines))
	for i := range machines {
		list = append(list, &machines[i])
	}
	return list
}

// MachineNamed returns the processor of that name, nil if there is none.
func MachineNamed(name string) *Machine {
	for i := range machines {
		if machines[i].Name == name {
			return &machines[i]
		}
	}
	return nil
}

// machines is the table. Where a row is from: AMD's debugger library ROCdbgapi,
// src/architecture.cpp, classes of 2024 (mirror 61dfa56) and of 2026 (rocm-systems
// 01c90f7); the state that the trap handler leaves is from ROCr's trap_handler.s and
// trap_handler_gfx12.s, label .halt_wave.
var machines = []Machine{
	// gfx9_architecture_t::cwsr_record_t: compute_relaunch_*_payload_*,
	// register_address; control_stack_iterate; scratch_memory_region.
	derive(gfx9, "gfx900", 90000),
	// gfx906_t: as gfx900_t.
	derive(gfx9, "gfx906", 90006),
	// gfx908_t::cwsr_record_t: se_id [13:11], acc_vgpr_count.
	derive(gfx9, "gfx908", 90008, func(m *Machine) {
		m.Accumulation = AsManyAsVGPRs
		m.ShaderEngine = bits(13, 11)
	}),
	// gfx90a_t::cwsr_record_t: accum_offset [29:24], lds_size [16:9], se_id [11:9].
	derive(gfx90a, "gfx90a", 90010),
	// gfx940_t, gfx942_t: see gfx94.
	derive(gfx94, "gfx940", 90400),
	derive(gfx94, "gfx942", 90402),
	// gfx950_t::cwsr_record_t::lds_size of 2026.
	derive(gfx94, "gfx950", 90500, func(m *Machine) { m.LDSUnit = 1280 }),
	// gfx10_1_t: see gfx10.
	derive(gfx10, "gfx1010", 100100),
	// gfx10_3_t::can_halt_at_endpgm: not parked.
	derive(gfx10, "gfx1030", 100300, func(m *Machine) { m.ParkedFrom = NeverParked }),
	// gfx1100_t, and of 2026 gfx1150_t: see gfx11.
	derive(gfx11, "gfx1100", 110000),
	derive(gfx11, "gfx1150", 110500),
	// gfx1200_t, gfx1201_t: see gfx12.
	derive(gfx12, "gfx1200", 120000),
	derive(gfx12, "gfx1201", 120001),
	// gfx1250_t of 2026: see gfx125. gfx1251 has no class there; LLVM
	// (GCNProcessors.td) gives it gfx1250's registers.
	derive(gfx125, "gfx1250", 120500),
	derive(gfx125, "gfx1251", 120501),
}

func derive(base Machine, name string, target uint32, change ...func(*Machine)) Machine {
	base.Name, base.Target = name, target
	for _, c := range change {
		c(&base)
	}
	return base
}

var gfx9 = Machine{
	StateWords: 1, Gap: 64,
	VGPRs: bits(5, 0), VGPRUnit: [2]int{4, 0},
	SGPRs: bits(8, 6),
	LDS:   bits(17, 9), LDSUnit: 512,
	ScratchSlot: bits(8, 0), ShaderEngine: bits(12, 11), ScratchOn: bits(15, 15),
	First: bits(17, 17), Last: bits(16, 16),
	Hwregs:     []Reg{M0, PCLo, PCHi, ExecLo, ExecHi, Status, TrapSts, XNACKLo, XNACKHi, Mode},
	HwregWords: 16, AliasEnd: 108, Aliases: 6,
	Packet:      ttmp(6, 24, 0),
	GroupIDs:    [3]Field{ttmp(8, 31, 0), ttmp(9, 31, 0), ttmp(10, 31, 0)},
	WaveInGroup: ttmp(11, 5, 0),
	TrapID:      ttmp(6, 28, 25),
	ParkedPC:    [2]Field{ttmp(7, 31, 0), ttmp(11, 22, 7)},
	SPIUnset:    true,
	Halt:        bit(Status, 13),
	TrapEntered: bit(Status, 18),
	PCBits:      48,
	Exceptions:  trapSts(noLateBits),
	TmpringWave: bits(24, 12), TmpringUnit: 1024,
}

var gfx90a = derive(gfx9, "", 0, func(m *Machine) {
	m.Accumulation = RestOfVGPRs
	m.ArchVGPRs = bits(29, 24)
	m.VGPRUnit = [2]int{8, 0}
	m.LDS = bits(16, 9)
	m.ShaderEngine = bits(11, 9)
})

// gfx940_t::cwsr_record_t: se_id [10:9], ttmp11[30:6] and ttmp11[31], the trap
// status bits 22 to 25; can_halt_at_endpgm; has_architected_flat_scratch.
var gfx94 = derive(gfx90a, "", 0, func(m *Machine) {
	m.ShaderEngine = bits(10, 9)
	m.Mark = ttmp(11, 31, 31)
	m.Packet = ttmp(11, 30, 6)
	m.ParkedPC = [2]Field{}
	m.ParkedFrom = NeverParked
	m.Exceptions = trapSts(lateBits{host: 22, begin: 23, end: 24, after: 25})
	m.HasFlatAddress = true
})

// gfx10_architecture_t::cwsr_record_t: compute_relaunch_*_payload_*,
// register_address (mode 8, flat_scratch 9), sgpr_count, vgpr_count,
// shared_vgpr_count; control_stack_iterate (two state words, no gap).
var gfx10 = Machine{
	StateWords: 2,
	VGPRs:      bits(5, 0), VGPRUnit: [2]int{4, 8},
	FixedSGPRs: 128,
	LDS:        bits(17, 10), LDSUnit: 512,
	Wave32: bits(24, 24), SharedVGPRs: bits(29, 26),
	ScratchSlot: bits(9, 0), ShaderEngine: bits(25, 24), ScratchOn: bits(11, 11),
	First: bits(12, 12), Last: bits(29, 29),
	Hwregs: []Reg{M0, PCLo, PCHi, ExecLo, ExecHi, Status, TrapSts, XNACKLo, Mode,
		FlatScratchLo, FlatScratchHi},
	HwregWords: 16, AliasEnd: 108, Aliases: 2,
	Packet:      gfx9.Packet,
	GroupIDs:    gfx9.GroupIDs,
	WaveInGroup: gfx9.WaveInGroup,
	TrapID:      gfx9.TrapID,
	ParkedPC:    gfx9.ParkedPC,
	SPIUnset:    true,
	Halt:        gfx9.Halt,
	TrapEntered: gfx9.TrapEntered,
	PCBits:      48,
	Exceptions:  trapSts(noLateBits),
	TmpringWave: bits(24, 12), TmpringUnit: 1024,
	FlatInHwregs: true, HasFlatAddress: true,
}

// gfx11_architecture_t: se_id [26:24], the trap status bits 16, 17, 18 and 20,
// park_stopped_waves (r_version > 8), scratch_memory_region, no_vgprs in
// cwsr_record_t::register_address (of 2026, begin: the room for them stays).
var gfx11 = derive(gfx10, "", 0, func(m *Machine) {
	m.ShaderEngine = bits(26, 24)
	m.ParkedFrom = 9
	m.Exceptions = trapSts(lateBits{host: 16, begin: 17, end: 18, after: 20})
	m.TmpringWave, m.TmpringUnit = bits(26, 12), 256
	m.TmpringPerSE = true
	m.NoVGPRs = bit(Status, 24)
})

// gfx12_architecture_t: register_address (state_priv 5, excp_flag_priv 6,
// excp_flag_user 11, trap_ctrl 12, status 13), ttmp8_*, group_ids,
// position_in_group, saved_parked_pc, signaled_exceptions; of 2026: lds_size
// (wgp_takeover, state bit 6), scratch_memory_region ([29:12]).
var gfx12 = derive(gfx11, "", 0, func(m *Machine) {
	m.WholeLDS, m.WholeLDSSize = bits(6, 6), 128<<10
	m.Hwregs = []Reg{M0, PCLo, PCHi, ExecLo, ExecHi, StatePriv, ExcpFlagPriv, XNACKLo, Mode,
		FlatScratchLo, FlatScratchHi, ExcpFlagUser, TrapCtrl, Status}
	m.Mark = ttmp(8, 31, 31)
	m.Packet = ttmp(8, 24, 0)
	m.GroupIDs = [3]Field{ttmp(9, 31, 0), ttmp(7, 15, 0), ttmp(7, 31, 16)}
	m.GroupYZ = ttmp(8, 30, 30)
	m.WaveInGroup = ttmp(8, 29, 25)
	m.ParkedPC = [2]Field{ttmp(10, 31, 0), ttmp(11, 22, 7)}
	m.SPIUnset = false
	m.Halt = bit(StatePriv, 14)
	m.TrapEntered = Field{}
	m.Exceptions = excpFlags()
	m.TmpringWave = bits(29, 12)
})

// gfx12_5_architecture_t of 2026: cwsr_record_t (lds_size [18:10], last_wave 13,
// hwreg_count 128, ttmps_addr at the end of the SGPR block, vgpr_count in sixteens and
// wave32 alone, no shared VGPRs), trap_id ttmp11[31:28], can_halt_at_*; the PC's 57 bits
// are trap_handler_gfx12.s, SQ_WAVE_PC_HI_ADDRESS_MASK, which also shows that ttmp6[27:0]
// has the cluster; LLVM 22 compiles llvm.amdgcn.workgroup.id.x to its bits, and
// zeros without a cluster are a guess. Whether a wave has clusters is in IB_STS2, which
// no source names among the saved registers.
var gfx125 = derive(gfx12, "", 0, func(m *Machine) {
	m.VGPRUnit = [2]int{0, 16}
	m.SharedVGPRs = Bits{}
	m.LDS, m.LDSUnit = bits(18, 10), 1024
	m.WholeLDS, m.WholeLDSSize = Bits{}, 0
	m.Last = bits(13, 13)
	m.HwregWords = 128
	m.TTMPsInSGPRs = true
	m.TrapID = ttmp(11, 31, 28)
	m.InCluster = [3]Field{ttmp(6, 3, 0), ttmp(6, 7, 4), ttmp(6, 11, 8)}
	m.ClusterLast = [3]Field{ttmp(6, 15, 12), ttmp(6, 19, 16), ttmp(6, 23, 20)}
	m.ParkedPC = [2]Field{}
	m.ParkedFrom = NeverParked
	m.PCBits = 57
})

// lateBits are the bits of trapsts that moved between generations.
type lateBits struct{ host, begin, end, after uint8 }

var noLateBits lateBits

// trapSts is amdgcn_architecture_t's sq_wave_trapsts_* and the bits of mode
// that enable them (signaled_exceptions).
func trapSts(late lateBits) [numExceptions]ExceptionBit {
	var e [numExceptions]ExceptionBit
	for x := FPInvalid; x <= IntDivideByZero; x++ {
		e[x] = ExceptionBit{bit(TrapSts, uint8(x)), bit(Mode, 12+uint8(x))}
	}
	for i, n := range [4]uint8{7, 12, 13, 14} {
		e[AddrWatch0+Exception(i)] = ExceptionBit{bit(TrapSts, n), bit(Mode, 19)}
	}
	e[MemViol].Flag = bit(TrapSts, 8)
	e[SaveContext].Flag = bit(TrapSts, 10)
	e[IllegalInstruction].Flag = bit(TrapSts, 11)
	e[XNACKError].Flag = bit(TrapSts, 28)
	if late != noLateBits {
		e[HostTrap].Flag = bit(TrapSts, late.host)
		e[WaveBegin].Flag = bit(TrapSts, late.begin)
		e[WaveEnd].Flag = bit(TrapSts, late.end)
		e[TrapAfterInst].Flag = bit(TrapSts, late.after)
	}
	return e
}

// excpFlags is gfx12_architecture_t's sq_wave_excp_priv_*, sq_wave_excp_user_*
// and sq_wave_trap_ctrl_* (signaled_exceptions).
func excpFlags() [numExceptions]ExceptionBit {
	var e [numExceptions]ExceptionBit
	for x := FPInvalid; x <= IntDivideByZero; x++ {
		e[x] = ExceptionBit{bit(ExcpFlagUser, uint8(x)), bit(TrapCtrl, uint8(x))}
	}
	for i := range Exception(4) {
		e[AddrWatch0+i] = ExceptionBit{bit(ExcpFlagPriv, uint8(i)), bit(TrapCtrl, 7)}
	}
	for x, n := range map[Exception]uint8{MemViol: 4, SaveContext: 5, IllegalInstruction: 6, HostTrap: 7,
		WaveBegin: 8, WaveEnd: 9, TrapAfterInst: 11, XNACKError: 12} {
		e[x].Flag = bit(ExcpFlagPriv, n)
	}
	return e
}

// Lanes returns the wave widths that the machine has.
func (m *Machine) Lanes() []int {
	var l []int
	for i, unit := range m.VGPRUnit {
		if unit != 0 {
			l = append(l, 64>>i)
		}
	}
	return l
}

// IsParked reports whether the trap handler of that runtime (r_debug's
// r_version) parks the waves that it stops: then the PC is in trap temporaries
// and the record's PC is in the trap handler.
func (m *Machine) IsParked(runtimeVersion uint32) bool { return runtimeVersion >= m.ParkedFrom }

// Has reports whether the machine has a bit for the exception.
func (m *Machine) Has(e Exception) bool { return m.Exceptions[e].Flag.Width != 0 }

// SavedPC is the PC of the wave in the save area: its PC, or for a wave that s_trap
// stopped the instruction after that one (4 bytes), unless the runtime is of version 12
// or later, which leaves the PC at the s_trap.
func (w *Wave) SavedPC(runtimeVersion uint32) uint64 {
	if w.Stopped && w.TrapID != 0 && runtimeVersion < 12 {
		return w.PC + 4
	}
	return w.PC
}
