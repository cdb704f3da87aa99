// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestRecordsAreThoseOfDumpSyms: what differs is of kinds whose reason is known.
func TestRecordsAreThoseOfDumpSyms(t *testing.T) {
	oracle.Tools(t, "npm", "tar", "g++", "clang++-22", "readelf", "eu-unstrip", "objcopy")
	t.Chdir("..") // where the command is run
	if err := run(nil, 3); err != nil {
		t.Error(err)
	}
}

// TestRecordsOfMacOSAreThoseOfDumpSyms is the same of programs of macOS, where dump_syms was made before: cargo takes minutes.
func TestRecordsOfMacOSAreThoseOfDumpSyms(t *testing.T) {
	oracle.Tools(t, "clang-22", "clang++-22", "ld64.lld-22", "dsymutil-22", "llvm-objdump-22")
	if os.Getenv("UNWINDD_PEER_DUMP_SYMS") == "" && !cost.IsKept(rustKept()) {
		t.Skip("dump_syms in Rust was not made: see main.go")
	}
	t.Chdir("..") // where the command is run
	if err := runMacOS(3); err != nil {
		t.Error(err)
	}
}
