// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-riscv64 is the architecture plugin of 64-bit RISC-V.
package main

import (
	riscv64 "example.com/arch-riscv64"

	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(riscv64.New()) }
