// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"time"
)

// Facts describe the process, its machine and how it ended, as far as the target tells:
// a fact that it does not tell is zero. They are shared and not changed.
type Facts struct {
	Process Process
	System  System
	// Crash is why the target was written; nil if it does not tell.
	Crash *Crash
	// Unloaded are files that were loaded earlier, in the target's order.
	Unloaded []UnloadedModule
	// LastErrors has the names of the errors that GetLastError returned in threads of
	// Windows, by the ID of the thread.
	LastErrors map[string]string
	// Handles are the objects that the process had open; nil if the target does not list
	// them.
	Handles []Handle
	// Limits are the limits of the process's resources (getrlimit); nil if they are not
	// known.
	Limits []Limit
	// Distribution is the distribution of Linux; nil where it is not known.
	Distribution *Distribution
	// Mappings is the number of memory mappings that a process of Linux had; 0 if it is
	// not known.
	Mappings int
	// Annotations are named texts that the program left for the writer of the target.
	Annotations []Annotation
	// Messages are the texts that libraries of macOS left for a crash report.
	Messages []Message
	// BootArguments are the boot arguments of the kernel of macOS.
	BootArguments string
	// SoftErrors is the JSON in which the writer of the target lists its own errors.
	SoftErrors []byte
}

// Process describes a process as a whole.
type Process struct {
	ID         int64 // 0 if it is not known
	Command    string
	Executable string    // the name of its file, perhaps truncated
	User       *uint32   // the ID of the user that it ran as; nil if it is not known
	Main       uint64    // an address in its executable; 0 if it is not known
	Created    time.Time // zero if it is not known
	Kept       time.Time // when the target was written; zero if it is not known
	// Host is the name of its machine, or of its container; "" if it is not known.
	Host string
	// Labels are labels that the target itself has; nil for targets other than snapshots.
	Labels map[string]string
}

// System is a machine and its operating system.
type System struct {
	OS      string // Windows, macOS, iOS, Linux, Android and others
	Version string // of the operating system: "10.0.19041", and the release of Linux
	Build   string // further details of the version: a service pack, the text of uname
	Arch    string // of the machine: x86_64, aarch64, i386, arm and others
	// Platform is the number of an operating system that has no name here.
	Platform     uint32
	CPU          string // "GenuineIntel family 6 model 13 stepping 8"
	Processors   int
	Microcode    uint64 // its version, if HasMicrocode
	HasMicrocode bool
}

// Bits is the size of an address of the machine, 64 if it is not known.
func (s *System) Bits() int {
	if narrowArchitectures[s.Arch] {
		return 32
	}
	return 64
}

var narrowArchitectures = map[string]bool{
	"i386": true, "arm": true, "mips": true, "ppc": true, "sparc": true, "riscv": true, "shx": true,
}

// Crash is why a target was written.
type Crash struct {
	// Name names the event as crash reports do: EXCEPTION_ACCESS_VIOLATION_READ,
	// "SIGSEGV / SEGV_MAPERR".
	Name string
	// Address is the address that was accessed, or that of the instruction that failed.
	Address    uint64
	HasAddress bool
	// Thread is the ID of the thread that crashed, or that requested the target; "" if it
	// is not known.
	Thread string
	// IsRequest means that nothing failed: the target was written on request.
	IsRequest bool
	// Assertion is the condition of the program that failed; "" if there was none.
	Assertion string
	// Code is si_code of the signal of Linux that ended the process (sigaction(2)), if
	// HasCode.
	Code    int32
	HasCode bool
	// Sender is the process that sent the signal; nil if the kernel did.
	Sender *Sender
	// SystemCall is the system call that a filter refused (SIGSYS); nil for other signals.
	SystemCall *SystemCall
	// Access is how memory was accessed, one of the Access constants; "" unless Windows
	// tells.
	Access string
	// Parameters are the parameters of an exception of Windows; the exception defines
	// their meaning (winnt.h, EXCEPTION_RECORD).
	Parameters []uint64
	// Fact is the sentence about the crash that a snapshot has; "" for other targets.
	Fact string
	// First is the earlier crash that a signal handler caught, as a snapshot has it; nil
	// for other targets, and if there was none.
	First *FirstCrash
}

// FirstCrash is the crash that a signal handler caught. After it the thread executed the
// handler, until the process ended.
type FirstCrash struct {
	Signal int    // its number
	Name   string // as reports have it: "SIGSEGV / SEGV_MAPERR"
	// Address is the address that was accessed, if HasAddress.
	Address    uint64
	HasAddress bool
	Sender     *Sender // nil if no process sent the signal
	Thread     string  // its ID
	PC         uint64  // of the interrupted instruction
	Handler    string  // the function that the kernel called, or its module and offset
}

// How memory was accessed, in a Crash.
const (
	AccessRead    = "read"
	AccessWrite   = "write"
	AccessExecute = "execute"
)

// Sender is a process that sent a signal.
type Sender struct {
	ID     int32  // 0 for a process in another PID namespace
	User   uint32 // the real user ID
	NoUser bool   // the user is not known
}

// String describes the sender in words.
func (s *Sender) String() string {
	text := fmt.Sprintf("process %d", s.ID)
	if s.ID == 0 {
		text = "a process of another PID namespace"
	}
	if s.NoUser {
		return text
	}
	return text + fmt.Sprintf(" of user %d", s.User)
}

// SystemCall is a system call by its number, which depends on the architecture.
type SystemCall struct {
	Number  int32
	Arch    uint32 // AUDIT_ARCH_* of linux/audit.h
	Address uint64 // of the next instruction
}

// UnloadedModule is a file that was loaded earlier, and unloaded.
type UnloadedModule struct {
	Name       string
	Base, Size uint64
	CodeID     string // see SymbolID
}

// Contains reports whether the file was loaded at an address.
func (m *UnloadedModule) Contains(address uint64) bool { return address-m.Base < m.Size }

// Handle is an object of the operating system that a process had open.
type Handle struct {
	Number     uint64
	Type, Name string // "" if it has none
}

// Limit bounds a resource; Unlimited stands for no bound.
type Limit struct {
	Name       string // "Max cpu time"
	Soft, Hard uint64
	Unit       string // "seconds"; "" if it has none
}

// Unlimited is the value of a Limit that bounds nothing.
const Unlimited = ^uint64(0)

// Distribution names a distribution of Linux.
type Distribution struct{ ID, Release, Codename, Description string }

// Annotation is a text with a name.
type Annotation struct {
	Module      string // the module that it comes from; "" if that is the process
	Name, Value string
}

// Message is a record of crashreporter_annotations_t (CrashReporterClient.h of
// macOS).
type Message struct {
	Thread, DialogMode, AbortCause                uint64
	HasThread, HasAbortCause                      bool // DialogMode goes with Thread
	Module, Text, Signature, Backtrace, TextAgain string
}
