// SPDX-License-Identifier: Apache-2.0

package minidump

import "fmt"

// System is MINIDUMP_SYSTEM_INFO: the machine and its operating system.
type System struct {
	Architecture        uint16 // PROCESSOR_ARCHITECTURE_*, see Arch
	Level, Revision     uint16 // of the processor
	Processors          uint8  // how many
	ProductType         uint8
	Major, Minor, Build uint32 // version of the operating system
	Platform            uint32 // VER_PLATFORM_*, see OS
	// ServicePack is the name of the service pack on Windows, and the output of uname
	// on Linux.
	ServicePack string
	SuiteMask   uint16
	CPU         [24]byte // CPU_INFORMATION, a union; Vendor reads a part of it
	Vendor      string   // of CPUID on x86; "" elsewhere
	// CPUVersion and CPUFeatures are CPUID 1 EAX and EDX on x86, the CPUID register
	// and ELF's hardware capabilities on ARM.
	CPUVersion, CPUFeatures uint32
	AMDFeatures             uint32 // CPUID 0x80000001 EDX of AMD's x86
}

const systemSize = 56

// architectures are the names of PROCESSOR_ARCHITECTURE_*. Breakpad's own begin at
// 0x8001.
var architectures = map[uint16]string{
	0: ArchX86, 1: "mips", 2: "alpha", 3: "ppc", 4: "shx", 5: ArchARM, 6: "ia64", 7: "alpha64", 8: "msil", 9: ArchAMD64,
	10: ArchX86, 12: ArchARM64, 0x8001: "sparc", 0x8002: "ppc64", 0x8003: ArchARM64, 0x8004: "mips64", 0x8005: "riscv", 0x8006: "riscv64",
}

// The operating systems, as OS names them.
const (
	Windows = "Windows"
	MacOS   = "macOS"
	IOS     = "iOS"
	LinuxOS = "Linux"
	Android = "Android"
)

// platforms are the operating systems of VER_PLATFORM_*. Breakpad's own begin at
// 0x8000.
var platforms = map[uint32]string{
	0: Windows, 1: Windows, 2: Windows, 3: "Windows CE", 0x8000: "Unix", 0x8101: MacOS, 0x8102: IOS, 0x8201: LinuxOS,
	0x8202: "Solaris", 0x8203: Android, 0x8204: "PS3", 0x8205: "NaCl", 0x8206: "Fuchsia",
}

// Arch names the processor: x86_64, aarch64, i386, arm and others; "" for a number
// that has no name.
func (s *System) Arch() string { return architectures[s.Architecture] }

// OS names the operating system; "" for a number that has no name.
func (s *System) OS() string { return platforms[s.Platform] }

// Version is the version of the operating system: "10.0.19041".
func (s *System) Version() string { return fmt.Sprintf("%d.%d.%d", s.Major, s.Minor, s.Build) }

func (d *Dump) readSystem(s *Stream) {
	r, ok := d.fixed(s, systemSize)
	if !ok {
		return
	}
	y := &System{
		Architecture: r.u16(0), Level: r.u16(2), Revision: r.u16(4), Processors: r.b[6], ProductType: r.b[7],
		Major: r.u32(8), Minor: r.u32(12), Build: r.u32(16), Platform: r.u32(20), SuiteMask: r.u16(28),
		ServicePack: d.text(s, uint64(r.u32(24)), true, "service pack", 0),
	}
	copy(y.CPU[:], r.b[32:])
	switch y.Arch() {
	case ArchX86:
		y.Vendor = narrow(y.CPU[:12])
		y.CPUVersion, y.CPUFeatures, y.AMDFeatures = r.u32(44), r.u32(48), r.u32(52)
	case ArchAMD64:
		// dbghelp has feature bits here; Breakpad and Crashpad write the same as on x86.
		if y.Platform >= firstBreakpadPlatform {
			y.Vendor = narrow(y.CPU[:12])
			y.CPUVersion, y.CPUFeatures, y.AMDFeatures = r.u32(44), r.u32(48), r.u32(52)
		}
	case ArchARM, ArchARM64:
		if y.Platform >= firstBreakpadPlatform {
			y.CPUVersion, y.CPUFeatures = r.u32(32), r.u32(36)
		}
	}
	d.System = y
}

const firstBreakpadPlatform = 0x8000

// os returns the operating system of the dump; "" where it has none.
func (d *Dump) os() string {
	if d.System == nil {
		return ""
	}
	return d.System.OS()
}

func (d *Dump) arch() string {
	if d.System == nil {
		return ""
	}
	return d.System.Arch()
}
