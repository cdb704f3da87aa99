// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-amdgpu is the architecture plugin of AMDGPU as an
// executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(amdgpu.New()) }
