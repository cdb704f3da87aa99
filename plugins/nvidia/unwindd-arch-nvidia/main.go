// SPDX-License-Identifier: Apache-2.0

// Command unwindd-arch-nvidia is the architecture plugin of NVIDIA's graphics processors
// as an executable of its own.
package main

import (
	"github.com/unwindd/unwindd/plugins/nvidia"
	"github.com/unwindd/unwindd/sdk"
)

func main() { sdk.Serve(nvidia.New()) }
