// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-x86_64 is the architecture plugin of x86-64 as an
// executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(x86_64.New()) }
