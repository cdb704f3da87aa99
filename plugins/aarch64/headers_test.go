// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// headersProgram prints where the system's headers have what register sets lay out: a name
// and a number a line.
const headersProgram = `
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <asm/ptrace.h>
#include <asm/sigcontext.h>
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/procfs.h>
#include <ucontext.h>

#define SHOW(name, value) printf("%s %lu\n", name, (unsigned long)(value));
#define REGS offsetof(struct elf_prstatus, pr_reg)

struct frame { siginfo_t info; ucontext_t uc; }; // struct rt_sigframe of the kernel

int main(void)
{
	SHOW("prstatus", NT_PRSTATUS) SHOW("fpregset", NT_PRFPREG) SHOW("tls", NT_ARM_TLS) SHOW("system call", NT_ARM_SYSTEM_CALL)
	SHOW("sve", NT_ARM_SVE) SHOW("pac mask", NT_ARM_PAC_MASK)
	SHOW("prstatus size", sizeof(struct elf_prstatus))
	SHOW("prstatus x0", REGS + offsetof(struct user_pt_regs, regs))
	SHOW("prstatus x30", REGS + offsetof(struct user_pt_regs, regs[30]))
	SHOW("prstatus sp", REGS + offsetof(struct user_pt_regs, sp))
	SHOW("prstatus pc", REGS + offsetof(struct user_pt_regs, pc))
	SHOW("prstatus cpsr", REGS + offsetof(struct user_pt_regs, pstate))
	SHOW("fpregset v0", offsetof(struct user_fpsimd_state, vregs))
	SHOW("fpregset v31", offsetof(struct user_fpsimd_state, vregs[31]))
	SHOW("fpregset fpsr", offsetof(struct user_fpsimd_state, fpsr))
	SHOW("fpregset fpcr", offsetof(struct user_fpsimd_state, fpcr))
	SHOW("pac mask pauth_dmask", offsetof(struct user_pac_mask, data_mask))
	SHOW("pac mask pauth_cmask", offsetof(struct user_pac_mask, insn_mask))
	SHOW("sve sve_vl", offsetof(struct user_sve_header, vl))
	SHOW("perf x0", PERF_REG_ARM64_X0) SHOW("perf x29", PERF_REG_ARM64_X29) SHOW("perf x30", PERF_REG_ARM64_LR)
	SHOW("perf sp", PERF_REG_ARM64_SP) SHOW("perf pc", PERF_REG_ARM64_PC)
#ifdef PERF_REG_ARM64_EXTENDED_MAX
	SHOW("perf vg", PERF_REG_ARM64_VG)
#endif
	SHOW("signal frame", offsetof(struct frame, uc.uc_mcontext.regs))
	SHOW("signal frame sp", offsetof(struct frame, uc.uc_mcontext.sp))
	SHOW("signal frame pc", offsetof(struct frame, uc.uc_mcontext.pc))
	return 0;
}
`

// TestRegisterSetsAreThoseOfTheHeaders holds register sets, and where a signal's frame has
// registers, against the headers of the system, as a program of AArch64 sees them.
func TestRegisterSetsAreThoseOfTheHeaders(t *testing.T) {
	oracle.Tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "headers.c"), filepath.Join(dir, "headers")
	if err := os.WriteFile(source, []byte(headersProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "aarch64-linux-gnu-gcc", "-static", "-o", program, source)
	types := map[string]uint32{}
	checked := 0
	for line := range strings.Lines(oracle.Run(t, "qemu-aarch64", program)) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		name := line[:at]
		var value uint32
		if _, err := fmt.Sscan(line[at+1:], &value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		checked++
		switch set, register := name[:max(strings.LastIndexByte(name, ' '), 0)], name[strings.LastIndexByte(name, ' ')+1:]; {
		case name == "prstatus size":
			if value != 392 {
				t.Errorf("%s", line)
			}
		case name == "signal frame":
			if value != sigcontextRegisters {
				t.Errorf("%s, expected %d", line, sigcontextRegisters)
			}
		case strings.HasPrefix(name, "signal frame "):
			if info, ok := Description().RegisterByName(register); !ok || value != sigcontextRegisters+8*info.Number {
				t.Errorf("%s", line)
			}
		case set == "perf":
			checkField(t, Description().RegisterSet(sdk.PerfSample, "", 0), register, value)
		case types[set] != 0:
			owner := "CORE"
			if types[set] > 0xff {
				owner = "LINUX"
			}
			checkField(t, Description().RegisterSet(sdk.CoreNote, owner, types[set]), register, value)
		default:
			types[name] = value
		}
	}
	if checked < 25 {
		t.Errorf("%d numbers", checked)
	}
}

// checkField wants a register at an offset of a set.
func checkField(t *testing.T, set *sdk.RegisterSet, name string, offset uint32) {
	t.Helper()
	info, ok := Description().RegisterByName(name)
	if set == nil || !ok {
		t.Errorf("no set with %s", name)
		return
	}
	for i := range set.Fields {
		if f := &set.Fields[i]; f.Register == info.Number {
			if f.Offset != offset {
				t.Errorf("%s is at %d, the headers have %d", name, f.Offset, offset)
			}
			return
		}
	}
	t.Errorf("%s is not in the set of %s %#x", name, set.Owner, set.Type)
}
