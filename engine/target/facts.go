// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"time"
)

// Facts are what a target says beside the state of its threads: of the process, of
// the machine, and of how it ended. What it does not say is zero. They are shared:
// nobody changes them.
type Facts struct {
	Process Process
	System  System
	// Crash is why the target was kept; nil where it does not say that.
	Crash *Crash
	// Unloaded are files that were loaded before, in the target's order.
	Unloaded []UnloadedModule
	// LastErrors are what GetLastError gave in threads of Windows, as the names of
	// errors, by the ID of the thread.
	LastErrors map[string]string
	// Handles are what the process had open; nil where the target does not list that.
	Handles []Handle
	// Limits are those of the process's resources (getrlimit); nil where they are
	// not known.
	Limits []Limit
	// Distribution is the distribution of Linux; nil where it is not known.
	Distribution *Distribution
	// Mappings is how many mappings of memory a process of Linux had; 0 where that is
	// not known.
	Mappings int
	// Annotations are texts that the program gave to what kept the target, by name.
	Annotations []Annotation
	// Messages are what libraries of macOS left for a crash report.
	Messages []Message
	// BootArguments are those of the kernel of macOS.
	BootArguments string
	// SoftErrors is JSON: what went wrong while the target was written, in the words of
	// what wrote it.
	SoftErrors []byte
}

// A Process is what is known of a process as a whole.
type Process struct {
	ID         int64 // 0 where it is not known
	Command    string
	Executable string    // the name of its file, perhaps cut
	User       *uint32   // the ID of the user that it ran as; nil where it is not known
	Main       uint64    // an address in its executable; 0 where it is not known
	Created    time.Time // zero where it is not known
	Kept       time.Time // when the target was written; likewise
}

// A System is a machine and its operating system.
type System struct {
	OS      string // Windows, macOS, iOS, Linux, Android and others
	Version string // of the operating system: "10.0.19041", and the release of Linux
	Build   string // what else names the version: a service pack, what uname says
	Arch    string // of the machine: x86_64, aarch64, i386, arm and others
	// Platform is the number of an operating system that has no name here.
	Platform     uint32
	CPU          string // "GenuineIntel family 6 model 13 stepping 8"
	Processors   int
	Microcode    uint64 // its version, if HasMicrocode
	HasMicrocode bool
}

// Bits is how many bits an address of a machine has, 64 where it is not known.
func (s *System) Bits() int {
	if narrowArchitectures[s.Arch] {
		return 32
	}
	return 64
}

var narrowArchitectures = map[string]bool{
	"i386": true, "arm": true, "mips": true, "ppc": true, "sparc": true, "riscv": true, "shx": true,
}

// A Crash is why a target was kept.
type Crash struct {
	// Name is what happened, by the name that crash reports have for it:
	// EXCEPTION_ACCESS_VIOLATION_READ, "SIGSEGV / SEGV_MAPERR".
	Name string
	// Address is what was accessed, or the instruction that failed.
	Address    uint64
	HasAddress bool
	// Thread is the ID of the thread that it happened in, or that asked to be kept; ""
	// where that is not known.
	Thread string
	// IsRequest says that nothing failed: somebody asked for the target to be written.
	IsRequest bool
	// Assertion is a condition of the program that did not hold; "" where there was
	// none.
	Assertion string
	// Code is si_code of the signal of Linux that ended the process (sigaction(2)), if
	// HasCode.
	Code    int32
	HasCode bool
	// Sender is the process that sent the signal; nil where the kernel did.
	Sender *Sender
	// SystemCall is the one that a filter refused (SIGSYS); nil of other signals.
	SystemCall *SystemCall
	// Access is how memory was accessed where Windows says it: one of the Access
	// constants; "" where it is not said.
	Access string
	// Parameters are those of an exception of Windows, whose meaning depends on it
	// (winnt.h, EXCEPTION_RECORD).
	Parameters []uint64
	// Fact is the line that says what happened, of a snapshot: as it was where that was
	// taken; "" of other targets.
	Fact string
	// First is the crash that a signal handler caught before, of a snapshot, likewise; nil
	// of other targets, and where there was none.
	First *FirstCrash
}

// A FirstCrash is the crash that a signal handler caught: what the thread did next is the
// handler's, to the end of the process.
type FirstCrash struct {
	Signal int    // its number
	Name   string // as reports have it: "SIGSEGV / SEGV_MAPERR"
	// Address is what was accessed, if HasAddress.
	Address    uint64
	HasAddress bool
	Sender     *Sender // nil where no process sent the signal
	Thread     string  // its ID
	PC         uint64  // of what was interrupted
	Handler    string  // the function that the kernel called, or its module and offset
}

// How memory was accessed, in a Crash.
const (
	AccessRead    = "read"
	AccessWrite   = "write"
	AccessExecute = "execute"
)

// A Sender is a process that sent a signal.
type Sender struct {
	ID     int32  // 0 of one in another PID namespace
	User   uint32 // the real user ID
	NoUser bool   // the user is not known
}

// String is the sender in words.
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

// A SystemCall is a system call by its number, which depends on the architecture.
type SystemCall struct {
	Number  int32
	Arch    uint32 // AUDIT_ARCH_* of linux/audit.h
	Address uint64 // behind the instruction
}

// An UnloadedModule is a file that was loaded before.
type UnloadedModule struct {
	Name       string
	Base, Size uint64
	CodeID     string // see SymbolID
}

// Contains says whether the file lay at an address.
func (m *UnloadedModule) Contains(address uint64) bool { return address-m.Base < m.Size }

// A Handle is an object of the operating system that a process had open.
type Handle struct {
	Number     uint64
	Type, Name string // "" where it has none
}

// A Limit is a limit of a resource. Unlimited stands for none.
type Limit struct {
	Name       string // "Max cpu time"
	Soft, Hard uint64
	Unit       string // "seconds"; "" where it has none
}

// Unlimited is the value of a Limit that bounds nothing.
const Unlimited = ^uint64(0)

// A Distribution is what a distribution of Linux calls itself.
type Distribution struct{ ID, Release, Codename, Description string }

// An Annotation is a text with a name.
type Annotation struct {
	Module      string // the module that gave it; "" of the process
	Name, Value string
}

// A Message is a record of crashreporter_annotations_t (CrashReporterClient.h of
// macOS).
type Message struct {
	Thread, DialogMode, AbortCause                uint64
	HasThread, HasAbortCause                      bool // DialogMode goes with Thread
	Module, Text, Signature, Backtrace, TextAgain string
}
