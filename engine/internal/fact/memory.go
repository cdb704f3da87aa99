// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// nullEnd is the end of the addresses that no process may map (vm.mmap_min_addr is 65536 on
// every usual kernel): an access below it is to a member through a null pointer.
const nullEnd = 1 << 16

// access explains a SIGSEGV by what the instruction accesses.
func (c *crash) access() string {
	if c.kept.HasCode && c.kept.Code == target.SignalFromKernel {
		return c.protection()
	}
	if !c.hasAddress {
		return c.accesses()
	}
	a := c.failing(c.address)
	what := c.whatDid(a, c.address)
	if text := c.protected(a); text != "" {
		return text + what
	}
	if c.address < nullEnd {
		return "null pointer: " + what
	}
	return c.whereIs(c.address, a) + ": " + what + c.unlikely(c.address, a)
}

// protected names the check of the processor that an access failed.
func (c *crash) protected(a *sdk.Access) string {
	switch target.SignalCode(c.signal, c.kept.Code) {
	case "SEGV_MTESERR":
		text := "memory tag check failed"
		if a != nil && a.Base != sdk.NoRegister {
			if v, ok := c.effective(a); ok {
				text += fmt.Sprintf(", the pointer's tag is %#x", v>>tagShift&0xf)
			}
		}
		return text + ": "
	case "SEGV_MTEAERR":
		return "memory tag check failed, before the instruction: "
	case "SEGV_CPERR":
		return "the shadow stack has another return address: "
	case "SEGV_PKUERR":
		return "the protection key of the memory forbids it: "
	}
	return ""
}

// tagShift is the first bit of a pointer's memory tag (Arm Architecture Reference Manual for
// A-profile, D10.1).
const tagShift = 56

// whatDid describes an access at an address: the operation, the register and the memory.
func (c *crash) whatDid(a *sdk.Access, address uint64) string {
	if a == nil {
		verb := verbs[c.kept.Access]
		if verb == "" {
			verb = "accesses"
		}
		return fmt.Sprintf("%s %#x", verb, address) + c.whereText()
	}
	return did(a, address) + c.through(a) + c.whereText()
}

// accesses describes what the instruction accesses, for a signal without an address: a
// protection fault, or a dump without it.
func (c *crash) accesses() string {
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		address, ok := c.effective(a)
		switch {
		case !ok:
		case c.isSplit(address):
			return c.protection()
		case address < nullEnd:
			return "null pointer: " + c.whatDid(a, address)
		case c.isRefused(address, a):
			return c.whereIs(address, a) + ": " + c.whatDid(a, address) + c.unlikely(address, a)
		}
	}
	if c.hasUnreadTarget() {
		return c.protection()
	}
	return ""
}

// isSplit reports whether an address is not canonical: its upper bits are not all equal.
func (c *crash) isSplit(address uint64) bool {
	top := address >> c.userBits()
	return top != 0 && top != 1<<(64-c.userBits())-1
}

// isRefused reports whether an access must have failed, as far as the target knows the
// mappings.
func (c *crash) isRefused(address uint64, a *sdk.Access) bool {
	_, mapping, _ := c.around(address)
	if mapping == nil {
		return c.knowsMappings() && !c.mapped(address)
	}
	return a.IsWrite && !mapping.IsWritable || a.IsRead && !mapping.IsReadable
}

// hasUnreadTarget reports whether the instruction goes to an address that is not canonical.
func (c *crash) hasUnreadTarget() bool {
	target, ok := uint64(0), false
	switch {
	case c.instruction.Kind == sdk.ReturnInstruction:
		target, ok = c.returnsTo()
	case c.instruction.RegisterBits == 64 && c.instruction.Kind != sdk.DivideInstruction:
		target, ok = c.register(c.instruction.Register)
	}
	return ok && c.isSplit(target)
}

// userBits returns how many bits the addresses of processes have where the kernel reports no
// address of a fault; the next bit marks the kernel's. It is 64 where the kernel always reports
// one.
func (c *crash) userBits() uint32 {
	if c.machine == nil || c.machine.CanonicalBits == 0 {
		return 64
	}
	return c.machine.CanonicalBits - 1
}

// protection explains a SIGSEGV for which the kernel reports no address: a general protection
// fault (Intel SDM volume 3, 6.15, #GP).
func (c *crash) protection() string {
	if c.machine == nil {
		return ""
	}
	if text := c.protectionOf(); text != "" {
		return text
	}
	return withText("general protection fault", c.instruction.Text) + c.whereText()
}

// withText appends the instruction to a description, where it is known.
func withText(what, instruction string) string {
	if instruction == "" {
		return what
	}
	return what + ": " + instruction
}

// protectionOf explains a general protection fault: an address that is not canonical, a vector
// that is not aligned, or an instruction of the kernel's; "" where the instruction does not
// tell.
func (c *crash) protectionOf() string {
	if c.instruction.Kind == sdk.PrivilegedInstruction {
		return fmt.Sprintf("privileged instruction: %s", c.instruction.Text) + c.whereText()
	}
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		address, ok := c.effective(a)
		if !ok {
			continue
		}
		if c.isSplit(address) {
			return "address that is not canonical: " + c.whatDid(a, address) + c.unlikely(address, a)
		}
	}
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		if address, ok := c.effective(a); ok && a.Size >= 16 && address%uint64(a.Size) != 0 {
			return fmt.Sprintf("address that is not a multiple of %d: ", a.Size) + c.whatDid(a, address)
		}
	}
	if c.instruction.Kind == sdk.ReturnInstruction {
		if target, ok := c.returnsTo(); ok && target>>c.userBits() != 0 {
			return fmt.Sprintf("return to %#x, which is not canonical: the return address was overwritten", target) + c.whereText() + c.unlikely(target, nil)
		}
	}
	if r := c.instruction.Register; c.instruction.RegisterBits == 64 {
		if target, ok := c.register(r); ok && target>>c.userBits() != 0 {
			return fmt.Sprintf("jump to %#x, which is not canonical, through %s", target, c.registerName(r)) + c.whereText() + c.unlikely(target, nil)
		}
	}
	return ""
}

// returnsTo returns the return address that a return instruction takes.
func (c *crash) returnsTo() (uint64, bool) {
	for i := range c.instruction.Accesses {
		if address, ok := c.effective(&c.instruction.Accesses[i]); ok {
			return c.word(address)
		}
	}
	return 0, false
}

// patterns are words that allocators and compilers fill memory with.
var patterns = map[uint64]string{
	0x5a5a5a5a5a5a5a5a: "memory that jemalloc freed",
	0xa5a5a5a5a5a5a5a5: "memory that jemalloc allocated and nobody wrote",
	0xaaaaaaaaaaaaaaaa: "a variable that nobody wrote (-ftrivial-auto-var-init=pattern)",
	0xfefefefefefefefe: "a variable that nobody wrote (-ftrivial-auto-var-init=pattern)",
	0xbebebebebebebebe: "memory of AddressSanitizer that nobody wrote",
	0xdddddddddddddddd: "freed memory",
	0xcdcdcdcdcdcdcdcd: "memory that nobody wrote",
	0xcccccccccccccccc: "a variable that nobody wrote (Visual C++, /RTC)",
	0xfeeefeeefeeefeee: "memory that Windows' heap freed",
	0xbaadf00dbaadf00d: "memory that Windows' heap allocated and nobody wrote",
	0xe5e5e5e5e5e5e5e5: "memory that mozjemalloc freed",
	0xdeadbeefdeadbeef: "a pattern for freed memory",
}

// notAligned describes an access of the instruction that is not aligned, for a signal of which
// nothing more is known.
func (c *crash) notAligned() string {
	for i := range c.instruction.Accesses {
		a := &c.instruction.Accesses[i]
		if address, ok := c.effective(a); ok && c.mapped(address) && bits.OnesCount32(a.Size) == 1 && address%uint64(a.Size) != 0 {
			return unaligned + c.whatDid(a, address)
		}
	}
	return ""
}

// unaligned begins the text about an access that is not aligned.
const unaligned = "address that is not aligned: "

// unlikely explains where an address that the program cannot have meant may come from. The text
// is marked as a guess.
func (c *crash) unlikely(address uint64, a *sdk.Access) string {
	words := []uint64{address}
	if a != nil {
		for _, register := range []uint32{a.Base, a.Index} {
			if v, ok := c.register(register); ok {
				words = append(words, v)
			}
		}
	}
	for _, word := range words {
		if text := c.overwritten(word); text != "" {
			return text
		}
	}
	if original, bit, ok := c.flipped(address, 30, 63); ok && !c.isNear(address) {
		return fmt.Sprintf(" (a guess: bit %d is flipped of %#x, which is mapped)", bit, original)
	}
	return ""
}

// overwritten explains a word that was taken for an address.
func (c *crash) overwritten(word uint64) string {
	size := c.wordSize()
	for pattern, name := range patterns {
		if size == 4 {
			pattern &= 1<<32 - 1
		}
		if word-pattern+0x1000 < 0x2000 {
			return fmt.Sprintf(" (a guess: %#x is the pattern of %s)", pattern, name)
		}
	}
	if text, ok := asText(word, size, c.order); ok {
		return fmt.Sprintf(" (a guess: the address was overwritten by the text %q)", text)
	}
	return ""
}

// asText returns the printable characters that a word of some bytes consists of.
func asText(word uint64, size int, order sdk.ByteOrder) (string, bool) {
	b := make([]byte, size)
	for i := range b {
		shift := 8 * i
		if order == sdk.BigEndian {
			shift = 8*size - 8 - shift
		}
		b[i] = byte(word >> shift)
		if b[i] < ' ' || b[i] > '~' {
			return "", false
		}
	}
	return string(b), true
}

// nearBy is how far from a mapping an address can be that was meant to be within it.
const nearBy = 1 << 20

// isNear reports whether an address lies near a mapping: the program ran out of its bounds.
func (c *crash) isNear(address uint64) bool {
	below, within, above := c.around(address)
	return within != nil || below != nil && address-below.End < nearBy || above != nil && above.Start-address < nearBy
}

// whereIs describes the memory at an address where an access failed.
func (c *crash) whereIs(address uint64, a *sdk.Access) string {
	address = c.untagged(address)
	below, mapping, above := c.around(address)
	code := target.SignalCode(c.signal, c.kept.Code)
	switch {
	case mapping == nil && !c.knowsMappings() && code != "SEGV_MAPERR" && !strings.HasSuffix(c.kept.Name, "KERN_INVALID_ADDRESS"):
		return "memory that may not be accessed so"
	case mapping == nil && c.mapped(address):
		return "memory that may not be accessed so"
	case mapping == nil:
		return "memory that is not mapped" + beside(address, below, above)
	case !hasRights(mapping) && mapping.File == "":
		return "memory without any rights, as of a guard page" + beside(address, below, above)
	case a != nil && a.IsWrite && !mapping.IsWritable:
		return "memory that may only be read" + ofFile(mapping)
	}
	return "memory that may not be accessed so" + ofFile(mapping)
}

// ofFile names the mapped file.
func ofFile(m *target.Mapping) string {
	if m.File == "" {
		return ""
	}
	return ", of " + object.LastPart(m.File)
}

// beside names the mapping that an address is right before or after.
func beside(address uint64, below, above *target.Mapping) string {
	const page = 1 << 12
	switch {
	case below != nil && address-below.End < page:
		return fmt.Sprintf(" (%s behind the end of a mapping%s)", count(address-below.End, "byte"), ofFile(below))
	case above != nil && above.Start-address <= page:
		return fmt.Sprintf(" (%s before a mapping%s)", count(above.Start-address, "byte"), ofFile(above))
	}
	return ""
}

// execution explains a PC where there is no code.
func (c *crash) execution() string {
	if !c.hasPC || c.isAccess() {
		return ""
	}
	mapped, executable := c.process.State().Mapped(c.pc)
	if executable && c.kept.Access != trace.AccessExecute {
		return ""
	}
	caller := c.calledFrom()
	_, mapping, _ := c.around(c.pc)
	switch {
	case c.pc == 0:
		return "jump to null: the pointer to a function is null" + caller
	case c.pc < nullEnd:
		return fmt.Sprintf("jump to %#x: the pointer to a function is null, or nearly", c.pc) + caller
	case !mapped && !c.knowsMappings():
		return fmt.Sprintf("jump to %#x, where no code can be executed", c.pc) + caller + c.unlikely(c.pc, nil)
	case !mapped:
		return fmt.Sprintf("jump to %#x, where nothing is mapped", c.pc) + caller + c.unlikely(c.pc, nil)
	case mapping != nil:
		return fmt.Sprintf("jump to %#x, which is data", c.pc) + ofFile(mapping) + caller
	}
	return fmt.Sprintf("jump to %#x, which is data", c.pc) + caller
}

// isAccess reports whether the fault is known not to come from fetching the instruction.
func (c *crash) isAccess() bool {
	switch {
	case c.signal == "SIGILL" || c.kept.Access == trace.AccessExecute:
		return false
	case c.kept.Access != "":
		return true
	case c.hasAddress:
		return c.address != c.pc
	}
	return c.kept.HasCode // the kernel reports the address of each, except a protection fault
}

// The si_code values of SIGBUS (include/uapi/asm-generic/siginfo.h).
const (
	busAlignment   = 1 // BUS_ADRALN
	busNoPage      = 2 // BUS_ADRERR
	busMemoryError = 4 // BUS_MCEERR_AR
)

// bus explains a SIGBUS.
func (c *crash) bus() string {
	if !c.hasAddress {
		if c.kept.Code == target.SignalFromKernel {
			return c.protection() // a stack segment fault
		}
		return c.notAligned()
	}
	a := c.failing(c.address)
	what := c.whatDid(a, c.address)
	_, mapping, _ := c.around(c.address)
	switch {
	case c.kept.Code == busAlignment && c.hasPC && c.pc == c.address:
		return fmt.Sprintf("jump to %#x, which is not aligned", c.pc) + c.calledFrom()
	case c.kept.Code == busAlignment:
		return unaligned + what
	case c.kept.Code >= busMemoryError:
		return "the hardware lost the contents of memory: " + what
	case c.kept.Code == busNoPage && mapping != nil && mapping.File != "":
		return fmt.Sprintf("the file %s is shorter than its mapping, offset %#x is behind its end: %s", mapping.File, mapping.Offset+c.address-mapping.Start, what)
	}
	return "memory that has nothing behind it: " + what
}
