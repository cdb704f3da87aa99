// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// The disassembler is that of the flag, or of the configuration.
func TestDisassemblers(t *testing.T) {
	mc := oracle.Tool(t, "llvm-mc-22")
	config := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(config, []byte("disassembler = "+strconv.Quote(mc)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--disassembler", mc}, {"--config", config}} {
		out, said, status := unwindd(t, append([]string{"stack", "--code", "5", mixedCapture}, args...)...)
		if status != exitDone {
			t.Errorf("%v: status %d: %s", args, status, said)
		}
		mustSay(t, out, "      > 0x00007f42001016e0 <+0x5c>  08 1e 9e be              s_swappc_b64 s[30:31], s[8:9]\n")
	}
}

func TestWrongCodeFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--code", "0"}, "--code 0: expected 1 to 1000"},
		{[]string{"--code", "-3"}, "--code -3: expected 1 to 1000"},
		{[]string{"--code", "1001"}, "--code 1001: expected 1 to 1000"},
		{[]string{"--disassembler", "/usr/bin/llvm-mc"}, "--disassembler /usr/bin/llvm-mc: expected --code N too"},
	} {
		if _, said, status := unwindd(t, append([]string{"stack", serverCore}, c.args...)...); status != exitUsage || !strings.Contains(said, c.want) {
			t.Errorf("%v: status %d\n%s", c.args, status, said)
		}
	}
}
