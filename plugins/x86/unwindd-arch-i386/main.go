// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-i386 is the architecture plugin of 32-bit x86 as an executable of
// its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/x86"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(x86.New()) }
